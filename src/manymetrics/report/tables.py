"""The metrics of a model, facts about it and the targets it was tried on -> tables.

On a narrow screen every row becomes a card.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from manymetrics.model import Origin
from manymetrics.report.markup import Markup, data_name, element, join
from manymetrics.report.reading import RoutedTarget

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


def target_table(targets: Sequence[RoutedTarget], families: Mapping[str, str] | None = None) -> Markup:
    """The targets of an evaluation: what each was taken for and why, and what answered it."""
    heads = ["target", *(["family"] if families else []), "accuracy", "taken for", "probability", "because", "heaviest"]
    body = []
    for target in targets:
        heaviest = sorted(target.weights, key=lambda name: -target.weights[name])[:FEW]
        mixed = ", ".join(f"{name} {target.weights[name]:.0%}" for name in heaviest)
        cells = [
            element("td", data_name(target.task), class_="text"),
            *([_labelled("family", data_name(families.get(target.task, "–")))] if families else []),
            _labelled("accuracy", f"{target.accuracy:.1%}"),
            _labelled("taken for", _taken_for(target, families), class_="text wide"),
            _labelled("probability", f"{target.probability:.0%}" if target.alike else "–"),
            _labelled("because", target.reason or "nothing told", class_="text wide"),
            _labelled("heaviest", target.fallback or mixed, class_="text wide"),
        ]
        body.append(element("tr", *cells))
    head = element("thead", element("tr", *(element("th", word, scope="col") for word in heads)))
    return element("table", head, element("tbody", *body), class_="metrics targets cards")


def _taken_for(target: RoutedTarget, families: Mapping[str, str] | None) -> Markup:
    """The tasks, their cluster, and their families where these are known."""
    if not target.alike:
        return join("no cluster")
    found = dict.fromkeys(families[name] for name in target.alike if name in families) if families else {}
    told = f"cluster-{target.cluster}" + (f"; {', '.join(found)}" if found else "")
    return join(some_names(target.alike), " ", element("small", told))


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
