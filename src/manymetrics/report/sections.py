"""The provenance of a model -> the header and the sections of a page about it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manymetrics.model import Origin
from manymetrics.recipe import CONVOLUTION
from manymetrics.report.heatmap import MAX_CELLS, heatmap_svg, heatmaps
from manymetrics.report.page import Header, Section, code, page, render, write_page
from manymetrics.report.read import AssignedTarget, read_origin, read_targets
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.specialize.cluster_metrics import SHARED
from manymetrics.weigh.task_metric import BASE_WEIGHT

MAX_WEIGHTS = 3  # weights shown of a target


def write_report(model: str | Path, path: str | Path, *, evaluation: str | Path | None = None) -> None:
    """Write one HTML page about a model folder or a finished run of `learn`; the page loads nothing.

    `evaluation` is a file that `evaluate --json` wrote.
    """
    origin = read_origin(model)
    targets = () if evaluation is None else read_targets(evaluation)
    sections = [
        map_section(origin, targets),
        clusters_section(origin),
        *([targets_section(targets)] if targets else []),
        matrices_section(origin),
        metrics_section(origin),
        provenance_section(origin),
    ]
    write_page(page(model_header(origin), sections), path)


def model_header(origin: Origin) -> Header:
    """The top of the page about a model."""
    n_tasks, n_clusters, n_metrics = len(origin.clusters.names), len(origin.clusters), len(origin.metrics)
    measured = np.isfinite(origin.transfer.scores) & ~np.eye(n_tasks, dtype=np.bool_)  # (n, n)
    tiles = [
        (str(n_tasks), "tasks in the bank"),
        (str(n_clusters), "clusters"),
        (str(n_metrics), "metrics"),
        (f"{measured.sum() / max(1, n_tasks * (n_tasks - 1)):.0%}", "of the pairs of tasks measured"),
    ]
    facts = {
        "seed": str(origin.recipe.seed),
        "data": code(origin.bank_fingerprint[:12]),
        "manymetrics": origin.versions.get("manymetrics", "not recorded"),
    }
    return Header(f"{n_metrics} metric{'s' * (n_metrics != 1)} from {n_tasks} tasks", _lead(origin), tiles, facts)


def _lead(origin: Origin) -> str:
    """Clusters and metrics, counted."""
    sizes = [len(group) for group in origin.clusters]
    of_clusters = [metric["cluster"] for metric in origin.metrics if metric.get("cluster") is not None]
    others = len(origin.metrics) - len(of_clusters)
    with_metric = len(_clusters_with_metric(origin))
    each = "Each has its" if with_metric == len(sizes) else f"{with_metric or 'None'} of them have their"
    return (
        f"{sum(sizes)} tasks form {len(sizes)} clusters of {min(sizes)} to {max(sizes)} tasks. {each} own metric. "
        f"A new task combines {len(origin.metrics)} metrics: {len(of_clusters)} of single clusters and {others} "
        f"other{'s' * (others != 1)}."
    )


def _clusters_with_metric(origin: Origin) -> set[int]:
    return {cluster for metric in origin.metrics if (cluster := metric["cluster"]) is not None}


def map_section(origin: Origin, targets: Sequence[AssignedTarget] = ()) -> Section:
    """The map of the tasks."""
    drawn = task_map(origin, targets)
    figure = task_map_svg(drawn, origin.clusters)
    return Section("map", "Map", "Map of the tasks", render("map.html", map=drawn, figure=figure))


def clusters_section(origin: Origin) -> Section:
    """The tasks of each cluster, and which clusters have their own metric."""
    groups = [sorted(group) for group in origin.clusters]
    shared = SHARED if any(metric.get("name") == SHARED for metric in origin.metrics) else None
    with_metric = _clusters_with_metric(origin)
    content = render("clusters.html", origin=origin, groups=groups, with_metric=with_metric, shared=shared)
    return Section("clusters", "Tasks", f"{len(groups)} clusters of {len(origin.clusters.names)} tasks", content)


def targets_section(targets: Sequence[AssignedTarget]) -> Section:
    """The assignment of the targets of an evaluation, and its reasons."""
    rows = [(target, _largest_weights(target)) for target in targets]
    return Section("targets", "Targets", "Assignment of the targets", render("targets.html", rows=rows))


def _largest_weights(target: AssignedTarget) -> str:
    metrics = sorted(target.weights, key=lambda name: -target.weights[name])[:MAX_WEIGHTS]
    return ", ".join(f"{name} {target.weights[name]:.0%}" for name in metrics)


def matrices_section(origin: Origin) -> Section:
    """The transfer matrix, the pairs that the filter retained, and their completion."""
    figures = [(heatmap, heatmap_svg(heatmap)) for heatmap in heatmaps(origin)]
    content = render("matrices.html", figures=figures, has_tooltips=len(origin.clusters.names) <= MAX_CELLS)
    return Section("matrices", "Matrices", "From transfer to similarity", content)


def metrics_section(origin: Origin) -> Section:
    """The metrics that a new task combines."""
    published = origin.recipe.representation == CONVOLUTION
    content = render("metrics.html", metrics=origin.metrics, published=published, base_weight=f"{BASE_WEIGHT:.0%}")
    return Section("metrics", "Metrics", "Metrics of the model", content)


def provenance_section(origin: Origin) -> Section:
    """The recipe, the data and the versions."""
    recipe = {name: _setting(value) for name, value in origin.recipe.as_dict().items()}
    return Section(
        "provenance", "Provenance", "Recipe and provenance", render("provenance.html", origin=origin, recipe=recipe)
    )


def _setting(value: object) -> str:
    if value is None:
        return "chosen from the data"
    return str(value).lower() if isinstance(value, bool) else str(value)
