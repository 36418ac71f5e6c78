"""S, Y and X -> heat maps in the order of the clusters, as SVG for the page and as PNG for a paper.

Up to `MOST_CELLS` tasks a cell is an element that tells its two tasks and its value; above, the cells are one picture.
What was not measured is left open, and the hatched ground shows.
"""

import base64
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from manymetrics.model import Origin
from manymetrics.report.colours import HATCHED, MISSING, STEPS, WHITE, as_hex, palette, places, ramp
from manymetrics.report.markup import Markup, element, join
from manymetrics.report.png import png_bytes
from manymetrics.values import Bools, Floats, Ints

MOST_CELLS = 60  # tasks up to which every cell is an element of its own
MOST_NAMED = 30  # tasks up to which the rows carry names
MOST_PIXELS = 1000  # on a side; neighbouring cells are averaged above
PAIRS = "pairs"  # the name of the heat map that says yes or no
PLOT = 360.0  # units of a side
TOP, LEFT, RIGHT, BELOW = 44.0, 48.0, 8.0, 64.0  # around the plot
PICTURE = 1200  # pixels of a side of a PNG file, about


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A matrix of tasks by tasks, ready to be drawn."""

    name: str
    title: str
    caption: str  # what is to be seen in it
    key: str  # what the colours mean
    values: Floats  # (n, n) in the order of the clusters; NaN: not known
    names: tuple[str, ...]  # in the same order
    sizes: tuple[int, ...]  # tasks of each cluster
    low: float
    high: float
    ends: tuple[str, str]  # what the two ends of the colours are called
    directed: bool = False


def heat_maps(origin: Origin) -> list[HeatMap]:
    """The transfer matrix as measured and as filtered, the pairs that were kept, and the completed similarity."""
    order = cluster_order(origin)
    names = tuple(origin.clusters.names[place] for place in order)
    sizes = tuple(len(group) for group in origin.clusters)
    pairs = origin.pairs
    scores, alike = origin.transfer.scores[np.ix_(order, order)], origin.similarity.low_rank[np.ix_(order, order)]
    observed = np.where(pairs.known, pairs.alike, np.nan)[np.ix_(order, order)]
    unlike = ~np.eye(len(names), dtype=np.bool_)
    errors = int((np.abs(origin.similarity.errors) > 1e-6)[unlike].sum()) // 2
    known = f"{100 * pairs.share:.0f} % of the pairs are known"
    measured = _range(scores)
    similarity = _range(alike)
    return [
        HeatMap("transfer", "S, transfer",
                f"How well the encoder of one task serves another, by {origin.transfer.score}.",
                origin.transfer.score, scores, names, sizes, *measured, _ends(scores, *measured), True),
        HeatMap("transfer-by-target", "S, against what is usual",
                "The same scores, each column from its own mean: an easy task is easy for every encoder. "
                "This is what the filter reads.",
                "standard deviations from the column's mean", against_usual(scores), names, sizes, -2.0, 2.0,
                ("≤ −2", "≥ +2"), True),
        HeatMap(PAIRS, "Y, pairs that can be believed",
                f"Both directions say so: {known}, and the rest is left open (hatched).", "", observed, names, sizes,
                0.0, 1.0, ("apart", "alike")),
        HeatMap("similarity", "X, completed similarity",
                f"The low-rank completion of Y, with {errors:,} observed pairs taken for errors. It is what is "
                "clustered.", "similarity", alike, names, sizes, *similarity, _ends(alike, *similarity)),
    ]  # fmt: skip


def cluster_order(origin: Origin) -> Ints:
    """The places of the tasks, cluster by cluster, in each by name: (n,)."""
    names, labels = origin.clusters.names, origin.clusters.labels
    return np.array(sorted(range(len(names)), key=lambda place: (labels[place], names[place])), dtype=np.int64)


def against_usual(scores: Floats) -> Floats:
    """*(s_ij - mu_j) / sigma_j*: each score from what other encoders get on the task, in their standard deviations."""
    others = np.where(np.eye(len(scores), dtype=np.bool_), np.nan, scores)  # (n, n)
    known = ~np.isnan(others)
    count = np.maximum(known.sum(axis=0), 1)  # (n,)
    usual = np.where(known, others, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, others - usual, 0) ** 2).sum(axis=0) / count)
    return np.where(spread > 1e-12, (others - usual) / np.where(spread > 1e-12, spread, 1), np.nan)


def heat_map_svg(heat: HeatMap) -> Markup:
    """The heat map with its borders, axes and key."""
    n, left = len(heat.names), LEFT + _names_width(heat)
    width, height = left + PLOT + RIGHT, TOP + PLOT + BELOW
    scale = PLOT / max(n, 1)
    ground = element("rect", x=left, y=TOP, width=PLOT, height=PLOT, fill=f"url(#hatch-{heat.name})")
    cells = _cells(heat) if n <= MOST_CELLS else _picture(heat)
    shown = element(
        "g", cells, transform=f"translate({left:g} {TOP:g}) scale({scale:.6g})", shape_rendering="crispEdges"
    )
    return element(
        "svg", element("title", heat.title), _hatch(heat.name), ground, shown, _borders(heat, left, scale),
        _axes(heat, left, scale), _key(heat, left),
        class_="figure heat", viewBox=f"0 0 {width:g} {height:g}", role="img",
    )  # fmt: skip


def heat_map_png(heat: HeatMap) -> bytes:
    """The cells and the borders of the clusters as a picture of its own, without words."""
    values = _reduced(heat.values)
    side = max(1, PICTURE // max(len(values), 1))
    pixels = places(values, heat.low, heat.high).repeat(side, axis=0).repeat(side, axis=1)
    down, across = np.indices(pixels.shape)
    pixels[(pixels == MISSING) & ((down + across) // 3 % 4 == 0)] = HATCHED
    step = len(pixels) / max(len(heat.names), 1)
    for place in np.cumsum(heat.sizes)[:-1] * step:
        line = slice(round(place) - 1, round(place) + 1)
        pixels[line], pixels[:, line] = WHITE, WHITE
    return png_bytes(pixels, palette())


def _range(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [0.02, 0.98]) if len(known) else (0.0, 1.0)
    return float(low), float(high)


def _ends(values: Floats, low: float, high: float) -> tuple[str, str]:
    known = values[np.isfinite(values)]
    below, above = (known < low - 0.005).any(), (known > high + 0.005).any()
    return f"{'≤ ' * bool(below)}{_two(low)}", f"{'≥ ' * bool(above)}{_two(high)}"


def _two(value: float) -> str:
    """Two decimals, with a true minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _names_width(heat: HeatMap) -> float:
    return min(5.4 * max(map(len, heat.names), default=0), 120.0) if len(heat.names) <= MOST_NAMED else 0.0


