"""Results -> tables. On a narrow screen every row becomes a card, its cells led by `data-label`."""

from collections.abc import Sequence

from experiments.plan import OURS, PAPER, TODAY
from experiments.report.figures import strip, strip_axis, strip_scale
from experiments.report.markup import Markup, element
from experiments.report.reading import ACCURACY, BALANCED, MACRO_F1, SCORES, Row
from manymetrics.cli.output import as_time
from manymetrics.evaluation.scoring import Estimate

GROUPS = {OURS: "this package", PAPER: "baseline of the paper", TODAY: "baseline of today"}


def method_table(rows: Sequence[Row], *, reference: Row | None) -> Markup:
    """Every method with its scores, intervals, the paper's figure, and how far RobustTC-FSL is ahead."""
    scale = strip_scale(rows)
    level = reference.scores[ACCURACY].value if reference and ACCURACY in reference.scores else None
    with_paper = any(row.paper is not None for row in rows)
    with_gain = any(row.gain is not None for row in rows)
    heads = [
        _head("method", class_="text"),
        _head("accuracy, %"),
        element("th", element("span", "accuracy with 95 % intervals", class_="unseen"), strip_axis(scale), scope="col",
                class_="strips"),
        _head("balanced accuracy, %"),
        _head("macro-F1, %"),
        _head("paper, %") if with_paper else None,
        _head(f"{reference.method if reference else 'ours'} ahead by, points") if with_gain else None,
        _head("time"),
    ]  # fmt: skip
    body = []
    for row in rows:
        drawn = (
            element("td", strip(row, scale, level), class_="strips") if row.scores or row.paper is not None else None
        )
        cells = [
            _method(row),
            _score(row, ACCURACY) if row.applies else element("td", _why_not(row), class_="muted", data_value=""),
            drawn or element("td", class_="strips"),
            _score(row, BALANCED),
            _score(row, MACRO_F1),
            _number("paper", row.paper, f"{100 * (row.paper or 0):.1f}") if with_paper else None,
            _gain(row.gain, row is reference) if with_gain else None,
            _number("time", row.seconds if row.applies else None, as_time(row.seconds or 0)),
        ]
        body.append(element("tr", *cells, class_=f"of-{row.group if row.group in GROUPS else TODAY}"))
    head = element("thead", element("tr", *heads))
    return element("table", head, element("tbody", *body), class_="methods cards sortable")


def _why_not(row: Row) -> str:
    return "not run" if row.note.startswith("not run") else "does not apply"


def method_legend(rows: Sequence[Row]) -> Markup:
    """What the marks of the strips mean."""
    groups = [
        element("span", element("i", class_="mark"), GROUPS[group], class_=f"key of-{group}")
        for group in GROUPS
        if any(row.group == group for row in rows)
    ]
    paper = element("span", element("i", class_="mark diamond"), "the paper's figure", class_="key of-paper")
    lines = [
        element("span", element("i", class_="mark thin"), "interval over sources", class_="key"),
        element("span", element("i", class_="mark thick"), "interval over seeds", class_="key"),
    ]
    return element("p", *groups, paper if any(row.paper is not None for row in rows) else None, *lines, class_="legend")


def _head(word: str, class_: str = "number") -> Markup:
    return element("th", word, scope="col", class_=class_)


def _method(row: Row) -> Markup:
    note = element("small", row.note) if row.note else None
    group = element("small", GROUPS.get(row.group, row.group), class_="unseen")
    return element("td", element("i", class_="mark"), element("b", row.method), group, note, class_="text first",
                   data_value=row.method)  # fmt: skip


def _score(row: Row, score: str) -> Markup:
    label = SCORES[score]
    if score not in row.scores:
        return element("td", "–", class_="number muted", data_label=label, data_value="")
    found = row.scores[score]
    return element(
        "td", element("b", f"{100 * found.value:.1f}"), " ", _interval(found), class_="number", data_label=label,
        data_value=f"{found.value:.6f}",
    )  # fmt: skip


def _interval(found: Estimate, sign: str = "") -> Markup:
    return element("small", f"{100 * found.low:{sign}.1f} to {100 * found.high:{sign}.1f}".replace("-", "−"))


def _gain(gain: Estimate | None, itself: bool) -> Markup:
    label = "ahead by, points"
    if gain is None:
        return element("td", "–" if not itself else "", class_="number muted", data_label=label, data_value="")
    word = f"{100 * gain.value:+.1f}".replace("-", "−")
    sure = "sure" if gain.low > 0 or gain.high < 0 else "unsure"
    return element(
        "td", element("b", word), " ", _interval(gain, "+"), class_=f"number {sure}", data_label=label,
        data_value=f"{gain.value:.6f}",
    )  # fmt: skip


def _number(label: str, value: float | None, word: str) -> Markup:
    if value is None:
        return element("td", "–", class_="number muted", data_label=label, data_value="")
    return element("td", word, class_="number", data_label=label, data_value=f"{value:.6f}")
