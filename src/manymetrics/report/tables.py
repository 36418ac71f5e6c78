"""The metrics of a model and facts about it -> tables. On a narrow screen every row becomes a card."""

from collections.abc import Mapping, Sequence
from typing import Any

from manymetrics.model import Origin
from manymetrics.report.markup import Markup, data_name, element, join

FEW = 3  # names shown where there is no room for all


def metric_table(origin: Origin) -> Markup:
    """The metrics that a new task mixes."""
    body = []
    for metric in origin.metrics:
        tasks = [str(name) for name in metric.get("tasks", ())]
        how = "shared labels" if "labels" in metric else str(metric.get("rule", ""))
        temperature = f"{float(metric['temperature']):.3g}" if "temperature" in metric else "–"
        cells = [
            element("td", data_name(str(metric.get("name", ""))), class_="text"),
            _labelled("kind", str(metric.get("kind", ""))),
            _labelled("compares by", how),
            _labelled("temperature", temperature),
            _labelled("learned from", some_names(tasks) if tasks else "no labels", class_="text wide"),
        ]
        body.append(element("tr", *cells))
    heads = ("metric", "kind", "compares by", "temperature", "learned from")
    head = element("thead", element("tr", *(element("th", word, scope="col") for word in heads)))
    return element("table", head, element("tbody", *body), class_="metrics cards")


def some_names(names: Sequence[str], most: int = FEW) -> Markup:
    """The first few names, and how many more there are."""
    shown = [part for name in names[:most] for part in (", ", data_name(name))][1:]
    more = f" and {len(names) - most} more" if len(names) > most else None
    return join(*shown, more)


def facts(pairs: Mapping[str, Any]) -> Markup:
    """Names and values, as a list."""
    rows = [
        element("div", element("dt", name), element("dd", value if isinstance(value, Markup) else _plain(value)))
        for name, value in pairs.items()
    ]
    return element("dl", *rows, class_="facts")


def _labelled(label: str, content: object, class_: str = "text") -> Markup:
    return element("td", content, class_=class_, data_label=label)


def _plain(value: object) -> str:
    if value is None:
        return "chosen from the data"
    return str(value).lower() if isinstance(value, bool) else str(value)
