"""A map of the bank's tasks: similar tasks are close to each other, each with its name and the number of its cluster.

Colours are clusters, and lines connect the tasks of a cluster.
"""

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from manymetrics.model import Origin
from manymetrics.report.image import CATEGORY_COLOURS
from manymetrics.report.layout import MapLabel, distance_correlation, fit_to_square, place_labels, task_positions
from manymetrics.report.page import render
from manymetrics.values import Clusters, Floats

SIDE, MARGIN = 500.0, 14.0  # units of the plot
RADII = ((90, 10.0), (220, 7.5), (600, 4.5))  # (marks, radius): radius for up to so many marks
MIN_RADIUS = 3.0  # for more marks
Line = tuple[Floats, Floats]  # two points


@dataclass(frozen=True, eq=False)
class TaskMap:
    """Tasks in a plane, ready to be drawn."""

    clusters: Clusters
    positions: Floats  # (tasks, 2)
    radius: float  # of a mark
    correlation: float  # of distances on the map with dissimilarities
    links: list[Line]  # between tasks of one cluster
    labels: list[MapLabel]  # the names that can be shown


def task_map(origin: Origin) -> TaskMap:
    """Place the tasks, and their names beside them."""
    clusters, tasks = origin.clusters, task_positions(origin.similarity)  # (tasks, 2)
    radius = next((radius for most, radius in RADII if len(tasks) <= most), MIN_RADIUS)
    positions = fit_to_square(tasks, SIDE - 2 * MARGIN, 2 * radius + 1.5) + MARGIN
    return TaskMap(
        clusters,
        positions,
        radius,
        distance_correlation(tasks, origin.similarity),
        _links(clusters, positions),
        place_labels(clusters.names, positions, radius, SIDE),
    )


def task_map_svg(task_map: TaskMap) -> Markup:
    """The map and its legend, which a narrow page stacks."""
    counts = [len(tasks) for tasks in task_map.clusters]
    colours = dict(enumerate(CATEGORY_COLOURS))
    legend = [(f"cluster-{number}", number, count) for number, count in enumerate(counts[: len(colours)])]
    if others := sum(counts[len(colours) :]):
        legend.append(("others", len(colours), others))
    return render("task_map.html", map=task_map, side=SIDE, colours=colours, legend=legend)


def _links(clusters: Clusters, positions: Floats) -> list[Line]:
    """The lines of a minimum spanning tree of each cluster with several tasks."""
    lengths = cdist(positions, positions) + 1e-9
    lengths[np.not_equal.outer(clusters.labels, clusters.labels)] = 0  # no line between clusters
    tree = minimum_spanning_tree(lengths).toarray()
    return [(positions[start], positions[end]) for start, end in np.argwhere(tree > 0)]
