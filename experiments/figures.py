"""Results -> figures in SVG: scores by number of clusters, and gains."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from experiments.plan import WHOLE
from manymetrics.evaluation.scoring import Estimate
from manymetrics.report.page import printable, read_style

SCORES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy"}
CHART = (420.0, 290.0)  # width, height
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BELOW = 44.0, 14.0, 34.0, 42.0
LETTER = 6.3  # width of a letter of a label, about
VOID = {"circle", "path", "rect"}  # without an end tag, if they have no content
COLOURS = {  # what the variables of the style sheets are outside of a page
    "ink": "#1c2329", "muted": "#69737c", "paper": "#fdfcf9", "open": "#efede7", "hatch": "#bdbab1", "rule": "#dfdcd3",
    "ours": "#0a6aa6", "other": "#6f7780", "today": "#c05f14", "fourth": "#6b5bb5",
}  # fmt: skip


def page_figures(name: str, results: Mapping[str, Any]) -> dict[str, bytes]:
    """The figures of docs/results.md by their paths beside it: scores against K, and the gain of each part."""
    gains = [(row["method"], _estimate(row["gain"])) for row in results["ablations"]
             if row["applies"] and row["gain"] is not None and row["method"] != WHOLE]  # fmt: skip
    figures = {f"{name}-parts": gain_figure(gains)} if gains else {}
    for score, word in (("accuracy", "accuracy"), ("balanced_accuracy", "balanced")) if results["by_clusters"] else ():
        figures[f"{name}-clusters-{word}"] = cluster_figure(results["by_clusters"], score)
    return {f"images/{place}.svg": figure_file(figure) for place, figure in figures.items()}


def figure_file(figure: Markup) -> bytes:
    """A figure as an SVG file of its own, on a white background."""
    style = read_style("figures.css") + Path(__file__).with_name("figures.css").read_text(encoding="utf-8")
    style = re.sub(r"var\(--(\w+)\)", lambda match: COLOURS[match[1]], style)  # few programs know CSS variables
    tag, content = str(figure).removeprefix("<svg").split(">", 1)
    background = f'<style>{style}</style><rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg"{tag}>{background}{content}\n'.encode()


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element of SVG, its text escaped; attributes that are None are omitted, `class_` becomes `class`."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_"), printable(value))
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not content:
        return Markup("<{}{}/>").format(name, written)
    inside = Markup("").join(escape(printable(part)) for part in content)
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, inside)


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


def _estimate(raw: Mapping[str, float]) -> Estimate:
    """A stored number with its interval, which may be unknown."""
    return Estimate(raw["value"], raw.get("low", raw["value"]), raw.get("high", raw["value"]))


def in_percent(estimate: Estimate) -> str:
    """A share with its interval."""
    told = f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
    return told.replace(" ", "\u00a0")  # not broken into lines


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


def cluster_figure(points: Sequence[Mapping[str, Any]], score: str) -> Markup:
    """A score against the number of clusters, one line for each method, with intervals."""
    width, height = CHART
    floor = height - CHART_BELOW
    vertical = scale_over([_estimate(point[score]) for point in points], floor, CHART_TOP)
    counts = sorted({point["clusters"] for point in points})
    parts = [element("title", f"{SCORES[score]} against the number of clusters K")]
    for tick in vertical.ticks:
        parts.append(element("path", d=f"M{CHART_LEFT:g} {vertical(tick):.2f}H{width - CHART_RIGHT:g}", class_="grid"))
        parts.append(element("text", f"{100 * tick:.0f}", x=CHART_LEFT - 8, y=vertical(tick) + 4, class_="small end"))
    for count in counts:
        parts.append(element("text", count, x=_across(count, counts), y=floor + 18, class_="small middle"))
    parts.append(element("text", "clusters K", x=(width + CHART_LEFT) / 2, y=height - 6, class_="axis middle"))
    parts.append(element("text", f"{SCORES[score]}, %", x=4, y=14, class_="axis"))
    for number, method in enumerate(dict.fromkeys(point["method"] for point in points)):
        shift = 3.0 * (number % 4) - 1.5  # whiskers of two methods stand beside one another
        own = sorted((point for point in points if point["method"] == method), key=lambda point: int(point["clusters"]))
        marks = []
        for point in own:
            count, share = point["clusters"], _estimate(point[score])
            marks.append((_across(count, counts) + shift, share, f"{method}, K = {count}: {in_percent(share)}"))
        parts.append(_line(marks, vertical, number))
        parts.append(_chart_key(method, number, width))
    return element("svg", *parts, class_="figure chart", viewBox=f"0 0 {width:g} {height:g}", role="img")


def _across(count: int, counts: Sequence[int]) -> float:
    """Where a number of clusters stands: by its logarithm."""
    low, high = math.log(max(counts[0], 1)), math.log(max(counts[-1], 1))
    part = (math.log(max(count, 1)) - low) / (high - low) if high > low else 0.5
    return CHART_LEFT + 16 + part * (CHART[0] - CHART_LEFT - CHART_RIGHT - 32)


def _line(marks: Sequence[tuple[float, Estimate, str]], vertical: Scale, number: int) -> Markup:
    """Dots with their intervals, joined by a line; a mark is its place, its share and the words shown over it."""
    path = "M" + "L".join(f"{x:.2f} {vertical(one.value):.2f}" for x, one, _ in marks)
    whiskers = [
        element("path", d=f"M{x:.2f} {vertical(one.low):.2f}V{vertical(one.high):.2f}", class_="whisker")
        for x, one, _ in marks
    ]
    dots = [
        element("circle", element("title", words), cx=x, cy=vertical(one.value), r=4, class_="dot")
        for x, one, words in marks
    ]
    return element("g", *whiskers, element("path", d=path, class_="line"), *dots, class_=f"series-{number % 4}")


def _chart_key(method: str, number: int, width: float) -> Markup:
    """The method's name beside a dot of its colour, at the right above the plot."""
    right, height = width - CHART_RIGHT, 10.0 + 15 * number
    dot = element("circle", cx=right - 4, cy=height, r=4, class_="dot")
    return element(
        "g", dot, element("text", method, x=right - 13, y=height + 4, class_="label end"), class_=f"series-{number % 4}"
    )
