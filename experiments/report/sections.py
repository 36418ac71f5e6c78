"""Results -> the header and the sections of a page about an experiment; a section that has nothing to show is None."""

from collections.abc import Mapping

import numpy as np

from experiments.plan import OURS
from experiments.report.figures import ColourTable, cluster_figure, colour_table, in_percent, percent
from experiments.report.markup import Markup, element, facts, isolated, join, some_names
from experiments.report.reading import ACCURACY, BALANCED, Results, Row, Target
from experiments.report.tables import method_legend, method_table
from manymetrics.cli.output import as_time
from manymetrics.model import Origin
from manymetrics.report.page import Header, Section, code
from manymetrics.report.sections import (
    clusters_section,
    map_section,
    matrices_section,
    metrics_section,
    provenance_section,
)

FAR_BELOW = 0.25  # a method this far below the best of its row has the darkest colour
HEAVIEST = 3  # metrics shown of a target


def experiment_header(results: Results, origin: Origin) -> Header:
    """The top of the page: what was measured, on what, and the numbers to remember."""
    made = {
        f"seed{'s' * (len(results.seeds) != 1)}": ", ".join(map(str, results.seeds)),
        "data": code(results.data[:12]),
        "manymetrics": results.version,
        "took": as_time(results.seconds),
    }
    tag = "quick run: fewer seeds, capped tasks" if results.quick else None
    tiles = _tiles(results, len(origin.clusters))
    lead = _lead(results, len(origin.clusters.names))
    return Header(f"RobustTC-FSL on {results.experiment}", lead, tiles, made, tag, results.command)


def experiment_sections(results: Results, origin: Origin) -> list[Section]:
    """The sections about the results, with those about the model of the first seed among them."""
    made = [
        methods(results),
        against_clusters(results),
        map_section(origin),
        clusters_section(origin),
        matrices_section(origin),
        targets(results, origin),
        ablations(results),
        metrics_section(origin),
        conditions(results),
        provenance_section(origin),
    ]
    return [section for section in made if section is not None]


def methods(results: Results) -> Section | None:
    """The main table."""
    if not results.rows:
        return None
    words = element(
        "p", "Means over the target tasks. Beside each number its 95 % interval, had other sources been drawn. "
        "The dotted line is the method all others are compared with; the comparison is paired, target by target, and "
        "grey where the interval holds zero.",
    )  # fmt: skip
    shown = element("div", method_table(results.rows, reference=results.main), class_="wide")
    by_target = accuracy_table(results)
    parts = [words, method_legend(results.rows), shown]
    if by_target:
        parts += [
            element("h3", "Accuracy by target"),
            _caption("Per cent. The lighter, the nearer to the best method of the row."),
            element("div", colour_table(by_target), class_="wide"),
        ]
    return Section("results", "Results", "Every method, side by side", join(*parts))


def against_clusters(results: Results) -> Section | None:
    """Scores against the number of clusters."""
    points = results.by_clusters
    if not points:
        return None
    charts = [
        element("figure", cluster_figure(points, score))
        for score in (ACCURACY, BALANCED)
        if any(score in point.scores for point in points)
    ]
    words = element(
        "p", "One metric for all tasks stands at K = 1. Whiskers are 95 % intervals over sources and texts."
    )
    content = join(words, element("div", *charts, class_="pair"))
    return Section("number-of-clusters", "Clusters K", "How many clusters?", content)


def targets(results: Results, origin: Origin) -> Section | None:
    """The weights of each target, and the tasks of the bank that are near to it."""
    if not results.targets:
        return None
    made_of = {str(metric.get("name")): [str(name) for name in metric.get("tasks", ())] for metric in origin.metrics}
    table = weight_table(results, list(made_of))
    words = "How much each metric counts for each target, and whose texts in the bank are like the target's own."
    cards = [_target_card(target, made_of, results.main) for target in results.targets]
    shown = element("div", colour_table(table), class_="wide") if table else None
    return Section(
        "targets", "Targets", f"{len(results.targets)} targets, each with its own metric",
        join(element("p", words), _caption("Weights alpha; each row sums to one."), shown,
             element("div", *cards, class_="deck")),
    )  # fmt: skip


def ablations(results: Results) -> Section | None:
    """The method with a part taken out or exchanged."""
    if not results.ablations:
        return None
    words = element("p", "One part of the method taken out or exchanged, all else alike.")
    shown = element("div", method_table(results.ablations, reference=results.main), class_="wide")
    return Section("ablations", "Ablations", "What each part is worth", join(words, shown))


