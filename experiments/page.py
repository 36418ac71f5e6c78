"""results.json of one or two experiments -> docs/results.md. Every figure of the page is computed, none is typed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from experiments.glance import at_a_glance
from experiments.markdown import both, fold, listed, points, share
from experiments.plan import AMAZON, EXPERIMENTS, INTENT, OURS, PAPER, REFERENCE, TODAY
from experiments.plan import RANDOM_ABLATION as RANDOM_CLUSTERS
from experiments.several_page import DISCLOSED, SEEN, several_section
from manymetrics.recipe import Recipe

TITLES = {AMAZON: "Amazon reviews", INTENT: "Intents of chatbots"}
GROUPS = {OURS: "RobustTC-FSL", PAPER: "The paper's baselines", TODAY: "What else there is"}
PAPER_MIX, MAJORITY = "RobustTC-FSL, paper mix", "Majority class"
ADAPTIVE, ADAPTIVE_PAPER = "Adaptive RobustTC-FSL", "Adaptive RobustTC-FSL, paper mix"
SINGLE_TASK, MATCHING, PROTOTYPICAL = "Single-task CNN", "Matching Network", "Prototypical Network"
POOLED, COMBINATION = "TF-IDF + LR over all tasks", "Combination of all single-task models"
NO_LEARNED = "Without learned metrics"
BEST_STATIC = 0.8563  # Induction Networks on the Amazon data: the best published without a transformer
APART = 0.02  # an accuracy this far from the paper's is spoken of
MOST_GAINED = 3  # targets whose weights are shown
FEW_TURNED = 3  # targets on which a row answers the contrary, that are named
FEW_SOURCES = 10  # fewer than these are spoken of
SOURCES_SHOWN = 3  # past tasks named beside a target of the same source
TASKS_SHOWN = 20  # of a cluster; what is kept names them all

HEAD = """# Results