def _cells(heat: HeatMap) -> Markup:
    colours = [as_hex(colour) for colour in palette()]
    found = places(heat.values, heat.low, heat.high)
    arrow = "→" if heat.directed else "·"
    return join(
        *(
            element(
                "path",
                element("title", f"{heat.names[i]} {arrow} {heat.names[j]}: {_in_words(heat, heat.values[i, j])}"),
                d=f"M{j} {i}h1v1h-1z",
                fill=colours[found[i, j]],
            )
            for i, j in np.argwhere(~np.isnan(heat.values)).tolist()
        )
    )


def _in_words(heat: HeatMap, value: float) -> str:
    return heat.ends[int(value)] if heat.name == PAIRS else f"{value:.3f}"


def _picture(heat: HeatMap) -> Markup:
    n, values = len(heat.names), _reduced(heat.values)
    raw = png_bytes(places(values, heat.low, heat.high), palette(), clear=MISSING)
    smooth = None if len(values) > PLOT else "pixelated"
    return element(
        "image",
        width=n,
        height=n,
        preserveAspectRatio="none",
        image_rendering=smooth,
        href=f"data:image/png;base64,{base64.b64encode(raw).decode()}",
    )


def _reduced(values: Floats) -> Floats:
    """The matrix with neighbours averaged until it has no more than `MOST_PIXELS` rows."""
    step = math.ceil(len(values) / MOST_PIXELS)
    if step <= 1:
        return values
    starts = np.arange(0, len(values), step)
    known: Bools = ~np.isnan(values)
    parts = [np.where(known, values, 0.0), known.astype(float)]
    total, count = (np.add.reduceat(np.add.reduceat(part, starts, axis=0), starts, axis=1) for part in parts)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _hatch(name: str) -> Markup:
    lines = element("path", d="M0 6L6 0M-1 1L1 -1M5 7L7 5", class_="hatch")
    ground = element("rect", width=6, height=6, class_="open")
    return element(
        "defs",
        element("pattern", ground, lines, id=f"hatch-{name}", width=6, height=6, patternUnits="userSpaceOnUse"),
        element("linearGradient", *_stops(), id=f"ramp-{name}"),
    )


