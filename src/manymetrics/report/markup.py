"""Text -> markup that cannot be broken out of: whatever is not markup already is escaped on its way in."""

import re
from html import escape
from typing import Any

EMPTY_HTML = {"meta", "br"}
EMPTY_SVG = {"circle", "image", "line", "path", "rect", "stop"}
_NOT_IN_MARKUP = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is markup already; only this module and files of the package make it."""

    __slots__ = ()


def clean(text: str) -> str:
    """The text with every character that markup cannot hold replaced."""
    return _NOT_IN_MARKUP.sub("\ufffd", text)


def join(*parts: object) -> Markup:
    """Markup and texts in a row, the texts escaped; None is nothing."""
    return Markup("".join(_inside(part) for part in parts))


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element of HTML or SVG; an attribute that is None is left out, `class_` and `data_x` become names."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(as_text(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY_HTML:
        return Markup(f"<{name}{written}>")
    if name in EMPTY_SVG and not content:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def data_name(name: str) -> Markup:
    """A name that came with the data, kept from turning round the text beside it."""
    return element("bdi", name)


def as_text(value: object) -> str:
    """A value as it stands in markup: numbers with two decimals at most."""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _inside(part: Any) -> str:
    if part is None:
        return ""
    return part if isinstance(part, Markup) else escape(clean(as_text(part)), quote=False)
