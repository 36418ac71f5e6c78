"""Findings -> one HTML page that needs nothing but itself.

The page may load nothing: its policy allows one style and one script, told by their hashes, and pictures inside it. So
even a name that broke out of its place could not run anything.
"""

import base64
import hashlib
from importlib.metadata import version
from importlib.resources import files
from string import Template

from manymetrics.report.markup import Markup, element, join
from manymetrics.report.reading import Findings
from manymetrics.report.sections import (
    Section,
    ablations,
    against_clusters,
    clusters,
    headline,
    matrices,
    methods,
    metrics,
    provenance,
    targets,
    title_of,
)

INK = {  # the colours of the figures, which the page changes with the light
    "ink": "#1c2329", "muted": "#69737c", "rule": "#dfdcd3", "paper": "#fdfcf9", "open": "#efede7", "hatch": "#bdbab1",
    "ours": "#0a6aa6", "other": "#6f7780", "today": "#c05f14", "fourth": "#6b5bb5",
}  # fmt: skip


def page(findings: Findings) -> bytes:
    """The page, the same bytes for the same findings."""
    style, script = _read("style.css") + figure_style(on_page=True), _read("script.js")
    sections = [section for section in _sections(findings) if section is not None]
    body = element(
        "body",
        element("header", headline(findings)),
        element("nav", *(element("a", section.short, href=f"#{section.name}") for section in sections)),
        element("main", *(_shown(section) for section in sections)),
        element("footer", element("p", f"Written by manymetrics {version('manymetrics')}. It loads nothing.")),
        element("script", Markup(script)),
    )  # fmt: skip
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title_of(findings)),
        element("style", Markup(style)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n".encode()


def figure_style(*, on_page: bool) -> str:
    """The style of the figures: with colours that follow the page, or with colours of their own."""
    colours = {name: f"var(--{name})" for name in INK} if on_page else INK
    return Template(_read("figures.css")).substitute(colours)


def stand_alone(figure: Markup) -> bytes:
    """A figure as an SVG file of its own, on white."""
    opened = Markup(figure.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    end = opened.index(">") + 1
    ground = element("rect", width="100%", height="100%", fill="#ffffff")
    return join(Markup(opened[:end]), element("style", Markup(figure_style(on_page=False))), ground,
                Markup(opened[end:]), Markup("\n")).encode()  # fmt: skip


def _sections(findings: Findings) -> list[Section | None]:
    makers = (methods, against_clusters, clusters, matrices, targets, ablations, metrics, provenance)
    return [make(findings) for make in makers]


def _shown(section: Section) -> Markup:
    return element("section", element("h2", section.title), section.content, id=section.name)


def _policy(style: str, script: str) -> str:
    only = {"style-src": _digest(style), "script-src": _digest(script), "img-src": "data:"}
    closed = ("default-src", "base-uri", "form-action")
    return "; ".join([*(f"{name} 'none'" for name in closed), *(f"{name} {source}" for name, source in only.items())])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return files("manymetrics.report").joinpath(name).read_text(encoding="utf-8")
