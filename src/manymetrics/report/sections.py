"""Where a model comes from -> the header and the sections of a page about it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.model import Origin, SharedLabels
from manymetrics.report.heatmaps import MOST_CELLS, heat_map_svg, heat_maps
from manymetrics.report.markup import Markup, data_name, element, join
from manymetrics.report.reading import RoutedTarget
from manymetrics.report.tables import facts, metric_table, some_names, target_table
from manymetrics.report.task_map import task_map, task_map_svg
from manymetrics.specialize.projections import OTHERS, SHARED
from manymetrics.weigh.pooling import USUAL, share_by_group
from manymetrics.weigh.settings import MixSettings


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    name: str  # what links to it say; one word or several joined by dashes
    short: str  # for the list of sections
    title: str
    content: Markup


def header(title: str, lead: Markup, tiles: Sequence[Markup], made: Mapping[str, object], *, tag: str | None = None,
           command: str | None = None) -> Markup:  # fmt: skip
    """The top of a page: what it is about, the numbers to remember, and what every number was `made` of."""
    return join(
        element("p", "manymetrics · report", class_="over"),
        element("h1", title),
        element("p", lead, class_="lead"),
        element("span", tag, class_="tag") if tag else None,
        element("div", *tiles, class_="tiles"),
        element("div", facts(made), element("pre", element("code", command)) if command else None, class_="origin"),
    )


def tile(number: str, word: str) -> Markup:
    """A number to remember."""
    return element("div", element("b", number), element("span", word), class_="tile")


def model_title(origin: Origin) -> str:
    """What the page of a model is about, in a line."""
    count = max(1, len(_own_metrics(origin)))
    return f"{count} metric{'s' * (count != 1)} from {len(origin.clusters.names)} tasks"


def _own_metrics(origin: Origin) -> set[int]:
    """The numbers of the clusters that have a metric of their own."""
    return {int(metric["cluster"]) for metric in origin.metrics if metric.get("cluster") is not None}


def _share_measured(origin: Origin) -> float:
    """The share of pairs of different tasks whose transfer was measured."""
    n = len(origin.transfer.names)
    return float(np.isfinite(origin.transfer.scores).sum() / max(1, n * (n - 1)))


def model_header(origin: Origin) -> Markup:
    """The top of the page of a model."""
    sizes, own = [len(group) for group in origin.clusters], len(_own_metrics(origin))
    metric = (
        "Each has a metric of its own" if own == len(sizes) else f"{own or 'None'} of them got a metric of their own"
    )
    lead = join(
        f"{len(origin.clusters.names)} tasks were found to fall into {len(sizes)} clusters, of {min(sizes)} to "
        f"{max(sizes)} tasks. {metric}; a new task mixes them."
    )
    tiles = [
        tile(f"{len(origin.clusters.names)}", "tasks in the bank"),
        tile(f"{len(origin.clusters)}", "clusters"),
        tile(f"{len(origin.metrics)}", "metrics to mix"),
        tile(f"{_share_measured(origin):.0%}", "of the pairs of tasks measured"),
    ]
    made = {
        "seed": str(origin.recipe.seed),
        "data": element("code", origin.bank_fingerprint[:12]),
        "manymetrics": origin.versions.get("manymetrics", "not recorded"),
    }
    return header(model_title(origin), lead, tiles, made)


def model_sections(origin: Origin, families: Mapping[str, str] | None = None,
                   targets: Sequence[RoutedTarget] = ()) -> list[Section]:  # fmt: skip
    """All sections of the page of a model; with families and the targets of an evaluation where they are known."""
    return [
        tasks_in_a_plane(origin, families, targets),
        clusters(origin, families),
        *([routes(targets, families)] if targets else []),
        matrices(origin),
        metrics(origin),
        provenance(origin),
    ]


def tasks_in_a_plane(origin: Origin, families: Mapping[str, str] | None = None,
                     targets: Sequence[RoutedTarget] = ()) -> Section:  # fmt: skip
    """The map of the tasks."""
    drawn = task_map(origin, families, targets)
    words = (
        "Tasks that are similar stand near one another. A plane cannot hold all distances: those on the map correlate "
        f"with the dissimilarity of the tasks by {drawn.agreement:.2f}. Point at a mark to see its task."
    )
    if drawn.targets:
        words += " Targets stand among the tasks they were taken for, whatever they are like."
    figure = element("figure", element("div", task_map_svg(drawn), class_="wide"))
    return Section("map", "Map", "Map of the tasks", join(element("p", words), figure))


def clusters(origin: Origin, families: Mapping[str, str] | None = None) -> Section:
    """Which tasks share a metric, and which clusters have none of their own."""
    held = set(origin.held_out)
    cards = []
    for number, group in enumerate(origin.clusters):
        chips = [element("li", data_name(name), class_="held" if name in held else None) for name in sorted(group)]
        count = f"{len(group)} task{'s' * (len(group) != 1)}"
        of_families = Counter(families[name] for name in group if name in families) if families else Counter()
        told = ", ".join(f"{family} {many}" for family, many in of_families.most_common())
        cards.append(
            element("article", element("h3", f"cluster-{number}", element("small", count)),
                    element("p", told, class_="muted") if told else None, element("ul", *chips, class_="chips"),
                    element("p", _fate(origin, number, group), class_="fate"), class_="card")
        )  # fmt: skip
    words = "Tasks whose encoders serve one another share a metric."
    if held:
        words += (
            f" The {len(held)} outlined in dashes were kept from training: the settings of the mix were chosen on them."
        )
    return Section(
        "clusters", "Tasks", f"{len(origin.clusters)} clusters of {len(origin.clusters.names)} tasks",
        join(element("p", words), *map(_same_labels, origin.by_labels), element("div", *cards, class_="deck")),
    )  # fmt: skip


def _same_labels(shared: SharedLabels) -> Markup:
    """Tasks that have metrics of their own beside their cluster's, as they share their labels."""
    return element(
        "p", f"{len(shared.tasks)} tasks have the same labels (", some_names(shared.labels), "): ",
        some_names(shared.tasks), ". A new task with these labels is answered by metrics learned from them alone.",
    )  # fmt: skip