def _stops(count: int = 17) -> list[Markup]:
    along = [number / (count - 1) for number in range(count)]
    return [element("stop", offset=f"{at:g}", stop_color=as_hex(ramp()[round(at * (STEPS - 1))])) for at in along]


def _borders(heat: HeatMap, left: float, scale: float) -> Markup:
    starts = np.concatenate([[0], np.cumsum(heat.sizes)]) * scale
    lines = [
        element("path", d=f"M{left + at:.2f} {TOP:g}v{PLOT:g}M{left:g} {TOP + at:.2f}h{PLOT:g}", class_="parting")
        for at in starts[1:-1]
    ]
    blocks = [
        element("rect", x=left + start, y=TOP + start, width=end - start, height=end - start, class_="block")
        for start, end in pairwise(starts)
    ]
    return join(*lines, *blocks)


def _axes(heat: HeatMap, left: float, scale: float) -> Markup:
    """The numbers of the clusters along two sides, names where there is room, and what the sides are."""
    words: list[Markup] = []
    starts = np.concatenate([[0], np.cumsum(heat.sizes)]) * scale
    named = len(heat.names) <= MOST_NAMED
    for number, (start, end) in enumerate(pairwise(starts)):
        middle = (start + end) / 2
        if end - start >= 10:
            words.append(element("text", number, x=left + middle, y=TOP - 6, class_="small middle"))
            if not named:
                words.append(element("text", number, x=left - 7, y=TOP + middle + 3, class_="small end"))
    if named:
        size = min(9.0, 0.85 * scale)
        for row, name in enumerate(heat.names):
            words.append(
                element("text", _shortened(name, 22), x=left - 6, y=TOP + (row + 0.5) * scale + size * 0.35,
                        font_size=size, class_="name end")
            )  # fmt: skip
    across, down = ("to task j", "from task i") if heat.directed else ("task j", "task i")
    words.append(element("text", f"{across}, by cluster", x=left + PLOT / 2, y=TOP - 24, class_="axis middle"))
    turned = f"translate(14 {TOP + PLOT / 2:g}) rotate(-90)"
    words.append(element("text", f"{down}, by cluster", transform=turned, class_="axis middle"))
    return join(*words)


def _key(heat: HeatMap, left: float) -> Markup:
    top = TOP + PLOT + 18
    open_box = element("rect", x=left + PLOT - 96, y=top, width=14, height=12, fill=f"url(#hatch-{heat.name})")
    words = element("text", "not known", x=left + PLOT - 76, y=top + 10, class_="small")
    parts = [open_box, words] if np.isnan(heat.values).any() else []
    if heat.name == PAIRS:
        for place, word, colour in ((0, heat.ends[1], ramp()[-1]), (70, heat.ends[0], ramp()[0])):
            parts.append(element("rect", x=left + place, y=top, width=14, height=12, fill=as_hex(colour)))
            parts.append(element("text", word, x=left + place + 20, y=top + 10, class_="small"))
        return join(*parts)
    bar = element("rect", x=left, y=top, width=170, height=12, fill=f"url(#ramp-{heat.name})")
    low, high = heat.ends
    return join(
        *parts, bar,
        element("text", low, x=left, y=top + 26, class_="small"),
        element("text", high, x=left + 170, y=top + 26, class_="small end"),
        element("text", heat.key, x=left, y=top + 41, class_="axis"),
    )  # fmt: skip


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
