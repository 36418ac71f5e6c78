"""A folder -> a page or figures on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from manymetrics.collect import read_families
from manymetrics.errors import InputError
from manymetrics.model import Origin
from manymetrics.report.heatmaps import heat_map_png, heat_map_svg, heat_maps
from manymetrics.report.page import map_alone, page, stand_alone
from manymetrics.report.reading import RoutedTarget, read_origin, read_targets
from manymetrics.report.sections import model_header, model_sections, model_title
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.store import write_atomically


def write_report(place: str | Path, path: str | Path, *, families: str | Path | None = None,
                 evaluation: str | Path | None = None) -> None:  # fmt: skip
    """Write one HTML page about a model or a finished run of `learn`; it needs no network.

    `families` is a bank whose manifest.json names families, `evaluation` a file of what `evaluate --json` wrote.
    """
    origin = read_origin(place)
    known, targets = _read_more(families, evaluation)
    save_page(page(model_title(origin), model_header(origin), model_sections(origin, known, targets)), path)


def write_figures(place: str | Path, folder: str | Path, *, families: str | Path | None = None,
                  evaluation: str | Path | None = None) -> tuple[Path, ...]:  # fmt: skip
    """Write the figures of the page as files: SVG each, and of the heat maps PNG as well, cells and borders alone."""
    return save_figures(model_figures(read_origin(place), *_read_more(families, evaluation)), folder)


def _read_more(
    families: str | Path | None, evaluation: str | Path | None
) -> tuple[dict[str, str] | None, tuple[RoutedTarget, ...]]:
    return None if families is None else read_families(families), () if evaluation is None else read_targets(evaluation)


def model_figures(origin: Origin, families: Mapping[str, str] | None = None,
                  targets: Sequence[RoutedTarget] = ()) -> dict[str, bytes]:  # fmt: skip
    """The figures of a model, by the names of their files."""
    files = {"map.svg": map_alone(task_map_svg(task_map(origin, families, targets)))}
    for heat in heat_maps(origin):
        files |= {f"{heat.name}.svg": stand_alone(heat_map_svg(heat)), f"{heat.name}.png": heat_map_png(heat)}
    return files


def save_page(content: bytes, path: str | Path) -> None:
    """Write a page to a file; refuses a folder."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a report is one file. Give a name such as {path / 'report.html'}.")
    write_atomically(path, content)


def save_figures(files: Mapping[str, bytes], folder: str | Path) -> tuple[Path, ...]:
    """Write figures to a folder; refuses a file."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and figures go to a folder. Give another name.")
    for name, payload in files.items():
        write_atomically(folder / name, payload)
    return tuple(folder / name for name in files)
