"""several.json -> a section of docs/results.md and its line of the first screen. Every word is computed."""

from collections.abc import Mapping
from typing import Any

from experiments.clusterings import FOUND, KNOWN, NONE, RANDOM
from experiments.markdown import capitalized, fold, listed, points, share, table
from experiments.plan import AMAZON, INTENT
from experiments.provenance import version_told
from experiments.several import OWN, SHOTS, TASKS_KNOWN, TRAIN

Results = Mapping[str, Any]
Gain = Mapping[str, float]

TITLES = {AMAZON: "Amazon reviews", INTENT: "intents of chatbots", "diverse": "diverse texts"}
DISCLOSED = fold(
    "**Measured with an earlier version of the code, which mixed the answers of metrics.** How fast projections learn "
    "was fixed at first, then chosen by likelihood, then by accuracy, by which other rows of this page are tuned. "
    "Results on the diverse bank had been seen before either change; the verdict on it was the same all three times."
)
SEEN = "The sentence encoder has probably seen such reviews in its training: levels may flatter it."


def called(results: Results) -> str:
    """The bank in words."""
    banks = [TITLES.get(name, name) for name in results["banks"]]
    return listed(banks) + (" in one bank" if len(banks) > 1 else "")


def several_section(results: Results) -> str:
    """What was compared, the table, and what it comes to."""
    words = (
        f"{results['tasks']} past tasks of {results['sources']} sources and {results['families']} families; few-shot "
        f"problems of held-out sources, answered by {results['metrics']} over a frozen sentence encoder that learned "
        "from the others. *From the shots*: the clusters' metrics, weighed by the problem's shots. *Own cluster*: the "
        "metric of the cluster that the task is known to be of. Clusters drawn at random have the sizes of the "
        f"known ones, {results['draws']} draws. Intervals are over {results['over']}. A known cluster has "
        f"{_median(results):g} tasks to learn from (the median), of at most {TRAIN} train texts; one task in five is "
        "kept from it to stop on. With more tasks and texts clusters might gain more."
    )
    if AMAZON in results["banks"]:
        words += f" {SEEN}"
    scores = ("accuracy", "balanced_accuracy", "auc")
    rows = [
        [row["clusters"], row["weights"], *(share(row[score]) for score in scores), points(row["accuracy_gain"])]
        for row in results["rows"]
    ]
    numbers = ["accuracy", "balanced accuracy", "AUC, two labels", "accuracy over one metric"]
    return "\n".join([
        f"### {capitalized(called(results))}\n",
        fold(words),
        table(["metrics", "weights"], numbers, rows),
        fold(verdict(results)),
        fold(_details(results)),
        f"`{results['command']}`, data `{results['data'][:16]}`.\n",
    ])  # fmt: skip


def verdict(results: Results) -> str:
    """Whether several metrics pay here, by what the intervals say."""
    gains = {(row["clusters"], row["weights"]): row["accuracy_gain"] for row in results["rows"]}
    own, shots, found = gains[KNOWN, OWN], gains[KNOWN, SHOTS], gains[FOUND, SHOTS]
    if above(found):
        said = "Several metrics pay"
    elif above(shots):
        said = "Several metrics pay where the clusters are known"
    elif above(own):
        said = "Several metrics would pay if a task's cluster were known; told from its shots they do not"
    else:
        said = "One metric is enough"
    said += (
        f": over one metric for all, the own family's gains {points(own)} points, all families' weighed by the shots "
        f"{points(shots)}, and those of clusters found, weighed by the shots, {points(found)}."
    )
    chance = results["over_random"][FOUND if above(found) else KNOWN][SHOTS]
    if above(found) or above(shots):
        more = "That is more" if above(chance) else "That is **not** more beyond the interval"
        said += f" {more} than clusters drawn at random gain, by {points(chance)}."
    none = gains[NONE, ""]
    if above(none):
        said += f" One metric for all is worse than the encoder as it is, by {points(none)}."
    elif none["high"] >= 0:
        said += f" The encoder as it is does as well as one metric for all: {points(none)}."
    return said


def above(gain: Gain) -> bool:
    """Whether the whole interval lies above zero."""
    return gain["low"] > 0


def _median(results: Results) -> float:
    return float(sorted(fold[TASKS_KNOWN] for fold in results["chosen"])[len(results["chosen"]) // 2])


def _details(results: Results) -> str:
    own, over, agreed = results["own_over_others"], results["over_random"], results["agreement"]
    draws = results["by_draw"][OWN]
    counted = [agreed[f"{kind}, families counted"] for kind in ("transfer", "all evidence")]
    return (
        "On held-out tasks the metric of the own cluster is more accurate than another's by "
        f"{points(own[KNOWN])} points where clusters are known, {points(own[FOUND])} where they were found, "
        f"{points(own[RANDOM])} where they were drawn at random (where sizes differ, the own cluster is likelier a "
        f"large one, which learned from more). Known clusters gain {points(over[KNOWN][OWN])} points over random ones "
        f"by the own cluster's metric and {points(over[KNOWN][SHOTS])} by the shots; clusters found "
        f"{points(over[FOUND][OWN])} and {points(over[FOUND][SHOTS])}. By the own cluster's metric the {len(draws)} "
        f"random draws reach from {100 * min(draws):.1f} to {100 * max(draws):.1f}. Clusters found agree with the "
        f"families (adjusted Rand index) to {agreed['transfer']:.2f} by transfer alone and to "
        f"{agreed['all evidence']:.2f} by all evidence; with as many clusters as families, to {counted[0]:.2f} and "
        f"{counted[1]:.2f}."
    )


def one_line(results: Results) -> str:
    """For the first screen."""
    seen = f" {SEEN}" if AMAZON in results["banks"] else ""
    bank = f"{capitalized(called(results))} ({results['tasks']} tasks){version_told(results)}"
    return f"{bank}: {verdict(results)}{seen}"
