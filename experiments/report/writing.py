"""A folder that `reproduce` wrote -> a page, and the figures of docs/results.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.plan import WHOLE
from experiments.report.figures import cluster_figure, gain_figure
from experiments.report.markup import Markup
from experiments.report.reading import ACCURACY, BALANCED, read_experiment, results_from
from experiments.report.sections import experiment_header, experiment_sections
from manymetrics.report.page import COLOURS, page, svg_file, write_page

HERE = Path(__file__).parent
FIGURE_COLOURS = {
    **COLOURS, "rule": "#dfdcd3", "ours": "#0a6aa6", "other": "#6f7780", "today": "#c05f14", "fourth": "#6b5bb5",
}  # fmt: skip


def write_report(place: str | Path, path: str | Path) -> None:
    """Write one HTML page about an experiment and its model; it needs no network."""
    results, origin = read_experiment(place)
    style = _read("style.css") + _read("figures.css")
    header, sections = experiment_header(results, origin), experiment_sections(results, origin)
    write_page(page(header, sections, style=style, script=_read("script.js")), path)


def page_figures(name: str, raw: Mapping[str, Any]) -> dict[str, bytes]:
    """The figures of docs/results.md by their places beside it: scores against K, and what each part is worth."""
    results = results_from(raw)
    gains = [(row.method, row.gain) for row in results.ablations if row.gain is not None and row.method != WHOLE]
    figures = {f"{name}-parts": gain_figure(gains)} if gains else {}
    for score, word in ((ACCURACY, "accuracy"), (BALANCED, "balanced")) if results.by_clusters else ():
        figures[f"{name}-clusters-{word}"] = cluster_figure(results.by_clusters, score)
    return {f"images/{place}.svg": figure_file(figure) for place, figure in figures.items()}


def figure_file(figure: Markup) -> bytes:
    """A figure of an experiment as an SVG file of its own."""
    return svg_file(figure, style=_read("figures.css"), colours=FIGURE_COLOURS)


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
