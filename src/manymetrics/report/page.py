"""A title, a header and sections -> one HTML page that needs nothing but itself.

The page may load nothing: its policy allows one style and, where there is one, one script, known by their hashes, and
pictures inside it. So even a name that broke out of its place could not run anything.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template

from manymetrics.report.markup import Markup, element, join
from manymetrics.report.sections import Section

INK = {  # the colours of the figures, which the page changes with the light
    "ink": "#1c2329", "muted": "#69737c", "paper": "#fdfcf9", "open": "#efede7", "hatch": "#bdbab1",
}  # fmt: skip


def page(title: str, header: Markup, sections: Sequence[Section], *, style: str = "", script: str = "") -> bytes:
    """The page, the same bytes for the same content; `style` and `script` are added to the page's own."""
    figures = _read("figures.css") + _read("map.css")
    style = _read("style.css") + coloured(figures, INK, on_page=True) + style
    body = element(
        "body",
        element("header", header),
        element("nav", *(element("a", section.short, href=f"#{section.name}") for section in sections)),
        element("main", *(_shown(section) for section in sections)),
        element("footer", element("p", f"Written by manymetrics {version('manymetrics')}. It loads nothing.")),
        element("script", Markup(script)) if script else None,
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n".encode()


def stand_alone(figure: Markup, *, style: str = "") -> bytes:
    """A figure as an SVG file of its own, on white; `style` is added to that of all figures."""
    opened = Markup(figure.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    end = opened.index(">") + 1
    own = Markup(coloured(_read("figures.css"), INK, on_page=False) + style)
    ground = element("rect", width="100%", height="100%", fill="#ffffff")
    parts = (Markup(opened[:end]), element("style", own), ground, Markup(opened[end:]), Markup("\n"))
    return join(*parts).encode()


def map_alone(figure: Markup) -> bytes:
    """The map of tasks as an SVG file of its own."""
    return stand_alone(figure, style=coloured(_read("map.css"), INK, on_page=False))


def coloured(style: str, ink: Mapping[str, str], *, on_page: bool) -> str:
    """The style of figures with its colours put in: as variables, which the page sets, or as they are."""
    return Template(style).substitute({name: f"var(--{name})" if on_page else colour for name, colour in ink.items()})


def _shown(section: Section) -> Markup:
    return element("section", element("h2", section.title), section.content, id=section.name)


def _policy(style: str, script: str) -> str:
    allowed = {"style-src": _digest(style), "script-src": _digest(script) if script else "'none'", "img-src": "data:"}
    closed = ("default-src", "base-uri", "form-action")
    rules = [*(f"{name} 'none'" for name in closed), *(f"{name} {source}" for name, source in allowed.items())]
    return "; ".join(rules)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return files("manymetrics.report").joinpath(name).read_text(encoding="utf-8")
