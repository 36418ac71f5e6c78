"""Templates -> markup. Every value in a template is escaped."""

import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_NOT_IN_MARKUP = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(value: Any) -> Any:
    """A value as it is printed: numbers with at most two decimals, texts without characters that markup cannot hold."""
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return _NOT_IN_MARKUP.sub("\ufffd", value) if isinstance(value, str) and not isinstance(value, Markup) else value


_TEMPLATES = Environment(
    loader=PackageLoader("manymetrics.report"), autoescape=True, undefined=StrictUndefined, finalize=printable,
    trim_blocks=True, lstrip_blocks=True, auto_reload=False,
)  # fmt: skip


def render(template: str, **values: Any) -> Markup:
    """Fill in a template of this package."""
    return Markup(_TEMPLATES.get_template(template).render(values))  # noqa: S704 - every value is escaped


def read_style(name: str) -> str:
    """A style sheet of this package."""
    return files("manymetrics.report").joinpath(name).read_text(encoding="utf-8")