def conditions(results: Results) -> Section:
    """What it takes to measure these numbers again."""
    made = {
        "command": code(results.command),
        "data": code(results.data),
        "seeds": ", ".join(map(str, results.seeds)),
        "measured with": ", ".join(f"{name} {number}" for name, number in results.versions.items()),
    }
    parts = [facts(made)]
    if results.notes:
        parts += [element("h3", "Notes"), element("ul", *(element("li", note) for note in results.notes))]
    if results.left_out:
        left = [element("li", isolated(name), ": ", reason) for name, reason in results.left_out]
        parts += [element("h3", "Left out"), element("ul", *left)]
    parts += [element("h3", "Recipe that was asked for"), element("div", facts(results.recipe), class_="recipe")]
    return Section("experiment", "Experiment", "How it was measured", join(*parts))


def weight_table(results: Results, order: list[str]) -> ColourTable | None:
    """The weights of the targets by metric, in the order of the model's metrics."""
    known = [name for name in order if any(name in target.weights for target in results.targets)]
    others = sorted({name for target in results.targets for name in target.weights} - set(known))
    columns = (*known, *others)
    if not columns:
        return None
    values = np.array([[target.weights.get(name, np.nan) for name in columns] for target in results.targets])
    heaviest = max(float(np.nanmax(values)), 1e-9)
    rows = tuple(target.task for target in results.targets)
    return ColourTable(
        "weights", "Weights of the metrics for each target", rows, columns, values, np.clip(values, 0, None) / heaviest,
        lambda weight: f"{weight:.2f}".replace("-", "−"),
    )  # fmt: skip


def accuracy_table(results: Results) -> ColourTable | None:
    """The accuracy of every method on every target."""
    columns = tuple(row.method for row in results.rows if any(row.method in t.accuracy for t in results.targets))
    if not columns:
        return None
    values = np.array([[target.accuracy.get(name, np.nan) for name in columns] for target in results.targets])
    best = np.nanmax(np.where(np.isnan(values), -np.inf, values), axis=1, keepdims=True)
    rows = tuple(target.task for target in results.targets)
    return ColourTable(
        "accuracy-by-target", "Accuracy of each method on each target, per cent", rows, columns, values,
        np.clip(1 - (best - values) / FAR_BELOW, 0, 1), lambda share: f"{100 * share:.0f}",
    )  # fmt: skip


def _target_card(target: Target, made_of: Mapping[str, list[str]], main: Row | None) -> Markup:
    size = (
        f"{target.labels} labels · {target.shots} shots · {target.texts:,} texts · majority {percent(target.majority)}"
    )
    ours = target.accuracy.get(main.method) if main else None
    heaviest = sorted(target.weights.items(), key=lambda pair: -pair[1])[:HEAVIEST]
    mixed = [
        element("li", element("b", isolated(name)), f" {weight:.2f} ",
                element("small", "from ", some_names(made_of[name])) if made_of.get(name) else None)
        for name, weight in heaviest
    ]  # fmt: skip
    near = [element("li", isolated(name), element("small", f"{cosine:.2f}")) for name, cosine in target.nearest]
    return element(
        "article",
        element("h3", isolated(target.task), element("small", percent(ours)) if ours is not None else None),
        element("p", size, class_="muted"),
        element("p", target.fallback, class_="tag") if target.fallback else None,
        join(element("h4", "heaviest metrics"), element("ul", *mixed, class_="plain")) if mixed else None,
        join(element("h4", "nearest tasks, by cosine"), element("ul", *near, class_="near")) if near else None,
        class_="card",
    )


def _tiles(results: Results, count: int) -> list[tuple[str, str]]:
    tiles = []
    if (main := results.main) is not None:
        for score, word in ((ACCURACY, "accuracy"), (BALANCED, "balanced accuracy")):
            if score in main.scores:
                found = main.scores[score]
                inside = f"{word}, {100 * found.low:.1f} to {100 * found.high:.1f}"
                tiles.append((f"{100 * found.value:.1f}", inside))
        if main.paper is not None:
            tiles.append((f"{100 * main.paper:.1f}", "accuracy in the paper"))
    return [*tiles, (str(len(results.targets)), "targets"), (str(count), "clusters")]


def _lead(results: Results, tasks: int) -> Markup:
    main = results.main
    if main is None or ACCURACY not in main.scores:
        return join(f"Measured on {len(results.targets)} target tasks, learned from {tasks}.")
    rivals = [row for row in results.rows if row.group != OURS and ACCURACY in row.scores]
    ours = join(
        f"Learned from {tasks} tasks and tried on {len(results.targets)} others, {main.method} has a mean accuracy of ",
        element("b", in_percent(main.scores[ACCURACY])),
    )
    if not rivals:
        return join(ours, ".")
    best = max(rivals, key=lambda row: row.scores[ACCURACY].value)
    return join(ours, "; the best baseline, ", best.method, f", has {percent(best.scores[ACCURACY].value)}.")


def _caption(text: str) -> Markup:
    return element("p", text, class_="caption")
