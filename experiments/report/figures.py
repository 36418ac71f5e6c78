"""Results -> figures: dots and whiskers, scores against the number of clusters, shares by step, tables in colour."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.report.markup import Markup, element
from experiments.report.reading import ACCURACY, SCORES, AtClusters, Row
from manymetrics.evaluation.scoring import Estimate
from manymetrics.report.image import MISSING, STEPS, colour_indices, hex_colour, palette
from manymetrics.values import Floats

STRIP_WIDTH, STRIP_HEIGHT = 260.0, 24.0
MARGIN = 8.0  # of a strip, left and right
CHART = (420.0, 290.0)  # width, height
STEP_CHART = (620.0, 230.0)  # width of the figure, height of the plot
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BELOW = 44.0, 14.0, 34.0, 42.0
CELL_WIDTH, CELL_HEIGHT = 34.0, 22.0
HARD_SPACE = "\u00a0"
LETTER = 6.3  # width of a letter of a label, about


@dataclass(frozen=True)
class Scale:
    """Shares between two round numbers -> places on a line."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, share: float) -> float:
        """Where a share stands, kept on the line."""
        part = (min(max(share, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round numbers along the line, five or so."""
        step = next((step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if (self.high - self.low) / step <= 6), 0.5)
        first = math.ceil(self.low / step - 1e-9)
        return [tick * step for tick in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scale_over(estimates: Sequence[Estimate], start: float, end: float) -> Scale:
    """A scale from the lowest to the highest end of the intervals, each rounded outwards to five points."""
    low = min((one.low for one in estimates), default=0.0)
    high = max((one.high for one in estimates), default=1.0)
    low, high = math.floor(low * 20 - 1e-9) / 20, math.ceil(high * 20 + 1e-9) / 20
    return Scale(low, max(high, low + 0.05), start, end)


def strip_scale(rows: Sequence[Row]) -> Scale:
    """The scale that the strips of these rows share."""
    return scale_over(_shown(rows), MARGIN, STRIP_WIDTH - MARGIN)


def _shown(rows: Sequence[Row]) -> list[Estimate]:
    """All that the marks of these rows have to reach: their intervals and the paper's figures."""
    papers = [Estimate(row.paper, row.paper, row.paper) for row in rows if row.paper is not None]
    return [*(row.scores[ACCURACY] for row in rows if ACCURACY in row.scores), *papers]


def strip(row: Row, scale: Scale, reference: float | None = None) -> Markup:
    """One row's accuracy: a dot, its interval over sources, the one over seeds, and the paper's figure."""
    grid = [element("path", d=f"M{scale(tick):.2f} 0v{STRIP_HEIGHT:g}", class_="grid") for tick in scale.ticks]
    if reference is not None:
        grid.append(element("path", d=f"M{scale(reference):.2f} 0v{STRIP_HEIGHT:g}", class_="reference"))
    return element(
        "svg", element("title", in_words(row)), *grid, *marks(row, scale, STRIP_HEIGHT / 2),
        class_="figure strip", viewBox=f"0 0 {STRIP_WIDTH:g} {STRIP_HEIGHT:g}", role="img",
    )  # fmt: skip


def strip_axis(scale: Scale) -> Markup:
    """The numbers above a column of strips."""
    words = [element("text", f"{100 * tick:.0f}", x=scale(tick), y=12, class_="ticks middle") for tick in scale.ticks]
    return element("svg", *words, class_="figure strip", viewBox=f"0 0 {STRIP_WIDTH:g} 14", aria_hidden="true")


def marks(row: Row, scale: Scale, middle: float) -> list[Markup]:
    """The dot, whiskers and diamond of a row at the given height."""
    found: list[Markup] = []
    if ACCURACY in row.scores:
        score = row.scores[ACCURACY]
        found.append(element("path", d=f"M{scale(score.low):.2f} {middle:g}H{scale(score.high):.2f}", class_="whisker"))
        if ACCURACY in row.over_seeds:
            seeds = row.over_seeds[ACCURACY]
            found.append(
                element("path", d=f"M{scale(seeds.low):.2f} {middle:g}H{scale(seeds.high):.2f}", class_="seeds")
            )
    if row.paper is not None:
        at = scale(row.paper)
        found.append(element("path", d=f"M{at:.2f} {middle - 5:g}l5 5l-5 5l-5 -5z", class_="diamond"))
    if ACCURACY in row.scores:
        found.append(element("circle", cx=scale(row.scores[ACCURACY].value), cy=middle, r=4, class_="dot"))
    return [element("g", *found, class_=f"of-{row.group if row.group in ('ours', 'paper', 'today') else 'today'}")]


def in_words(row: Row) -> str:
    """A row's accuracy in words."""
    parts = [row.method]
    if ACCURACY in row.scores:
        parts.append(f"{in_percent(row.scores[ACCURACY])} over sources")
    if ACCURACY in row.over_seeds:
        parts.append(f"{in_percent(row.over_seeds[ACCURACY])} over seeds")
    if row.paper is not None:
        parts.append(f"the paper: {percent(row.paper)}")
    return "; ".join(parts)


def in_percent(estimate: Estimate) -> str:
    """A share with its interval."""
    return f"{percent(estimate.value)} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]".replace(" ", HARD_SPACE)


def percent(share: float) -> str:
    """A share, not to be parted from its sign."""
    return f"{100 * share:.1f}{HARD_SPACE}%"


def gain_figure(gains: Sequence[tuple[str, Estimate]]) -> Markup:
    """What each part is worth, below one another: points of accuracy that the whole is ahead without it."""
    left = 20 + LETTER * max(len(name) for name, _ in gains)
    height = 52 + 22.0 * len(gains)
    scale = scale_over([Estimate(0, 0, 0), *(gain for _, gain in gains)], left, left + 340)
    parts = [element("title", "What each part is worth, in points of accuracy")]
    for tick in scale.ticks:
        kind = "reference" if abs(tick) < 1e-9 else "grid"
        parts.append(element("path", d=f"M{scale(tick):.2f} 8V{height - 44:g}", class_=kind))
        word = f"{100 * tick:+.0f}".replace("-", "−") if abs(tick) > 1e-9 else "0"
        parts.append(element("text", word, x=scale(tick), y=height - 28, class_="small middle"))
    words = "points of accuracy that the whole is ahead; 95 % over sources and texts"
    parts.append(element("text", words, x=left + 170, y=height - 8, class_="axis middle"))
    for place, (name, gain) in enumerate(gains):
        middle = 18 + 22.0 * place
        whisker = element("path", d=f"M{scale(gain.low):.2f} {middle:g}H{scale(gain.high):.2f}", class_="whisker")
        dot = element("circle", cx=scale(gain.value), cy=middle, r=4, class_="dot")
        parts.append(element("text", name, x=left - 12, y=middle + 4, class_="label end"))
        parts.append(element("g", element("title", f"{name}: {in_points(gain)}"), whisker, dot, class_="of-ours"))
    return element("svg", *parts, class_="figure", viewBox=f"0 0 {left + 360:g} {height:g}", role="img")


def in_points(gain: Estimate) -> str:
    """A gain with its interval."""
    return f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]".replace("-", "−")


def cluster_figure(points: Sequence[AtClusters], score: str) -> Markup:
    """A score against the number of clusters, one line for each method, with intervals."""
    points = [point for point in points if score in point.scores]
    width, height = CHART
    floor = height - CHART_BELOW
    vertical = scale_over([point.scores[score] for point in points], floor, CHART_TOP)
    counts = sorted({point.clusters for point in points})
    parts = [element("title", f"{SCORES[score]} against the number of clusters K")]
    for tick in vertical.ticks:
        parts.append(element("path", d=f"M{CHART_LEFT:g} {vertical(tick):.2f}H{width - CHART_RIGHT:g}", class_="grid"))
        parts.append(element("text", f"{100 * tick:.0f}", x=CHART_LEFT - 8, y=vertical(tick) + 4, class_="small end"))
    for count in counts:
        parts.append(element("text", count, x=_across(count, counts), y=floor + 18, class_="small middle"))
    parts.append(element("text", "clusters K", x=(width + CHART_LEFT) / 2, y=height - 6, class_="axis middle"))
    parts.append(element("text", f"{SCORES[score]}, %", x=4, y=14, class_="axis"))
    for number, method in enumerate(dict.fromkeys(point.method for point in points)):
        own = sorted((point for point in points if point.method == method), key=lambda point: point.clusters)
        parts.append(_line(own, score, counts, vertical, number))
        parts.append(_chart_key(method, number, width))
    return element("svg", *parts, class_="figure chart", viewBox=f"0 0 {width:g} {height:g}", role="img")


def _across(count: int, counts: Sequence[int]) -> float:
    """Where a number of clusters stands: by its logarithm."""
    low, high = math.log(max(counts[0], 1)), math.log(max(counts[-1], 1))
    part = (math.log(max(count, 1)) - low) / (high - low) if high > low else 0.5
    return CHART_LEFT + 16 + part * (CHART[0] - CHART_LEFT - CHART_RIGHT - 32)


def _line(points: Sequence[AtClusters], score: str, counts: Sequence[int], vertical: Scale, number: int) -> Markup:
    shift = 3.0 * (number % 4) - 1.5  # whiskers of two methods stand beside one another
    places_of = [(_across(point.clusters, counts) + shift, point.scores[score]) for point in points]
    path = "M" + "L".join(f"{x:.2f} {vertical(one.value):.2f}" for x, one in places_of)
    whiskers = [
        element("path", d=f"M{x:.2f} {vertical(one.low):.2f}V{vertical(one.high):.2f}", class_="whisker")
        for x, one in places_of
    ]
    dots = [
        element(
            "circle", element("title", f"{point.method}, K = {point.clusters}: {in_percent(point.scores[score])}"),
            cx=x, cy=vertical(one.value), r=4, class_="dot",
        )
        for point, (x, one) in zip(points, places_of, strict=True)
    ]  # fmt: skip
    return element("g", *whiskers, element("path", d=path, class_="line"), *dots, class_=f"series-{number % 4}")


def _chart_key(method: str, number: int, width: float) -> Markup:
    """The method's name beside a dot of its colour, at the right above the plot."""
    right, height = width - CHART_RIGHT, 10.0 + 15 * number
    dot = element("circle", cx=right - 4, cy=height, r=4, class_="dot")
    return element(
        "g", dot, element("text", method, x=right - 13, y=height + 4, class_="label end"), class_=f"series-{number % 4}"
    )


def step_figure(title: str, steps: Sequence[str], lines: Mapping[str, Sequence[Estimate | None]]) -> Markup:
    """Shares from step to step, one line for each kind, with ranges; a step without a share is left out."""
    width, left, top = STEP_CHART[0], CHART_LEFT, CHART_TOP + 15.0 * len(lines)
    height, floor = top + STEP_CHART[1] + CHART_BELOW, top + STEP_CHART[1]
    vertical = Scale(0.0, 1.0, floor, top)
    room = (width - left - CHART_RIGHT) / len(steps)
    parts = [element("title", title), element("text", f"{title}, %", x=4, y=14, class_="axis")]
    for tick in vertical.ticks:
        parts.append(element("path", d=f"M{left:g} {vertical(tick):.2f}H{width - CHART_RIGHT:g}", class_="grid"))
        parts.append(element("text", f"{100 * tick:.0f}", x=left - 8, y=vertical(tick) + 4, class_="small end"))
    for place, step in enumerate(steps):
        parts.append(element("text", step, x=left + (place + 0.5) * room, y=floor + 20, class_="label middle"))
    for number, (kind, shares) in enumerate(lines.items()):
        shift = 7.0 * (number - (len(lines) - 1) / 2)  # marks of two kinds stand beside one another
        known = [(left + (place + 0.5) * room + shift, one, f"{kind}, {steps[place]}: {in_percent(one)}")
                 for place, one in enumerate(shares) if one is not None]  # fmt: skip
        parts.append(_step_line(known, vertical, number))
        height_of_key = 32.0 + 15 * number
        dot = element("circle", cx=left + 4, cy=height_of_key, r=4, class_="dot")
        word = element("text", kind, x=left + 14, y=height_of_key + 4, class_="label")
        parts.append(element("g", dot, word, class_=f"series-{number % 4}"))
    return element("svg", *parts, class_="figure chart", viewBox=f"0 0 {width:g} {height:g}", role="img")


def _step_line(points: Sequence[tuple[float, Estimate, str]], vertical: Scale, number: int) -> Markup:
    """Dots with their ranges, joined."""
    path = "M" + "L".join(f"{x:.2f} {vertical(one.value):.2f}" for x, one, _ in points)
    drawn = [element("path", d=path, class_="line")] if points else []
    for x, one, told in points:
        whisker = element("path", d=f"M{x:.2f} {vertical(one.low):.2f}V{vertical(one.high):.2f}", class_="whisker")
        dot = element("circle", element("title", told), cx=x, cy=vertical(one.value), r=4, class_="dot")
        drawn += [whisker, dot] if one.high > one.low else [dot]
    return element("g", *drawn, class_=f"series-{number % 4}")


@dataclass(frozen=True, eq=False)
class ColourTable:
    """Numbers by row and column, ready to be drawn; NaN is left open."""

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats  # (rows, columns): what is written
    shades: Floats  # (rows, columns): what is coloured, 0 .. 1
    write: Callable[[float], str]  # a number as it stands in its cell


def colour_table(table: ColourTable) -> Markup:
    """The numbers in cells whose colour shows them, with slanted names above."""
    left = 14 + LETTER * min(max(map(len, table.rows), default=0), 26)
    top = 14 + 0.72 * LETTER * min(max(map(len, table.columns), default=0), 26)
    width = left + CELL_WIDTH * len(table.columns) + 0.72 * (top + 4)
    height = top + CELL_HEIGHT * len(table.rows) + 4
    found, colours = colour_indices(table.shades, 0.0, 1.0), [hex_colour(colour) for colour in palette()]
    parts = [element("title", table.title)]
    for column, name in enumerate(table.columns):
        turned = f"translate({left + CELL_WIDTH * (column + 0.45):g} {top - 6:g}) rotate(-45)"
        parts.append(element("text", _cut(name), element("title", name), transform=turned, class_="label"))
    for row, name in enumerate(table.rows):
        middle = top + CELL_HEIGHT * (row + 0.5)
        parts.append(element("text", _cut(name), element("title", name), x=left - 8, y=middle + 4, class_="label end"))
        for column in range(len(table.columns)):
            place, value = int(found[row, column]), float(table.values[row, column])
            at = left + CELL_WIDTH * column
            fill = None if place == MISSING else colours[place]
            box = element("rect", x=at + 0.5, y=middle - CELL_HEIGHT / 2 + 0.5, width=CELL_WIDTH - 1,
                          height=CELL_HEIGHT - 1, fill=fill, class_="open" if fill is None else None)  # fmt: skip
            word = None if np.isnan(value) else table.write(value)
            number = element("text", word, x=at + CELL_WIDTH / 2, y=middle + 4, class_="cell middle")
            hover = element("title", f"{name}, {table.columns[column]}: {word or 'not measured'}")
            parts.append(element("g", hover, box, number if word else None, fill=_ink_on(place)))
    frame = f"0 0 {width:.1f} {height:.1f}"
    return element("svg", *parts, class_="figure colours", viewBox=frame, width=round(1.2 * width), role="img")


def _ink_on(place: int) -> str:
    """A colour for text that can be read on this colour of the ramp."""
    return "#ffffff" if place < STEPS * 0.55 else "#16202a"


def _cut(text: str) -> str:
    return text if len(text) <= 26 else text[:25] + "…"