Made by `make results` from what `python -m experiments reproduce` wrote and what is kept in
[experiments/kept](../experiments/kept); do not edit. Numbers are per cent, means over targets and seeds. In square
brackets stand 95 % bootstrap intervals over sources (products, corpora, repositories) and texts. *Gain* is the accuracy
of RobustTC-FSL less that of the row on the same targets, texts and seeds, in points: above zero, RobustTC-FSL is ahead.
*paper* is the accuracy that the paper reports.
"""
OLDER = """**The results of this chapter are of an earlier version of the code, whose recipe had other knobs. When the
core was rewritten ([decision 20](decisions/0020-one-core-for-every-encoder.md)) the quick experiments gave the same
answers before and after; what changed later (seeds of units, the optimizer of word vectors, the fallback, knobs of the
paper's mix and of baselines chosen on past tasks, ablations beside a run as short as they are) is not in these figures.
Their intervals are over targets, not over sources.**
"""
PROTOCOL = """## The protocol

Targets are shown to methods without their test labels, and to training and selection not at all. Everything that is
tuned is tuned on past tasks held out from training: the settings of the mix, the threshold of the fallback, when
training stops, and the knobs of the paper's rows (its number of clusters among them) and of baselines. Our number of
clusters follows from the spectrum of X. What is not tuned is a default of the recipe, window, width and word vectors
among them, which the paper tunes. That its own rate and number of steps have to be tuned for the paper's mix was seen
on targets before it was decided again on past tasks, and so was that the network of all tasks needs a lower rate than
the recipe's: on targets it answered one label, and on valid texts of past tasks its likelihood fell below a coin's at
the recipe's rate and rose at a quarter of it, the only other one tried. Four parts of the method were thought of or
settled after a look at target scores or targets' shots, and are named where they were decided
([12](decisions/0012-tasks-that-share-their-labels.md), [17](decisions/0017-a-linear-metric-of-all-tasks.md),
[19](decisions/0019-whose-task-this-is.md)). A test permutes the targets' test labels and finds every byte of the model,
every weight and every answer unchanged. The majority row alone looks at the test labels.
"""

Results = Mapping[str, Any]
Row = Mapping[str, Any]


def write_page(experiments: Mapping[str, Results], held_out: Sequence[Results] = (),
               several: Sequence[Results] = ()) -> str:  # fmt: skip
    """The page, as Markdown."""
    parts = [HEAD, at_a_glance(experiments, held_out, several)]
    if not experiments:
        parts.append("No results are kept yet.\n")
    if any(results["quick"] for results in experiments.values()):
        parts.append(
            "**Some of these are quick runs, on smaller tasks with shorter training: they show that everything runs, "
            "not how good it is.**\n"
        )
    if several:
        parts += ["## Do several metrics pay?\n", DISCLOSED, *(several_section(results) for results in several)]
    parts += [_held_out(results) for results in held_out]
    parts += [_chapter(name, experiments[name]) for name in EXPERIMENTS if name in experiments]
    return "\n".join([*parts, PROTOCOL])


def _is_older(results: Results) -> bool:
    """Whether results were made with a knob that recipes no longer have: by other code than this."""
    return not set(results["recipe"]) <= {field.name for field in fields(Recipe)}


def _chapter(name: str, results: Results) -> str:
    sections = [
        f"## {TITLES[name]}\n",
        OLDER if _is_older(results) else "",
        _data(name, results),
        _main_table(results),
        _chosen(results),
        _shown(name, results),
        _differences(name, results),
        _figure(name, results) if results["by_clusters"] else "",
        _ablations(name, results) if results["ablations"] else "",
        _clusters(results),
        _origin(results),
    ]
    return "\n".join(section for section in sections if section)


def _data(name: str, results: Results) -> str:
    targets = results["targets"]
    shots, labels, texts = (_range(target[of] for target in targets) for of in ("shots", "labels", "texts"))
    words = (
        f"{len(targets)} targets with {shots} shots each, {labels} labels and {texts} test texts; {_tasks(results)} "
        "past tasks."
    )
    sources = {target.get("source", target["task"]) for target in targets}
    if len(sources) < min(len(targets), FEW_SOURCES):
        words += (
            f" The targets come from {len(sources)} sources: so few that a bootstrap over them gives intervals that "
            "are rather too narrow."
        )
    missing = [
        left["name"].removesuffix(" (train)") for left in results["left_out"] if left["name"].endswith(" (train)")
    ]
    if missing:
        words += (
            f" The train files of {listed(missing)} could not be had; their test files, which no protocol uses, stand "
            "in for them."
        )
    shared = {target["task"]: target["same_source"] for target in targets if target.get("same_source")}
    if shared:
        words += f" {_sharing(shared)}"
    if name == "intent":
        words += (
            " The paper's intents are private. These are public chatbots in the same setting, so its figures stand "
            "beside for orientation: what can be compared is the distance between rows."
        )
    return fold(words)


def _sharing(shared: Mapping[str, Sequence[str]]) -> str:
    """Targets whose corpus or repository past tasks come from as well."""
    told = [f"{target} (with {listed(_few(past))})" for target, past in shared.items()]
    return (
        f"{len(shared)} targets come from a corpus or repository that past tasks come from too, with other texts and "
        f"labels: {listed(told)}."
    )


def _few(names: Sequence[str]) -> list[str]:
    return list(names) if len(names) <= SOURCES_SHOWN else [*names[: SOURCES_SHOWN - 1],
                                                            f"{len(names) - SOURCES_SHOWN + 1} more"]  # fmt: skip


def _main_table(results: Results) -> str:
    lines = ["| method | paper | accuracy | balanced accuracy | macro-F1 | over seeds | gain |",
             "|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for group, title in GROUPS.items():
        lines.append(f"| *{title}* | | | | | | |")
        lines += [_table_row(row) for row in results["rows"] if row["group"] == group]
    skipped = [row for row in results["rows"] if not row["applies"]]
    lines += [""] + [f"{row['method']}: {row['note']}.\n" for row in skipped]
    return "\n".join(lines)


def _table_row(row: Row) -> str:
    paper = "" if row["paper"] is None else f"{100 * row['paper']:.1f}"
    if not row["applies"]:
        return f"| {row['method']} | {paper} | - | - | - | - | |"
    seeds = row["over_seeds"]["accuracy"]
    spread = f"± {100 * (seeds['high'] - seeds['value']):.1f}" if seeds["high"] > seeds["low"] else ""
    gain = "" if row["gain"] is None else points(row["gain"])
    scores = " | ".join(share(row[score]) for score in ("accuracy", "balanced_accuracy", "macro_f1"))
    return f"| {row['method']} | {paper} | {scores} | {spread} | {gain} |"


def _chosen(results: Results) -> str:
    """What each row was allowed to choose on past tasks, and what it chose."""
    rows = [row for row in results["rows"] if row.get("chosen")]
    if not rows:
        return ""
    words = (
        "Chosen by accuracy on few-shot problems of past tasks that the row did not learn from, with the first seed:"
    )
    lines = [f"- {row['method']}: {listed([_knob(*knob) for knob in row['chosen'].items()])}." for row in rows]
    return "### What rows were allowed to choose\n\n" + fold(words) + "\n" + "\n".join(lines) + "\n"


def _knob(name: str, value: Any) -> str:
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _held_out(results: Results) -> str:
    """One run of `held-out`."""
    bank = TITLES.get(results["bank"], results["bank"])
    words = (
        f"{results['tasks']} tasks of {results['sources']} sources, dealt to {results['folds']} folds; each fold is "
        "answered by what was learned from the others, on few-shot problems shaped as the targets are. No target is "
        "involved. *Ahead* is the accuracy of RobustTC-FSL less that of the row, both with label names or both without."
    )
    if results["bank"] == AMAZON and results["recipe_name"] == "default":
        words += f" {SEEN}"
    lines = [f"## {bank}: every source held out once, recipe {results['recipe_name']}\n", fold(words),
             "| method | accuracy | balanced accuracy | ahead |", "|---|---:|---:|---:|"]  # fmt: skip
    for row in results["rows"]:
        ahead = "" if row["ahead"] is None else points(row["ahead"])
        lines.append(f"| {row['method']} | {share(row['accuracy'])} | {share(row['balanced_accuracy'])} | {ahead} |")
    chosen = listed([f"{row}: C {C:g}" for row, C in results["chosen"].items()])
    return "\n".join(lines) + f"\n\nChosen on the first fold's past tasks: {chosen}. `{results['command']}`, data " \
        f"`{results['data'][:16]}`.\n"  # fmt: skip


def _shown(name: str, results: Results) -> str:
    """What was to be shown, and whether it is."""
    rows = {row["method"]: row for row in results["rows"] if row["applies"]}
    ours, lines = rows[REFERENCE], []
    if name == "amazon":
        lines.append(_reached("the paper's RobustTC-FSL", _value(ours), ours["paper"]))
        lines.append(_reached("the best published without a transformer", _value(ours), BEST_STATIC))
        rivals = [row for row in rows.values() if row["group"] == "paper" or row["method"] in (MAJORITY, POOLED)]
        lines.append(_above(ours, rivals, "accuracy"))
        lines.append(_above(ours, rivals, "balanced_accuracy"))
    else:
        for row in (rows[ADAPTIVE_PAPER], rows[ADAPTIVE]):
            margins = [f"{100 * (_value(row) - _value(rows[rival])):+.1f} over {rival}"
                       for rival in (SINGLE_TASK, MATCHING, PROTOTYPICAL) if rival in rows]  # fmt: skip
            published = _published_margins(rows)
            lines.append(f"- {row['method']}: {listed(margins)} ({published}).")
        rivals = [row for row in rows.values() if row["group"] == "today" and row["method"] != MAJORITY]
        lines.append(_above(ours, rivals, "accuracy"))
    if results["by_clusters"] and results["ablations"]:
        lines.append(_one_cluster(results))
    return "### What was to be shown\n\n" + "\n".join(lines) + "\n"


def _reached(what: str, value: float, bar: float) -> str:
    return f"- {REFERENCE} at {100 * value:.1f} is {_verdict(value - bar)} {what}, {100 * bar:.2f}."


def _verdict(difference: float) -> str:
    return f"{100 * abs(difference):.1f} points {'above' if difference >= 0 else '**below**'}"


def _above(ours: Row, rivals: Sequence[Row], score: str) -> str:
    best = max(rivals, key=lambda row: row[score]["value"])
    difference = ours[score]["value"] - best[score]["value"]
    return f"- In {score.replace('_', ' ')} it is {_verdict(difference)} the best of these baselines, {best['method']}."


def _published_margins(rows: Mapping[str, Row]) -> str:
    adaptive = rows[ADAPTIVE]["paper"]
    margins = [
        f"{100 * (adaptive - rows[rival]['paper']):+.1f}"
        for rival in (SINGLE_TASK, MATCHING, PROTOTYPICAL)
        if rival in rows
    ]
    return f"in the paper {listed(margins)}"


def _one_cluster(results: Results) -> str:
    """Whether clusters pay, and what the ablations say about it."""
    found = [point for point in results["by_clusters"] if point["method"] == REFERENCE]
    best = max(found, key=lambda point: point["accuracy"]["value"])
    one = next(point for point in found if point["clusters"] == 1)
    why = _what_clusters_are_worth(results)
    if best is one:
        return f"- No number of clusters does better than one: here the clusters do not pay by themselves. {why}"
    gain = best["over_one"]
    beyond = gain["low"] > 0
    return (
        f"- The best of these numbers of clusters, {best['clusters']}, picked with the targets in view, is "
        f"{points(gain)} points better than one cluster: {'beyond' if beyond else '**not** beyond'} the interval."
        + ("" if beyond else f" {why}")
    )


def _what_clusters_are_worth(results: Results) -> str:
    rows = {row["method"]: row for row in results["ablations"] if row["applies"]}
    chance, nothing = rows[RANDOM_CLUSTERS]["gain"], rows[NO_LEARNED]["gain"]
    alike = chance["low"] <= 0 <= chance["high"]
    verdict = "which tasks a metric learns from makes no difference to be seen" if alike else "clusters matter"
    return (
        f"Random clusters of the same sizes lose {points(chance)} points, a mix without any learned metric loses "
        f"{points(nothing)}: {verdict} here."
    )


def _differences(name: str, results: Results) -> str:
    """Where the paper's figures and ours part, and what speaks for which reason."""
    rows = {row["method"]: row for row in results["rows"] if row["applies"]}
    lines: list[str] = []
    for row in rows.values():
        if name == "amazon" and row["paper"] is not None and abs(_value(row) - row["paper"]) > APART:
            way = "above" if _value(row) > row["paper"] else "below"
            apart = f"{100 * _value(row):.1f}, {100 * abs(_value(row) - row['paper']):.1f} points {way}"
            lines.append(f"- {row['method']}: {apart}.{_turned(row, results)}")
    reasons = _reasons_amazon(rows, results) if name == "amazon" else _reasons_intent(rows)
    listed = "\n".join(lines)
    return "### Where we differ from the paper\n\n" + (listed + "\n\n" if lines else "") + reasons


def _turned(row: Row, results: Results) -> str:
    """The few targets whose two labels a row takes for one another, and what it scores on the others."""
    scores = {target["task"]: target["accuracy"].get(row["method"]) for target in results["targets"]
              if target["labels"] == 2}  # fmt: skip
    known = {task: score for task, score in scores.items() if score is not None}
    turned = {task: score for task, score in known.items() if score < 1 / 2}
    rest = [score for task, score in known.items() if task not in turned]
    if not 0 < len(turned) <= FEW_TURNED or not rest:
        return ""
    told = listed([f"{task} ({100 * score:.1f})" for task, score in turned.items()])
    return f" Less than half is right on {told}; on the others the mean is {_percent(rest)}."


def _why_turned(rows: Mapping[str, Row], results: Results) -> str:
    """Why a mix of free weights can answer the contrary: steps that lead past zero."""
    row, tasks = rows[COMBINATION], _tasks(results)
    chosen = row.get("chosen")
    if not chosen or chosen["rate"] * chosen["steps"] < 1 / tasks or not _turned(row, results):
        return ""
    return fold(
        f"**Weights below zero.** The weights of the {tasks} single-task models begin at 1/{tasks} and may change "
        f"sign. What was chosen on past tasks, {chosen['steps']} steps of {chosen['rate']:g}, can lead them below zero "
        "where a target's shots speak against most models, and the answers turn round. Problems drawn at random from "
        "past tasks did not warn of it."
    )


def _percent(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"


def _reasons_amazon(rows: Mapping[str, Row], results: Results) -> str:
    majority = _value(rows[MAJORITY])
    below = [row["method"] for row in rows.values() if row["paper"] is not None and row["paper"] < majority]
    return "\n".join([
        fold(
            f"**The balance.** Shots are balanced and test texts are not: always answering the commonest label scores "
            f"{100 * majority:.1f}. In the paper's own table {listed(below)} lie below that. Accuracy here tells first "
            "how well a method guesses the balance of a task of which it has balanced shots, so balanced accuracy "
            "and macro-F1 stand beside it."
        ),
        fold(
            f"**The mix.** Free weights fitted on ten shots as published, the clusters' number, the rate and the steps "
            f"chosen on past tasks, give {both(rows[PAPER_MIX])} (accuracy, balanced accuracy); weights on the simplex "
            f"near a prior, over several kinds of metrics, {both(rows[REFERENCE])}."
        ),
        fold(
            f"**The rest.** Word vectors are {results['recipe']['vectors']}, the paper's GloVe; S holds how likely one "
            "task's model makes another's answers, where the paper's holds accuracy; the paper does not say which "
            "clusters, learning rates and epochs its rows had."
        ),
        *([turned] if (turned := _why_turned(rows, results)) else []),
    ])  # fmt: skip


def _reasons_intent(rows: Mapping[str, Row]) -> str:
    static = [row for row in rows.values() if row["group"] == "today" and row["method"] != MAJORITY]
    best = max(static, key=_value)
    return fold(
        f"The data are others, so levels differ, and what can be held against the paper is distances. The clusters' "
        f"metrics alone, mixed as published, score {100 * _value(rows[PAPER_MIX]):.1f}; several kinds of metrics in "
        f"the default mix {100 * _value(rows[REFERENCE]):.1f}; the best baseline that learns nothing from the bank, "
        f"{best['method']}, {100 * _value(best):.1f}. The ablations below take out the clusters' metrics, "
        "the tuned word vectors, or the regression over all metrics, which tells where the gain comes from."
    )


def _figure(name: str, results: Results) -> str:
    methods = list(dict.fromkeys(point["method"] for point in results["by_clusters"]))
    numbers = sorted({point["clusters"] for point in results["by_clusters"]})
    by_place = {(point["method"], point["clusters"]): point for point in results["by_clusters"]}
    titles = " | ".join(f"{method}: accuracy | balanced | over one cluster" for method in methods)
    lines = [
        "### Accuracy against the number of clusters\n",
        _pictures(f"{name}-clusters-accuracy", f"{name}-clusters-balanced"),
        f"| K | {titles} |",
        "|---:|" + "---:|---:|---:|" * len(methods),
    ]
    for number in numbers:
        cells: list[str] = []
        for method in methods:
            point = by_place.get((method, number))
            cells += ["", "", ""] if point is None else [
                share(point["accuracy"]), share(point["balanced_accuracy"]),
                "" if number == 1 else points(point["over_one"])]  # fmt: skip
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + f"\n\nSeed {results['seeds'][0]}, our mix.{_earlier(results)}\n"


def _ablations(name: str, results: Results) -> str:
    lines = ["### What each part is worth\n", _pictures(f"{name}-parts"),
             "| RobustTC-FSL, but | accuracy | balanced accuracy | the whole, trained as long, gains |",
             "|---|---:|---:|---:|"]  # fmt: skip
    for row in results["ablations"]:
        if row["applies"]:
            scores = f"{share(row['accuracy'])} | {share(row['balanced_accuracy'])} | {points(row['gain'])}"
            lines.append(f"| {row['method']} | {scores} |")
        else:
            lines.append(f"| {row['method']} | {row['note']} | | |")
    return "\n".join(lines) + f"\n\nSeed {results['seeds'][0]}, our mix.{_earlier(results)}\n"


def keep_parts(results: Results, before: Results) -> dict[str, Any]:
    """Results of a table alone with the figure and the ablations kept before, marked as those of an earlier run."""
    if results["by_clusters"] or not before["by_clusters"]:
        return dict(results)
    kept = {name: before[name] for name in ("by_clusters", "ablations")}
    return {**results, **kept, "parts_of": before.get("parts_of", before["command"])}


def _earlier(results: Results) -> str:
    if "parts_of" not in results:
        return ""
    return (
        f" **Of an earlier version of the code, `{results['parts_of']}`: intervals are over targets, gains are against "
        "a whole that was trained longer, clusters were dealt at random once.**"
    )


def _pictures(*names: str) -> str:
    return "\n".join(f"![{name.replace('-', ' ')}](images/{name}.svg)" for name in names) + "\n"


def _clusters(results: Results) -> str:
    gained = sorted(results["targets"], key=lambda target: -_gain(target))[:MOST_GAINED]
    lines = ["### Clusters, and the weights of the targets that gained most\n",
             "| cluster | tasks | " + " | ".join(target["task"] for target in gained) + " |",
             "|---|---|" + "---:|" * len(gained)]  # fmt: skip
    tasks = {cluster["name"]: _some(cluster["tasks"]) for cluster in results["clusters"]}
    names = list(dict.fromkeys([*tasks, *(name for target in gained for name in target["weights"])]))
    for name in names:
        weights = " | ".join(f"{target['weights'].get(name, 0):.3f}" for target in gained)
        lines.append(f"| {name} | {tasks.get(name, '')} | {weights} |")
    gains = listed([f"{target['task']} {100 * _gain(target):+.1f}" for target in gained])
    return "\n".join(lines) + f"\n\nGained over one metric for all tasks ({PROTOTYPICAL}), in points: {gains}.\n"


def _some(tasks: Sequence[str]) -> str:
    rest = len(tasks) - TASKS_SHOWN
    return ", ".join(tasks) if rest <= 1 else f"{', '.join(tasks[:TASKS_SHOWN])} and {rest} more"


def _gain(target: Mapping[str, Any]) -> float:
    return float(target["accuracy"][REFERENCE] - target["accuracy"][PROTOTYPICAL])


def _origin(results: Results) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    notes = "".join(f"- {note}\n" for note in results["notes"])
    return (
        f"### Where these numbers come from\n\n`{results['command']}`, manymetrics {results['version']}, seeds "
        f"{', '.join(map(str, results['seeds']))}, data `{results['data'][:16]}`, "
        f"{results['seconds'] / 60:.0f} minutes, all starts of the command together.\n"
        f"{versions}.\n\n{notes}"
    )


def _value(row: Row) -> float:
    return float(row["accuracy"]["value"])


def _tasks(results: Results) -> int:
    return sum(len(cluster["tasks"]) for cluster in results["clusters"])


def _range(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"
