"""A model folder or a run -> a page or figures on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from manymetrics.collect import read_families
from manymetrics.errors import InputError
from manymetrics.model import Origin
from manymetrics.report.heatmap import heatmap_png, heatmap_svg, heatmaps
from manymetrics.report.page import page, read_style, svg_file
from manymetrics.report.read import AssignedTarget, read_origin, read_targets
from manymetrics.report.sections import model_header, model_sections
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.store import write_atomically

Inputs = tuple[dict[str, str] | None, tuple[AssignedTarget, ...]]  # families by task, targets of an evaluation


def write_report(
    model: str | Path, path: str | Path, *, families: str | Path | None = None, evaluation: str | Path | None = None
) -> None:
    """Write one HTML page about a model folder or a finished run of `learn`; the page loads nothing.

    `families` is a bank whose manifest.json names families, `evaluation` a file that `evaluate --json` wrote.
    """
    origin, inputs = read_origin(model), _read_inputs(families, evaluation)
    save_page(page(model_header(origin), model_sections(origin, *inputs)), path)


def write_figures(
    model: str | Path, folder: str | Path, *, families: str | Path | None = None, evaluation: str | Path | None = None
) -> tuple[Path, ...]:
    """Write the figures of the page as SVG files, the cells and cluster borders of heat maps also as PNG."""
    origin, inputs = read_origin(model), _read_inputs(families, evaluation)
    return save_figures(model_figures(origin, *inputs), folder)


def _read_inputs(families: str | Path | None, evaluation: str | Path | None) -> Inputs:
    return read_families(families) if families else None, read_targets(evaluation) if evaluation else ()


def model_figures(
    origin: Origin, families: Mapping[str, str] | None = None, targets: Sequence[AssignedTarget] = ()
) -> dict[str, bytes]:
    """The figures of a model, by file name."""
    figures = {"map.svg": svg_file(task_map_svg(task_map(origin, families, targets)), style=read_style("map.css"))}
    for heatmap in heatmaps(origin):
        figures[f"{heatmap.name}.svg"] = svg_file(heatmap_svg(heatmap))
        figures[f"{heatmap.name}.png"] = heatmap_png(heatmap)
    return figures


def save_page(content: bytes, path: str | Path) -> None:
    """Write a page to a file; refuses a folder."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a report is one file. Give a name such as {path / 'report.html'}.")
    write_atomically(path, content)


def save_figures(figures: Mapping[str, bytes], folder: str | Path) -> tuple[Path, ...]:
    """Write figures to a folder; refuses a file."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and figures are written to a folder. Give another name.")
    for name, content in figures.items():
        write_atomically(folder / name, content)
    return tuple(folder / name for name in figures)
