"""Findings -> the parts of the page, each with its words; a part that has nothing to tell is None."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from manymetrics.report.figures import ColourTable, cluster_figure, colour_table, in_percent, percent
from manymetrics.report.heatmaps import MOST_CELLS, heat_map_svg, heat_maps
from manymetrics.report.markup import Markup, data_name, element, join
from manymetrics.report.reading import Findings
from manymetrics.report.results import ACCURACY, BALANCED, OURS, Results, Row, Target
from manymetrics.report.tables import as_time, facts, method_legend, method_table, metric_table, some_names

FAR_BELOW = 0.25  # a method this far below the best of its row has the darkest colour
HEAVIEST = 3  # metrics told of a target


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    short: str
    title: str
    content: Markup


def title_of(findings: Findings) -> str:
    """What the page is about, in a line."""
    results, clusters = findings.results, findings.learned.clusters
    if results is None:
        return f"{len(clusters)} metrics from {len(clusters.names)} tasks"
    return f"RobustTC-FSL on {results.experiment}"


def headline(findings: Findings) -> Markup:
    """What was learned or measured, on what, and the numbers to remember."""
    results, learned = findings.results, findings.learned
    tiles = _learned_tiles(findings) if results is None else _result_tiles(results, len(learned.clusters))
    quick = element("span", "quick run: fewer seeds, capped tasks", class_="tag") if results and results.quick else None
    lead = _lead_of_model(findings) if results is None else _lead_of_results(results, findings)
    return join(
        element("p", "manymetrics · report", class_="over"),
        element("h1", title_of(findings)),
        element("p", lead, class_="lead"),
        quick,
        element("div", *tiles, class_="tiles"),
        _origin(findings),
    )


def methods(findings: Findings) -> Section | None:
    """The main table."""
    results = findings.results
    if results is None or not results.rows:
        return None
    told = element(
        "p", "Means over the target tasks. Beside each number its 95 % interval, had other targets been drawn. "
        "The dotted line is the method all others are compared with; the comparison is paired, target by target, and "
        "grey where the interval holds zero.",
    )  # fmt: skip
    shown = element("div", method_table(results.rows, reference=results.main), class_="wide")
    by_target = accuracy_table(results)
    parts = [told, method_legend(results.rows), shown]
    if by_target:
        parts += [
            element("h3", "Accuracy by target"),
            _caption("Per cent. The lighter, the nearer to the best method of the row."),
            element("div", colour_table(by_target), class_="wide"),
        ]
    return Section("results", "Results", "Every method, side by side", join(*parts))


def against_clusters(findings: Findings) -> Section | None:
    """Scores against the number of clusters."""
    if findings.results is None or not findings.results.by_clusters:
        return None
    points = findings.results.by_clusters
    charts = [
        element("figure", cluster_figure(points, score))
        for score in (ACCURACY, BALANCED)
        if any(score in point.scores for point in points)
    ]
    told = element("p", "One metric for all tasks stands at K = 1. Whiskers are 95 % intervals over targets.")
    return Section(
        "number-of-clusters", "Clusters K", "How many clusters?", join(told, element("div", *charts, class_="pair"))
    )


def clusters(findings: Findings) -> Section:
    """Which tasks share a metric."""
    learned = findings.learned
    held = set(learned.held_out)
    cards = []
    for number, group in enumerate(learned.clusters):
        chips = [element("li", data_name(name), class_="held" if name in held else None) for name in sorted(group)]
        count = f"{len(group)} task{'s' * (len(group) != 1)}"
        cards.append(
            element("article", element("h3", f"cluster-{number}", element("small", count)), element("ul", *chips,
                    class_="chips"), class_="card")
        )  # fmt: skip
    told = "Tasks whose encoders serve one another share a metric."
    if held:
        told += (
            f" The {len(held)} outlined in dashes were kept from training: the rules of the mix were chosen on them."
        )
    return Section(
        "clusters", "Tasks", f"{len(learned.clusters)} clusters of {len(learned.clusters.names)} tasks",
        join(element("p", told), element("div", *cards, class_="deck")),
    )  # fmt: skip


def matrices(findings: Findings) -> Section:
    """The transfer matrix, what the filter kept of it, and its completion."""
    maps = heat_maps(findings.learned)
    hint = " Point at a cell to see its tasks and its value." if len(maps[0].names) <= MOST_CELLS else ""
    panels = [
        element("figure", element("figcaption", element("b", heat.title), ". ", heat.told), heat_map_svg(heat))
        for heat in maps
    ]
    told = f"From what was measured to what is clustered. Tasks stand in the order of their clusters.{hint}"
    return Section(
        "matrices", "Matrices", "From transfer to likeness",
        join(element("p", told), element("div", *panels, class_="pair")),
    )  # fmt: skip


def targets(findings: Findings) -> Section | None:
    """The weights of each target, and the tasks of the bank that are near to it."""
    results = findings.results
    if results is None or not results.targets:
        return None
    made_of = {
        str(metric.get("name")): [str(n) for n in metric.get("tasks", ())] for metric in findings.learned.metrics
    }
    table = weight_table(results, list(made_of))
    told = "How much each metric counts for each target, and whose texts in the bank are like the target's own."
    cards = [_target_card(target, made_of, results.main) for target in results.targets]
    shown = element("div", colour_table(table), class_="wide") if table else None
    return Section(
        "targets", "Targets", f"{len(results.targets)} targets, each with its own mix",
        join(element("p", told), _caption("Weights alpha; each row sums to one unless the mix is the paper's."), shown,
             element("div", *cards, class_="deck")),
    )  # fmt: skip


def ablations(findings: Findings) -> Section | None:
    """The method with a part taken out or exchanged."""
    results = findings.results
    if results is None or not results.ablations:
        return None
    table = method_table(results.ablations, reference=results.main)
    told = element("p", "One part of the method taken out or exchanged, all else alike.")
    shown = element("div", table, class_="wide")
    return Section("ablations", "Ablations", "What each part is worth", join(told, shown))


def metrics(findings: Findings) -> Section:
    """What a new task mixes, and by which rules."""
    learned = findings.learned
    rules = learned.rules
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in rules.shares.items()) or "every kind the same"
    words = (
        f"A new task starts from a prior over the kinds of metrics ({shares}) that counts as {rules.strength:g} shots. "
    )
    if np.isfinite(rules.threshold):
        words += f"It is out of clusters if no learned metric rises above chance by more than {rules.threshold:g}."
    else:
        words += "No task is taken to be out of clusters."
    table = element("div", metric_table(learned), class_="wide")
    return Section("metrics", "Metrics", "Metrics and rules of the mix", join(element("p", words), table))


def provenance(findings: Findings) -> Section:
    """The recipe, and what it takes to make these numbers again."""
    learned, results = findings.learned, findings.results
    recipe = learned.recipe.as_dict() if results is None else {**learned.recipe.as_dict(), **results.recipe}
    solved = learned.similarity
    made = {
        "bank": element("code", learned.bank),
        "completion": f"lambda {solved.sparsity:.4g}, {solved.steps} steps, duality gap {solved.gap:.1e}",
        "kept from training": some_names(learned.held_out, most=len(learned.held_out)) or "no task",
        "versions": ", ".join(f"{name} {number}" for name, number in learned.versions.items()) or "not recorded",
    }
    parts = [element("h3", "Made of"), facts({**made, **_made_by(results)})]
    if results and results.notes:
        parts += [element("h3", "Notes"), element("ul", *(element("li", note) for note in results.notes))]
    if results and results.left_out:
        left = [element("li", data_name(name), ": ", reason) for name, reason in results.left_out]
        parts += [element("h3", "Left out"), element("ul", *left)]
    parts += [element("h3", "Recipe"), element("div", facts(recipe), class_="recipe")]
    return Section("provenance", "Provenance", "Recipe and provenance", join(*parts))


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
        element("li", element("b", data_name(name)), f" {weight:.2f} ",
                element("small", "from ", some_names(made_of[name])) if made_of.get(name) else None)
        for name, weight in heaviest
    ]  # fmt: skip
    near = [element("li", data_name(name), element("small", f"{cosine:.2f}")) for name, cosine in target.nearest]
    return element(
        "article",
        element("h3", data_name(target.task), element("small", percent(ours)) if ours is not None else None),
        element("p", size, class_="muted"),
        element("p", target.fallback, class_="tag") if target.fallback else None,
        join(element("h4", "heaviest metrics"), element("ul", *mixed, class_="plain")) if mixed else None,
        join(element("h4", "nearest tasks, by cosine"), element("ul", *near, class_="near")) if near else None,
        class_="card",
    )  # fmt: skip


def _learned_tiles(findings: Findings) -> list[Markup]:
    learned = findings.learned
    measured = np.isfinite(learned.transfer.scores).mean()
    return [
        _tile(f"{len(learned.clusters.names)}", "tasks in the bank"),
        _tile(f"{len(learned.clusters)}", "clusters"),
        _tile(f"{len(learned.metrics)}", "metrics to mix"),
        _tile(f"{100 * measured:.0f} %", "of the transfer matrix measured"),
    ]


def _result_tiles(results: Results, count: int) -> list[Markup]:
    tiles = []
    if (main := results.main) is not None:
        for score, word in ((ACCURACY, "accuracy"), (BALANCED, "balanced accuracy")):
            if score in main.scores:
                found = main.scores[score]
                inside = f"{word}, {100 * found.low:.1f} to {100 * found.high:.1f}"
                tiles.append(_tile(f"{100 * found.value:.1f}", inside))
        if main.paper is not None:
            tiles.append(_tile(f"{100 * main.paper:.1f}", "accuracy in the paper"))
    return [*tiles, _tile(str(len(results.targets)), "targets"), _tile(str(count), "clusters")]


def _lead_of_model(findings: Findings) -> Markup:
    learned = findings.learned
    sizes = sorted((len(group) for group in learned.clusters), reverse=True)
    return join(
        f"{len(learned.clusters.names)} tasks were found to fall into {len(sizes)} clusters, of {min(sizes)} to "
        f"{max(sizes)} tasks. Each has a metric of its own; a new task mixes them."
    )


def _lead_of_results(results: Results, findings: Findings) -> Markup:
    main, bank = results.main, len(findings.learned.clusters.names)
    if main is None or ACCURACY not in main.scores:
        return join(f"Measured on {len(results.targets)} target tasks, learned from {bank}.")
    rivals = [row for row in results.rows if row.group != OURS and ACCURACY in row.scores]
    said = join(
        f"Learned from {bank} tasks and tried on {len(results.targets)} others, {main.method} has a mean accuracy of ",
        element("b", in_percent(main.scores[ACCURACY])),
    )  # fmt: skip
    if not rivals:
        return join(said, ".")
    best = max(rivals, key=lambda row: row.scores[ACCURACY].value)
    return join(said, "; the best baseline, ", best.method, f", has {percent(best.scores[ACCURACY].value)}.")


def _origin(findings: Findings) -> Markup:
    """The line that every number of the page stands under."""
    results, learned = findings.results, findings.learned
    seeds = (learned.recipe.seed,) if results is None else results.seeds
    fingerprint = learned.bank if results is None else results.data
    made = results.version if results else learned.versions.get("manymetrics", "not recorded")
    told = {
        f"seed{'s' * (len(seeds) != 1)}": ", ".join(map(str, seeds)),
        "data": element("code", fingerprint[:12]),
        "manymetrics": made,
        **({"took": as_time(results.seconds)} if results else {}),
    }
    command = element("pre", element("code", results.command)) if results else None
    return element("div", facts(told), command, class_="origin")


def _made_by(results: Results | None) -> dict[str, object]:
    if results is None:
        return {}
    return {
        "data": element("code", results.data),
        "seeds": ", ".join(map(str, results.seeds)),
        "measured with": ", ".join(f"{name} {number}" for name, number in results.versions.items()),
        "command": element("code", results.command),
    }


def _tile(number: str, word: str) -> Markup:
    return element("div", element("b", number), element("span", word), class_="tile")


def _caption(text: str) -> Markup:
    return element("p", text, class_="caption")
