"""Elements of HTML and SVG: text inside them is escaped."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from manymetrics.report.page import printable

VOID = {"circle", "path", "rect"}  # without an end tag, if they have no content
MAX_NAMES = 3  # shown where there is not enough space for all

__all__ = ["Markup", "element", "facts", "isolated", "join", "some_names"]


def join(*parts: object) -> Markup:
    """Markup and texts in a row, the texts escaped; None is skipped."""
    return Markup("").join(escape(printable(part)) for part in parts)


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element; attributes that are None are omitted, `class_` and `data_x` become `class` and `data-x`."""
    written = join(
        *(
            Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), printable(value))
            for key, value in attributes.items()
            if value is not None
        )
    )
    if name in VOID and not content:
        return Markup("<{}{}/>").format(name, written)
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, join(*content))


def isolated(name: str) -> Markup:
    """A name from the data, whose direction does not change that of the text around it."""
    return element("bdi", name)


def some_names(names: Sequence[str]) -> Markup:
    """The first names, and how many more there are."""
    listed = Markup(", ").join(isolated(name) for name in names[:MAX_NAMES])
    return join(listed, f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else None)


def facts(values: Mapping[str, Any]) -> Markup:
    """Names and values as a list."""
    rows = [element("div", element("dt", name), element("dd", _setting(value))) for name, value in values.items()]
    return element("dl", *rows, class_="facts")


def _setting(value: object) -> str:
    if value is None:
        return "chosen from the data"
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
