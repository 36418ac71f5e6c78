"""Templates -> one HTML page that loads nothing, or a figure as an SVG file.

Every value in a template is escaped. The page's policy allows one style and at most one script, by their hashes, and
images inside the page; so even a name that escaped from its element could not run anything.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from manymetrics.errors import InputError
from manymetrics.store import write_atomically

COLOURS = {  # of the figures, outside of a page; the page defines them for a light and for a dark screen
    "ink": "#1c2329", "muted": "#69737c", "paper": "#fdfcf9", "open": "#efede7", "hatch": "#bdbab1",
}  # fmt: skip
_NOT_IN_MARKUP = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    name: str  # the fragment of links to it
    short: str  # its name in the navigation
    title: str
    content: Markup


@dataclass(frozen=True)
class Header:
    """The top of a page: its subject, the main numbers, and the conditions under which they were obtained."""

    title: str
    lead: str
    tiles: Sequence[tuple[str, str]]  # numbers, each with its meaning
    facts: Mapping[str, str]
    tag: str | None = None
    command: str | None = None


def printable(value: Any) -> Any:
    """A value as it is printed: numbers with at most two decimals, texts without characters that markup cannot hold."""
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return _NOT_IN_MARKUP.sub("\ufffd", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def code(text: str) -> Markup:
    """A text in the font of code."""
    return Markup("<code>{}</code>").format(printable(text))


_TEMPLATES = Environment(
    loader=PackageLoader("manymetrics.report"), autoescape=True, undefined=StrictUndefined, finalize=printable,
    trim_blocks=True, lstrip_blocks=True, auto_reload=False,
)  # fmt: skip


def render(template: str, **values: Any) -> Markup:
    """Fill in a template of this package."""
    return Markup(_TEMPLATES.get_template(template).render(values))  # noqa: S704 - every value is escaped


def page(header: Header, sections: Sequence[Section], *, style: str = "", script: str = "") -> bytes:
    """A page; equal content gives equal bytes. `style` and `script` are those of further sections."""
    style = read_style("style.css") + read_style("figures.css") + read_style("map.css") + style
    content = render(
        "page.html", header=header, sections=sections, version=version("manymetrics"), policy=_policy(style, script),
        style=Markup(style), script=Markup(script),  # noqa: S704 - files of the package
    )  # fmt: skip
    return f"{content}\n".encode()


def svg_file(figure: Markup, *, style: str = "", colours: Mapping[str, str] = COLOURS) -> bytes:
    """A figure as an SVG file on a white background; `style` is added to that of all figures."""
    style = read_style("figures.css") + style
    style = re.sub(r"var\(--(\w+)\)", lambda match: colours[match[1]], style)  # few programs know CSS variables
    tag, content = str(figure).removeprefix("<svg").split(">", 1)
    background = f'<style>{style}</style><rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg"{tag}>{background}{content}\n'.encode()


def write_page(content: bytes, path: str | Path) -> None:
    """Write a page to a file; refuses a folder."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a report is one file. Give a name such as {path / 'report.html'}.")
    write_atomically(path, content)


def read_style(name: str) -> str:
    """A style sheet of this package."""
    return files("manymetrics.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    scripts = _digest(script) if script else "'none'"
    nothing_else = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nothing_else}; style-src {_digest(style)}; script-src {scripts}; img-src data:"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
