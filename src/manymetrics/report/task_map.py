"""A map of the bank's tasks: similar tasks are close to each other, each with its name and the number of its cluster.

Colours are families where these are known, else clusters; lines connect the tasks of a cluster. Targets of an
evaluation are placed among the tasks they were assigned to.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup

from manymetrics.model import Origin
from manymetrics.report.image import CATEGORY_COLOURS
from manymetrics.report.layout import (
    MapLabel,
    distance_correlation,
    fit_to_square,
    place_labels,
    shorten,
    spanning_tree,
    task_positions,
)
from manymetrics.report.page import render
from manymetrics.report.read import AssignedTarget
from manymetrics.values import Floats

SIDE, MARGIN = 500.0, 14.0  # units of the plot
RADII = ((90, 10.0), (220, 7.5), (600, 4.5))  # (marks, radius): radius for up to so many marks
MIN_RADIUS = 3.0  # for more marks
MAX_CATEGORY = 26  # characters of its name
CLUSTER, NO_FAMILY, OTHERS = "cluster-", "no family named", "others"


@dataclass(frozen=True)
class Mark:
    """A task or a target on the map."""

    name: str
    cluster: int | None
    category: str  # what colours it: its family or its cluster
    target: AssignedTarget | None = None  # None: a task of the bank


@dataclass(frozen=True, eq=False)
class TaskMap:
    """Tasks and targets in a plane, ready to be drawn."""

    tasks: tuple[Mark, ...]
    targets: tuple[Mark, ...]
    positions: Floats  # (tasks + targets, 2)
    radius: float  # of a mark
    by_family: bool  # whether categories are families
    correlation: float  # of distances on the map with dissimilarities

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The tasks, then the targets."""
        return self.tasks + self.targets

    @cached_property
    def labels(self) -> list[MapLabel]:
        """The names that can be shown."""
        return place_labels([mark.name for mark in self.marks], self.positions, self.radius, SIDE)


def task_map(
    origin: Origin, families: Mapping[str, str] | None = None, targets: Sequence[AssignedTarget] = ()
) -> TaskMap:
    """Place the tasks, and the targets that were assigned to some of them."""
    names = origin.clusters.names
    index = {name: number for number, name in enumerate(names)}
    targets = [target for target in targets if any(name in index for name in target.tasks)]
    tasks = task_positions(origin.similarity)  # (tasks, 2)
    means = [tasks[[index[name] for name in target.tasks if name in index]].mean(axis=0) for target in targets]
    radius = next((radius for most, radius in RADII if len(names) + len(targets) <= most), MIN_RADIUS)

    def mark(name: str, cluster: int | None, target: AssignedTarget | None = None) -> Mark:
        category = f"{CLUSTER}{cluster}" if families is None else families.get(name, NO_FAMILY)
        return Mark(name, cluster, category, target)

    return TaskMap(
        tuple(mark(name, int(cluster)) for name, cluster in zip(names, origin.clusters.labels, strict=True)),
        tuple(mark(target.task, target.cluster, target) for target in targets),
        fit_to_square(np.array([*tasks, *means]), SIDE - 2 * MARGIN, 2 * radius + 1.5) + MARGIN,
        radius,
        families is not None,
        distance_correlation(tasks, origin.similarity),
    )


def task_map_svg(task_map: TaskMap, template: str = "task_map.svg") -> Markup:
    """The map and its legend as one figure, or by the template `task_map.html` as two that a narrow page stacks."""
    colours = _category_colours(task_map)
    counts = Counter(mark.category if mark.category in colours else OTHERS for mark in task_map.tasks)
    legend = [(shorten(category, MAX_CATEGORY), colour, counts[category]) for category, colour in colours.items()]
    return render(template, map=task_map, side=SIDE, links=_links(task_map), colours=colours, legend=legend)


def _category_colours(task_map: TaskMap) -> dict[str, str | None]:
    """The colour of each category, the most frequent first, clusters by number; None where categories share one."""
    counts = Counter(mark.category for mark in task_map.tasks if mark.category != NO_FAMILY)
    categories = [category for category, _ in counts.most_common()]
    if not task_map.by_family:
        categories.sort(key=lambda category: int(category.removeprefix(CLUSTER)))
    colours: dict[str, str | None] = dict(zip(categories, CATEGORY_COLOURS, strict=False))
    if len(categories) > len(CATEGORY_COLOURS):
        colours[OTHERS] = None
    if any(mark.category == NO_FAMILY for mark in task_map.marks):
        colours[NO_FAMILY] = None
    return colours


def _links(task_map: TaskMap) -> Iterator[list[tuple[Floats, Floats]]]:
    """The lines that connect the tasks of each cluster, as pairs of points: a minimum spanning tree."""
    clusters = np.array([task.cluster for task in task_map.tasks])
    for number in np.unique(clusters):
        points = task_map.positions[np.flatnonzero(clusters == number)]
        if len(points) > 1:
            yield [(points[start], points[end]) for start, end in spanning_tree(points)]
