"""Numbers -> the geometry of pictures; templates draw it, so that every word in a picture is escaped like any other."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import manymetrics as mm
from manymetrics.service.values import VersionInfo

WIDTH, HEIGHT = 640.0, 220.0  # of the picture of versions
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 12.0, 30.0  # around its plot
MOST_POINTS = 120  # the latest versions
MOST_PIXELS = 800  # on a side of the heat map; neighbours are averaged above
MOST_NAMED = 40  # tasks up to which rows carry names
STOPS = ((0, (49, 38, 92)), (0.35, (43, 100, 140)), (0.65, (64, 160, 133)), (1, (244, 236, 170)))  # low to high
COLOURS = 256
Matrix = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Point:
    """One version in the picture."""

    x: float
    y: float
    version: int
    accuracy: float
    current: bool


@dataclass(frozen=True)
class History:
    """The estimated accuracy of versions as a line, with its interval as a band."""

    width: float
    height: float
    points: Sequence[Point]
    line: str  # coordinates, as an SVG polyline takes them
    band: str
    marks: Sequence[tuple[float, str]]  # heights and what they stand for
    left: float
    right: float
    bottom: float


def history(versions: Sequence[VersionInfo]) -> History | None:
    """The picture of versions; None where none has an estimate."""
    known = [one for one in versions if one.estimate is not None][-MOST_POINTS:]
    if not known:
        return None
    span = WIDTH - LEFT - RIGHT
    across = [LEFT + span * (place + 0.5) / len(known) for place in range(len(known))]
    points, low, high = [], [], []
    for x, one in zip(across, known, strict=True):
        if one.estimate is not None:
            points.append(
                Point(round(x, 1), _height(one.estimate.accuracy), one.version, one.estimate.accuracy, one.current)
            )
            low.append(f"{x:.1f},{_height(one.estimate.low)}")
            high.append(f"{x:.1f},{_height(one.estimate.high)}")
    line = " ".join(f"{point.x},{point.y}" for point in points)
    marks = [(_height(share), f"{100 * share:.0f} %") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    band = " ".join([*high, *reversed(low)]) if len(points) > 1 else ""
    return History(WIDTH, HEIGHT, points, line, band, marks, LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM)


def _height(share: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)


@dataclass(frozen=True)
class Cluster:
    """Tasks that help one another, and where they are in the heat map."""

    number: int
    tasks: Sequence[str]
    start: int


@dataclass(frozen=True)
class TaskMap:
    """The similarity of every pair of tasks, cluster by cluster, as a picture."""

    size: int  # tasks
    picture: str  # a data URI
    clusters: Sequence[Cluster]
    names: Sequence[str]  # of the rows, where there is room for them
    low: float
    high: float


def task_map(model: mm.MetricModel) -> TaskMap:
    """The task map of a model."""
    names, labels = model.clusters.names, model.clusters.labels
    order = sorted(range(len(names)), key=lambda place: (labels[place], names[place]))
    values = np.asarray(model.similarity.low_rank)[np.ix_(order, order)]
    low, high = (float(end) for end in np.quantile(values, [0.02, 0.98])) if values.size else (0.0, 1.0)
    clusters, start = [], 0
    for number, tasks in enumerate(model.clusters):
        clusters.append(Cluster(number, sorted(tasks), start))
        start += len(tasks)
    shown = [names[place] for place in order] if len(order) <= MOST_NAMED else []
    return TaskMap(len(order), _picture(_averaged(values), low, high), clusters, shown, low, high)


def _averaged(
    values: Matrix,
) -> Matrix:
    step = -(-len(values) // MOST_PIXELS)
    if step <= 1:
        return values
    starts = np.arange(0, len(values), step)
    counts = np.diff([*starts, len(values)])
    total = np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1)
    return np.asarray(total / np.outer(counts, counts))


def _picture(values: Matrix, low: float, high: float) -> str:
    """A PNG by a palette, as a data URI."""
    shares = np.clip((values - low) / (high - low), 0, 1) if high > low else np.full(values.shape, 0.5)
    height, width = len(shares), len(shares.T)
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row is led by its filter: none
    rows[:, 1:] = np.rint(shares * (COLOURS - 1))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", header), (b"PLTE", _palette()), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    raw = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)
    return "data:image/png;base64," + base64.b64encode(raw).decode()


def _palette() -> bytes:
    along = np.linspace(0, 1, COLOURS)
    places = [place for place, _ in STOPS]
    channels = [np.interp(along, places, [colour[channel] for _, colour in STOPS]) for channel in range(3)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8).tobytes()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
