"""A folder -> a page or figures on disk."""

from pathlib import Path

from manymetrics.errors import InputError
from manymetrics.report.figures import cluster_figure, colour_table, dot_figure
from manymetrics.report.heatmaps import heat_map_png, heat_map_svg, heat_maps
from manymetrics.report.page import page, stand_alone
from manymetrics.report.reading import Findings, read_findings
from manymetrics.report.results import ACCURACY, BALANCED
from manymetrics.report.sections import accuracy_table, weight_table
from manymetrics.store import write_atomically


def write_report(place: str | Path, path: str | Path) -> None:
    """Write one HTML page about a model, a run of `learn`, or the results of `reproduce`; it needs no network."""
    findings, path = read_findings(place), Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a report is one file. Give a name such as {path / 'report.html'}.")
    write_atomically(path, page(findings))


def write_figures(place: str | Path, folder: str | Path) -> tuple[Path, ...]:
    """Write the figures of the page as files: SVG each, and of the heat maps PNG as well, cells and borders alone."""
    findings, folder = read_findings(place), Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and figures go to a folder. Give another name.")
    paths = []
    for name, payload in _figures(findings).items():
        write_atomically(folder / name, payload)
        paths.append(folder / name)
    return tuple(paths)


def _figures(findings: Findings) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for heat in heat_maps(findings.learned):
        files |= {f"{heat.name}.svg": stand_alone(heat_map_svg(heat)), f"{heat.name}.png": heat_map_png(heat)}
    results = findings.results
    if results is None:
        return files
    if results.rows:
        files["methods.svg"] = stand_alone(dot_figure(results.rows))
    for score, name in ((ACCURACY, "clusters-accuracy"), (BALANCED, "clusters-balanced-accuracy")):
        if any(score in point.scores for point in results.by_clusters):
            files[f"{name}.svg"] = stand_alone(cluster_figure(results.by_clusters, score))
    metrics = [str(metric.get("name")) for metric in findings.learned.metrics]
    for table in (weight_table(results, metrics), accuracy_table(results)):
        if table is not None:
            files[f"{table.name}.svg"] = stand_alone(colour_table(table))
    return files
