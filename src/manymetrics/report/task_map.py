"""The bank's tasks as a map: a mark for each, near those it is similar to, with the number of its cluster.

Colours are the families where they are known, else the clusters; lines join the tasks of a cluster. Targets of an
evaluation stand among the tasks they were taken for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.model import Origin
from manymetrics.report.colours import distinct
from manymetrics.report.markup import Markup, element
from manymetrics.report.positions import agreement, fit_into, place_tasks, tree
from manymetrics.report.reading import RoutedTarget
from manymetrics.values import Floats

SIDE, MARGIN = 500.0, 14.0  # of the plot
KEY_LEFT, KEY_WIDTH, KEY_ROW = 540.0, 210.0, 19.0
RADII = ((90, 10.0), (220, 7.5), (600, 4.5))  # up to so many marks; above, the least
LEAST_RADIUS, NUMBERED = 3.0, 7.0  # a mark; and one with a number in it
MOST_KINDS = 24  # that have a colour and a row of the key
NO_FAMILY, OTHER_KINDS = "no family named", "others"


@dataclass(frozen=True, eq=False)
class TaskMap:
    """Tasks in a plane, ready to be drawn."""

    names: tuple[str, ...]
    clusters: tuple[int, ...]  # the number of each task's cluster
    kinds: tuple[str, ...]  # what colours each task: its family, or its cluster
    targets: tuple[RoutedTarget, ...]  # that were taken for tasks
    target_kinds: tuple[str, ...]
    places: Floats  # (tasks + targets, 2)
    radius: float
    by_family: bool
    agreement: float  # of distances on the map with those of the similarity


def task_map(
    origin: Origin, families: Mapping[str, str] | None = None, targets: Sequence[RoutedTarget] = ()
) -> TaskMap:
    """Place the tasks, and the targets that were taken for some of them."""
    names = origin.clusters.names
    clusters = tuple(int(label) for label in origin.clusters.labels)
    known = {name: place for place, name in enumerate(names)}
    routed = tuple(target for target in targets if any(name in known for name in target.alike))
    free = place_tasks(origin.similarity)  # (tasks, 2)
    among = [free[[known[name] for name in target.alike if name in known]].mean(axis=0) for target in routed]
    count = len(names) + len(routed)
    radius = next((radius for most, radius in RADII if count <= most), LEAST_RADIUS)
    room = SIDE - 2 * MARGIN
    places = fit_into(np.array([*free, *among]), room, room, 2 * radius + 1.5) + MARGIN
    if families is None:
        kinds = tuple(f"cluster-{number}" for number in clusters)
        target_kinds = tuple(f"cluster-{target.cluster}" for target in routed)
    else:
        kinds = tuple(families.get(name, NO_FAMILY) for name in names)
        target_kinds = tuple(families.get(target.task, NO_FAMILY) for target in routed)
    return TaskMap(names, clusters, kinds, routed, target_kinds, places, radius, families is not None,
                   agreement(free, origin.similarity))  # fmt: skip


def task_map_svg(drawn: TaskMap) -> Markup:
    """The map with its key."""
    colours = _colours(drawn)
    height = max(SIDE, 40 + KEY_ROW * (len(colours) + 4))
    title = "Map of the tasks, by similarity; colours: " + ("families" if drawn.by_family else "clusters")
    return element(
        "svg", element("title", title),
        element("rect", x=0.5, y=0.5, width=SIDE - 1, height=SIDE - 1, rx=6, class_="frame"),
        *_links(drawn), *_task_marks(drawn, colours), *_target_marks(drawn, colours), *_key(drawn, colours),
        class_="figure map", viewBox=f"0 0 {KEY_LEFT + KEY_WIDTH:g} {height:g}", role="img",
    )  # fmt: skip


def _colours(drawn: TaskMap) -> dict[str, str | None]:
    """The colour of each kind, the commonest first (clusters by number); None for those that share one."""
    counts = Counter(kind for kind in drawn.kinds if kind != NO_FAMILY)
    named = [kind for kind, _ in counts.most_common()]
    if not drawn.by_family:
        named.sort(key=lambda kind: int(kind.partition("-")[2]))
    chosen: dict[str, str | None] = dict(zip(named, distinct(min(len(named), MOST_KINDS)), strict=False))
    if len(named) > MOST_KINDS:
        chosen[OTHER_KINDS] = None
    if NO_FAMILY in {*drawn.kinds, *drawn.target_kinds}:
        chosen[NO_FAMILY] = None
    return chosen


def _links(drawn: TaskMap) -> Iterator[Markup]:
    """Lines that join the tasks of a cluster, as short as they can be."""
    clusters = np.array(drawn.clusters)
    for number in np.unique(clusters):
        inside = drawn.places[np.flatnonzero(clusters == number)]
        ends = [(inside[one], inside[other]) for one, other in tree(inside)]
        path = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in ends)
        if path:
            yield element("path", d=path, class_="link")


def _task_marks(drawn: TaskMap, colours: Mapping[str, str | None]) -> Iterator[Markup]:
    for name, cluster, kind, (x, y) in zip(drawn.names, drawn.clusters, drawn.kinds, drawn.places, strict=False):
        colour = colours.get(kind)
        told = f"{name}, cluster-{cluster}" + (f", {kind}" if drawn.by_family else "")
        mark = element("circle", cx=float(x), cy=float(y), r=drawn.radius, fill=colour,
                       class_="mark")  # fmt: skip
        number = _number(cluster, x, y, drawn.radius)
        yield element("g", element("title", told), mark, number, class_=None if colour else "uncoloured")


def _number(cluster: int, x: float, y: float, radius: float) -> Markup | None:
    """The number of a cluster inside a mark, if it is large enough."""
    if radius < NUMBERED:
        return None
    size = radius * (1.05 if cluster < 10 else 0.92)
    word = element("text", cluster, x=float(x), y=float(y + 0.36 * size), class_="in-mark middle")
    return element("g", word, font_size=size)  # its size, which the style of texts would outdo


def _target_marks(drawn: TaskMap, colours: Mapping[str, str | None]) -> Iterator[Markup]:
    reach = drawn.radius * 1.05
    places = drawn.places[len(drawn.names) :]
    for target, kind, (x, y) in zip(drawn.targets, drawn.target_kinds, places, strict=True):
        colour = colours.get(kind)
        told = f"{target.task}: {target.said}" + (f"; {kind}" if drawn.by_family else "")
        path = f"M{x:.1f} {y - reach:.1f}l{reach:.1f} {reach:.1f}l{-reach:.1f} {reach:.1f}l{-reach:.1f} {-reach:.1f}z"
        mark = element("path", d=path, fill=colour, class_="target")
        yield element("g", element("title", told), mark, class_=None if colour else "uncoloured")


def _key(drawn: TaskMap, colours: Mapping[str, str | None]) -> Iterator[Markup]:
    """What the colours mean, how many tasks are of each, and what else is drawn."""
    counts = Counter(kind if kind in colours else OTHER_KINDS for kind in drawn.kinds)
    yield element("text", "families" if drawn.by_family else "clusters", x=KEY_LEFT, y=12, class_="axis")
    for row, (kind, colour) in enumerate(colours.items()):
        y = 30 + KEY_ROW * row
        dot = element("circle", cx=KEY_LEFT + 8, cy=y, r=7, fill=colour, class_="mark")
        number = None if drawn.by_family or colour is None else _number(int(kind.partition("-")[2]), KEY_LEFT + 8, y, 7)
        word = kind if len(kind) <= 26 else kind[:25] + "…"
        yield element("g", dot, number, class_=None if colour else "uncoloured")
        yield element("text", word, x=KEY_LEFT + 22, y=y + 4)
        yield element("text", counts[kind], x=KEY_LEFT + KEY_WIDTH - 4, y=y + 4, class_="small end")
    y = 30 + KEY_ROW * len(colours) + 8
    told = ["line: tasks of one cluster"]
    told += ["number: its cluster"] if drawn.by_family and drawn.radius >= NUMBERED else []
    told += ["diamond: a target"] if drawn.targets else []
    for row, words in enumerate(told):
        yield element("text", words, x=KEY_LEFT, y=y + 16 * row, class_="small")
