"""A map of the bank's tasks: similar tasks are close to each other, each with its name and the number of its cluster.

Colours are clusters, and lines connect the tasks of a cluster. Targets of an evaluation are placed among the tasks they
were assigned to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from manymetrics.model import Origin
from manymetrics.report.image import CATEGORY_COLOURS
from manymetrics.report.layout import MapLabel, distance_correlation, fit_to_square, place_labels, task_positions
from manymetrics.report.page import render
from manymetrics.report.read import AssignedTarget
from manymetrics.values import Clusters, Floats

SIDE, MARGIN = 500.0, 14.0  # units of the plot
RADII = ((90, 10.0), (220, 7.5), (600, 4.5))  # (marks, radius): radius for up to so many marks
MIN_RADIUS = 3.0  # for more marks
Line = tuple[Floats, Floats]  # two points


@dataclass(frozen=True)
class Mark:
    """A task or a target on the map."""

    name: str
    cluster: int
    target: AssignedTarget | None = None  # None: a task of the bank


@dataclass(frozen=True, eq=False)
class TaskMap:
    """Tasks and targets in a plane, ready to be drawn."""

    marks: tuple[Mark, ...]  # tasks, then targets
    positions: Floats  # (marks, 2)
    radius: float  # of a mark
    correlation: float  # of distances on the map with dissimilarities
    links: tuple[tuple[Line, ...], ...]  # the lines that connect the tasks of each cluster
    labels: list[MapLabel]  # the names that can be shown


def task_map(origin: Origin, targets: Sequence[AssignedTarget] = ()) -> TaskMap:
    """Place the tasks, and the targets that were assigned to some of them."""
    clusters = origin.clusters
    index = {name: number for number, name in enumerate(clusters.names)}
    marks = [Mark(name, int(cluster)) for name, cluster in zip(clusters.names, clusters.labels, strict=True)]
    tasks = task_positions(origin.similarity)  # (tasks, 2)
    points = [*tasks]
    for target in targets:
        similar = [index[name] for name in target.tasks if name in index]
        if target.assignment and similar:
            marks.append(Mark(target.task, target.assignment.cluster, target))
            points.append(tasks[similar].mean(axis=0))
    radius = next((radius for most, radius in RADII if len(marks) <= most), MIN_RADIUS)
    positions = fit_to_square(np.array(points), SIDE - 2 * MARGIN, 2 * radius + 1.5) + MARGIN
    return TaskMap(
        tuple(marks),
        positions,
        radius,
        distance_correlation(tasks, origin.similarity),
        _links(clusters, positions),
        place_labels([mark.name for mark in marks], positions, radius, SIDE),
    )


def task_map_svg(task_map: TaskMap, clusters: Clusters) -> Markup:
    """The map and its legend, which a narrow page stacks."""
    counts = [len(tasks) for tasks in clusters]
    colours = dict(enumerate(CATEGORY_COLOURS))
    legend = [(f"cluster-{number}", number, count) for number, count in enumerate(counts[: len(colours)])]
    if others := sum(counts[len(colours) :]):
        legend.append(("others", len(colours), others))
    return render("task_map.html", map=task_map, side=SIDE, colours=colours, legend=legend)


def _links(clusters: Clusters, positions: Floats) -> tuple[tuple[Line, ...], ...]:
    """The lines of a minimum spanning tree of each cluster with several tasks."""
    links = []
    for number in np.unique(clusters.labels):
        points = positions[np.flatnonzero(clusters.labels == number)]
        tree = minimum_spanning_tree(cdist(points, points) + 1e-9).toarray()
        links.append(tuple((points[start], points[end]) for start, end in np.argwhere(tree > 0)))
    return tuple(lines for lines in links if lines)
