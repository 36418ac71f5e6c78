"""A model folder or a finished run, perhaps with an evaluation -> one HTML page that loads nothing.

The page's policy allows its style by its hash, and images inside the page; so even a name that escaped from its element
could not run anything.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
from markupsafe import Markup

from manymetrics.errors import InputError
from manymetrics.model import Origin, load_origin, model_folder
from manymetrics.recipe import CONVOLUTION
from manymetrics.report.heatmap import MAX_CELLS, heatmap_svg, heatmaps
from manymetrics.report.page import read_style, render
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.specialize.cluster_metrics import SHARED
from manymetrics.store import write_atomically
from manymetrics.store.files import CHECKSUMS
from manymetrics.store.runs import is_run
from manymetrics.weigh.task_metric import BASE_WEIGHT

LEARNED = "learned"  # folder of a finished run
MAX_WEIGHTS = 3  # weights shown of a target
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{}'; script-src 'none'; img-src data:"


class ClusterAssignment(msgspec.Struct, frozen=True):
    """The cluster that a target was assigned to."""

    summary: str  # the most similar tasks, the probability and the reason
    cluster: int


class AssignedTarget(msgspec.Struct, frozen=True):
    """A target of an evaluation: the cluster it was assigned to, and what predicted its labels."""

    task: str
    accuracy: float
    weights: dict[str, float]  # by metric
    fallback: str | None  # why a model of its examples alone was used
    assignment: ClusterAssignment | None  # None without evidence


class _Evaluation(msgspec.Struct):
    targets: tuple[AssignedTarget, ...]


def write_report(model: str | Path, path: str | Path, *, evaluation: str | Path | None = None) -> None:
    """Write one HTML page about a model folder or a finished run of `learn`; the page loads nothing.

    `evaluation` is a file that `evaluate --json` wrote.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, and a report is one file. Give a name such as {path / 'report.html'}.")
    targets = () if evaluation is None else read_targets(evaluation)
    write_atomically(path, report_page(read_origin(model), targets))


def report_page(origin: Origin, targets: Sequence[AssignedTarget] = ()) -> bytes:
    """The page about a model, with the targets of an evaluation; equal content gives equal bytes."""
    groups, n_tasks = [sorted(group) for group in origin.clusters], len(origin.clusters.names)
    of_clusters = [metric["cluster"] for metric in origin.metrics if metric["cluster"] is not None]
    measured = np.isfinite(origin.transfer.scores) & ~np.eye(n_tasks, dtype=np.bool_)  # (tasks, tasks)
    map_of_tasks = task_map(origin)
    sections = [  # template, name in the navigation, heading
        ("map", "Map", "Map of the tasks"),
        ("clusters", "Tasks", f"{len(groups)} clusters of {n_tasks} tasks"),
        *([("targets", "Targets", "Assignment of the targets")] if targets else []),
        ("matrices", "Matrices", "From transfer to similarity"),
        ("metrics", "Metrics", "Metrics of the model"),
        ("provenance", "Provenance", "Recipe and provenance"),
    ]
    style = "".join(map(read_style, ("style.css", "figures.css", "map.css")))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    content = render(
        "page.html",
        origin=origin,
        sections=sections,
        groups=groups,
        n_of_clusters=len(of_clusters),
        with_metric=set(of_clusters),
        share_measured=float(measured.sum() / max(1, n_tasks * (n_tasks - 1))),
        task_map=map_of_tasks,
        task_map_figure=task_map_svg(map_of_tasks),
        shared=SHARED if any(metric["name"] == SHARED for metric in origin.metrics) else None,
        rows=[(target, _largest_weights(target)) for target in targets],
        figures=[(heatmap, heatmap_svg(heatmap)) for heatmap in heatmaps(origin)],
        has_tooltips=n_tasks <= MAX_CELLS,
        published=origin.recipe.representation == CONVOLUTION,
        base_weight=f"{BASE_WEIGHT:.0%}",
        recipe={name: _setting(value) for name, value in origin.recipe.as_dict().items()},
        version=version("manymetrics"),
        style=Markup(style),  # noqa: S704 - files of the package
        policy=POLICY.format(f"sha256-{digest}"),
    )
    return f"{content}\n".encode()


def read_origin(folder: str | Path) -> Origin:
    """The provenance of the model in a model folder or in a finished run."""
    folder = model_folder(folder)
    for origin in (folder, folder / LEARNED):
        if (origin / CHECKSUMS).is_file():
            return load_origin(origin)
    if folder.is_dir() and is_run(folder):
        raise InputError(f"The run in {folder} has not finished. Repeat the `learn` command to resume it.")
    raise InputError(f"{folder} is neither a model nor a run. Give what `learn --out` or `learn --run` wrote.")


def read_targets(path: str | Path) -> tuple[AssignedTarget, ...]:
    """The targets of an evaluation, from the file that `evaluate --json` wrote."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=_Evaluation).targets
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}). Check the path.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: this is not an evaluation. Give what `manymetrics evaluate --json` wrote.") from None


def _largest_weights(target: AssignedTarget) -> str:
    metrics = sorted(target.weights, key=lambda name: -target.weights[name])[:MAX_WEIGHTS]
    return ", ".join(f"{name} {target.weights[name]:.0%}" for name in metrics)


def _setting(value: object) -> str:
    if value is None:
        return "chosen from the data"
    return str(value).lower() if isinstance(value, bool) else str(value)
