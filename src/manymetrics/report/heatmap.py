"""S, Y and X -> heat maps with tasks ordered by cluster, as SVG.

Up to `MAX_CELLS` tasks, a cell is an element whose tooltip names its two tasks and its value; for more tasks, the cells
are one image. Cells without a value are hatched.
"""

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from manymetrics.model import Origin
from manymetrics.report.image import STEPS, colour_indices, hex_colour, palette, png_bytes
from manymetrics.report.layout import shorten
from manymetrics.report.page import render
from manymetrics.values import Floats

MAX_CELLS = 60  # tasks up to which each cell is an element
MAX_NAMED = 30  # tasks up to which rows are labelled with names
MAX_NAME = 22  # characters of a name
LETTER_WIDTH = 5.8  # units of a character of a name
MAX_PIXELS = 1000  # of a side; of larger matrices, each second, third ... task is shown
PLOT = 360.0  # units of a side of the plot
TOP, LEFT = 44.0, 48.0  # margins of the plot
MIN_BLOCK = 10.0  # units of a cluster that is labelled with its number
GRADIENT_STOPS = 17
PAIRS = "pairs"


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A matrix of tasks by tasks, ready to be drawn."""

    name: str
    title: str
    caption: str
    unit: str  # of the values
    values: Floats  # (n, n) in the order of the clusters; NaN: unknown
    names: tuple[str, ...]  # in the same order
    sizes: tuple[int, ...]  # tasks of each cluster
    low: float  # value of the first colour
    high: float  # value of the last colour
    ends: tuple[str, str]  # what `low` and `high` are called
    directed: bool = False  # whether (i, j) differs from (j, i)


def heatmaps(origin: Origin) -> list[HeatMap]:
    """The transfer matrix S, the filtered pairs Y, and the completed similarity X."""
    order = np.lexsort((np.array(origin.clusters.names), origin.clusters.labels))  # tasks by cluster, then by name
    blocks = np.ix_(order, order)
    scores, similarity = origin.transfer.scores[blocks], origin.similarity.low_rank[blocks]
    pairs = np.where(origin.pairs.observed, origin.pairs.similar, np.nan)[blocks]
    names = tuple(origin.clusters.names[index] for index in order)
    sizes = tuple(len(group) for group in origin.clusters)
    off_diagonal = ~np.eye(len(names), dtype=np.bool_)
    errors = int((np.abs(origin.similarity.errors) > 1e-6)[off_diagonal].sum()) // 2
    return [
        HeatMap("transfer", "S, transfer", f"Score of the encoder of one task on another, by {origin.transfer.score}.",
                origin.transfer.score, scores, names, sizes, *_range(scores), directed=True),
        HeatMap(PAIRS, "Y, reliable pairs",
                f"Pairs that the filter keeps: {100 * origin.pairs.share:.0f} % of all. Others are hatched.",
                "", pairs, names, sizes, 0.0, 1.0, ("dissimilar", "similar")),
        HeatMap("similarity", "X, completed similarity",
                f"The low-rank completion of Y, which is clustered. {errors:,} observed pairs are treated as errors.",
                "similarity", similarity, names, sizes, *_range(similarity)),
    ]  # fmt: skip


def heatmap_svg(heatmap: HeatMap) -> Markup:
    """The heat map with cluster borders, axes and legend."""
    n, scale = len(heatmap.names), PLOT / max(len(heatmap.names), 1)
    edges = scale * np.cumsum([0, *heatmap.sizes])  # borders of the clusters: (clusters + 1,)
    names = [shorten(name, MAX_NAME) for name in heatmap.names] if n <= MAX_NAMED else []
    width = LETTER_WIDTH * max(map(len, names), default=0)
    colours = [hex_colour(colour) for colour in palette()[:STEPS]]
    return render(
        "heatmap.svg", heatmap=heatmap, names=names, left=LEFT + width, top=TOP, plot=PLOT, scale=scale,
        blocks=list(pairwise(edges.tolist())), min_block=MIN_BLOCK, is_pairs=heatmap.name == PAIRS,
        cells=_cells(heatmap, colours) if n <= MAX_CELLS else (), image=None if n <= MAX_CELLS else _image_uri(heatmap),
        has_unknown=bool(np.isnan(heatmap.values).any()), smooth=n > PLOT,
        gradient=[colours[round(at)] for at in np.linspace(0, STEPS - 1, GRADIENT_STOPS)],
    )  # fmt: skip


def _range(values: Floats) -> tuple[float, float, tuple[str, str]]:
    """The central 96 % of the values, and how its ends are labelled."""
    known = values[np.isfinite(values)]
    low, high = (float(end) for end in np.quantile(known, [0.02, 0.98])) if len(known) else (0.0, 1.0)
    return low, high, (f"≤ {low:z.2f}", f"≥ {high:z.2f}")


def _cells(heatmap: HeatMap, colours: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Row, column, colour and tooltip of each cell that has a value."""
    indices = colour_indices(heatmap.values, heatmap.low, heatmap.high)
    arrow = "→" if heatmap.directed else "·"
    for i, j in np.argwhere(~np.isnan(heatmap.values)).tolist():
        value = heatmap.values[i, j]
        text = heatmap.ends[int(value)] if heatmap.name == PAIRS else f"{value:.3f}"
        yield i, j, colours[indices[i, j]], f"{heatmap.names[i]} {arrow} {heatmap.names[j]}: {text}"


def _image_uri(heatmap: HeatMap) -> str:
    step = math.ceil(len(heatmap.values) / MAX_PIXELS)
    indices = colour_indices(heatmap.values[::step, ::step], heatmap.low, heatmap.high)
    return f"data:image/png;base64,{base64.b64encode(png_bytes(indices)).decode()}"