def _fate(origin: Origin, number: int, group: Sequence[str]) -> Markup:
    """Whether a cluster's own metric was kept, and what serves it if not."""
    if number in _own_metrics(origin):
        return join("Metric of its own: kept.")
    names = [str(metric.get("name")) for metric in origin.metrics]
    serving = next((name for name in (OTHERS, SHARED) if name in names), None)
    instead = join(" ", element("code", serving), " serves it.") if serving else None
    if len(origin.clusters) == 1:
        return join("One cluster: no metric of its own beside that of all tasks.", instead)
    held = [name for name in sorted(group) if name in origin.held_out]
    reason = (
        join("on its held-out tasks (", some_names(held), ") it did not beat the shared metric.")
        if held
        else join("its training left no metric.")
    )
    return join("Metric of its own: dropped; ", reason, instead)


def routes(targets: Sequence[RoutedTarget], families: Mapping[str, str] | None = None) -> Section:
    """Where the targets of an evaluation were routed, and why."""
    words = (
        "A new task is taken for one of the clusters by what its labels are called and where its texts lie; its "
        "examples then decide how much each metric counts."
    )
    if families and (known := [target for target in targets if target.task in families]):
        right = sum(_own_family(target, families) for target in known)
        words += f" {right} of the {len(known)} targets with a family were taken for tasks most of which are of it."
    table = element("div", target_table(targets, families), class_="wide")
    return Section("targets", "Targets", "Where the targets were routed", join(element("p", words), table))


def _own_family(target: RoutedTarget, families: Mapping[str, str]) -> bool:
    found = Counter(families[name] for name in target.alike if name in families)
    return bool(found) and found.most_common(1)[0][0] == families[target.task]


def matrices(origin: Origin) -> Section:
    """The transfer matrix, what the filter kept of it, and its completion."""
    maps = heat_maps(origin)
    hint = " Point at a cell to see its tasks and its value." if len(maps[0].names) <= MOST_CELLS else ""
    panels = [
        element("figure", element("figcaption", element("b", heat.title), ". ", heat.caption), heat_map_svg(heat))
        for heat in maps
    ]
    words = f"From what was measured to what is clustered. Tasks stand in the order of their clusters.{hint}"
    return Section(
        "matrices", "Matrices", "From transfer to similarity",
        join(element("p", words), element("div", *panels, class_="pair")),
    )  # fmt: skip


def metrics(origin: Origin) -> Section:
    """What a new task mixes, and with which settings."""
    table = element("div", metric_table(origin), class_="wide")
    words = element("p", _settings_in_words(origin))
    return Section("metrics", "Metrics", "Metrics and settings of the mix", join(words, table))


def provenance(origin: Origin) -> Section:
    """The recipe, and what the model was made of."""
    solved = origin.similarity
    made = {
        "bank": element("code", origin.bank_fingerprint),
        "completion": f"lambda {solved.sparsity:.4g}, {solved.steps} steps, duality gap {solved.gap:.1e}",
        "kept from training": some_names(origin.held_out, most=len(origin.held_out)) or "no task",
        "versions": ", ".join(f"{name} {number}" for name, number in origin.versions.items()) or "not recorded",
    }
    recipe = element("div", facts(origin.recipe.as_dict()), class_="recipe")
    parts = [element("h3", "Made of"), facts(made), element("h3", "Recipe"), recipe]
    return Section("provenance", "Provenance", "Recipe and provenance", join(*parts))


def _exponents_in_words(settings: MixSettings) -> str:
    exponents = settings.exponents or settings.exponents_without_names
    if not exponents:
        return "every group of them to the same power"
    told = ", ".join(f"{group} {share:.0%}" for group, share in share_by_group(exponents, USUAL).items())
    return (
        f"each to a power of its own: with {USUAL.examples_per_label:g} examples of each of {USUAL.labels} labels the "
        f"parts are {told}"
    )


def _settings_in_words(origin: Origin) -> str:
    settings = origin.settings
    if any("labels" in metric for metric in origin.metrics):
        shares = ", ".join(f"{kind} {share:.0%}" for kind, share in settings.shares.items()) or "every kind the same"
        words = f"A new task starts from a prior over the kinds of metrics ({shares}). "
        words += f"Of its examples {settings.likelihood_temperature:g} count as one. "
    else:
        words = f"The answers of metrics are multiplied, {_exponents_in_words(settings)}. The clusters' metrics answer "
        words += f"as one: their mix starts from a prior that counts as much as {settings.prior_shots:g} examples. "
    if not np.isfinite(settings.threshold):
        return words + "No task is taken to be out of clusters."
    return words + f"It is out of clusters if no learned metric rises above chance by more than {settings.threshold:g}."
