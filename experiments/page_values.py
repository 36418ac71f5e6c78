"""Results of experiments -> the values that the templates of docs/results.md show."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.markdown import capitalized, fold, listed, percent, signed
from experiments.options import FORMAT
from experiments.plan import AMAZON, INTENT, LARGE_BANK, OURS, PAPER, REFERENCE, TODAY, n_log2_n
from experiments.several import TASKS_KNOWN

DATA = {AMAZON: "Amazon reviews", INTENT: "intents of chatbots", "diverse": "diverse texts"}
TITLES = {name: capitalized(words) for name, words in DATA.items()}
GROUPS = {OURS: "RobustTC-FSL", PAPER: "The paper's baselines", TODAY: "What else there is"}
OLDER = fold(
    "**Measured with an earlier version of the code, in which RobustTC-FSL mixed the answers of several kinds of "
    "metrics; rows of parts that are gone are of that version.**"
)
SEEN = "The sentence encoder has probably seen such reviews in its training: levels may flatter it."
MAJORITY, POOLED, SINGLE_TASK = "Majority class", "TF-IDF + LR over all tasks", "Single-task CNN"
ONE_METRIC = "Prototypical Network"
RIVALS = (SINGLE_TASK, "Matching Network", ONE_METRIC)  # over which the paper gives margins
ADAPTIVE = "Adaptive RobustTC-FSL"
BEST_STATIC = 0.8563  # Induction Networks on the Amazon data: the best published without a transformer
APART = 0.02  # an accuracy this far from the paper's is mentioned
MAX_REVERSED = 3  # targets on which a row answers the contrary, that are named
MOST_GAINED = 3  # targets whose weights are shown
MAX_TASKS, MAX_SHARING = 20, 3  # of a cluster; past tasks beside a target of the same source

Results = Mapping[str, Any]
Row = Mapping[str, Any]
Rows = Mapping[str, Row]  # by method


def is_older(results: Results) -> bool:
    """Whether results were made before a task was answered by one regression in its own metric."""
    return bool(results["format"] < FORMAT)


def version(*parts: Results) -> str:
    """What is said where some results are of an earlier version of the code."""
    return " (an earlier version of the code)" if any(map(is_older, parts)) else ""


def command(results: Results) -> str:
    """The command that gave some results, and the data."""
    return f"`{results['command'].removesuffix(' --out OUT')} --out OUT`, data `{results['data'][:16]}`"


def seen(results: Results) -> str:
    """What has to be said where the encoder has probably seen such texts."""
    return SEEN if results["bank"] == AMAZON and results["recipe_name"] in ("default", "tuned") else ""


def settings(chosen: Mapping[str, Any] | float) -> str:
    """What was chosen, in words; a number alone is a penalty."""
    named = chosen if isinstance(chosen, Mapping) else {"C": chosen}
    return listed([f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                   for name, value in named.items()])  # fmt: skip


def banks(results: Results) -> str:
    """The banks of `several` in words."""
    names = [DATA.get(name, name) for name in results["banks"]]
    return listed(names) + (" in one bank" if len(names) > 1 else "")


def gains_over_one(results: Results) -> dict[tuple[str, str], Any]:
    """Of `several`: the gain of each row over one metric, by clusters and weights."""
    return {(row["clusters"], row["weights"]): row["accuracy_gain"] for row in results["rows"]}


def known_tasks(results: Results) -> float:
    """Of `several`: the tasks to learn from that a known cluster has; the median over folds."""
    return float(sorted(fold[TASKS_KNOWN] for fold in results["chosen"])[len(results["chosen"]) // 2])


def by_method(rows: Sequence[Row]) -> dict[str, Row]:
    """The rows that apply."""
    return {row["method"]: row for row in rows if row["applies"]}


def accuracy(row: Row) -> float:
    """The mean accuracy of a row."""
    return float(row["accuracy"]["value"])


def past_tasks(results: Results) -> int:
    """How many past tasks there are."""
    return sum(len(cluster["tasks"]) for cluster in results["clusters"])


def span(targets: Sequence[Row], name: str) -> str:
    """The smallest and the largest of some number of the targets."""
    low, high = min(target[name] for target in targets), max(target[name] for target in targets)
    return f"{low}" if low == high else f"{low} to {high}"


def without_train_file(results: Results) -> list[str]:
    """The tasks whose train files are missing."""
    ending = " (train)"
    return [left["name"].removesuffix(ending) for left in results["left_out"] if left["name"].endswith(ending)]


def sharing(targets: Sequence[Row]) -> list[str]:
    """The targets whose corpus or repository past tasks come from as well, with these."""
    return [f"{target['task']} (with {listed(_first(target['same_source'], MAX_SHARING))})"
            for target in targets if target.get("same_source")]  # fmt: skip


def _first(names: Sequence[str], most: int) -> list[str]:
    rest = len(names) - most + 1
    return list(names) if rest <= 1 else [*names[: most - 1], f"{rest} more"]


def spread(estimate: Mapping[str, float]) -> str:
    """Half an interval over seeds; nothing where there is none."""
    return f"± {percent(estimate['high'] - estimate['value'])}" if estimate["high"] > estimate["low"] else ""


def margins(rows: Rows, method: str) -> list[str]:
    """How far a row is ahead of each of those over which the paper gives margins."""
    ours = accuracy(rows[method])
    return [f"{signed(ours - accuracy(rows[rival]))} over {rival}" for rival in RIVALS if rival in rows]


def published_margins(rows: Rows) -> list[str]:
    """The same in the paper."""
    return [signed(rows[ADAPTIVE]["paper"] - rows[rival]["paper"]) for rival in RIVALS if rival in rows]


def without_bank(rows: Rows) -> list[Row]:
    """The baselines that learn nothing from the bank."""
    return [row for row in rows.values() if row["group"] == TODAY and row["method"] != MAJORITY]


def apart(rows: Rows) -> list[Row]:
    """The rows whose accuracy is not the paper's."""
    return [row for row in rows.values() if row["paper"] is not None and abs(accuracy(row) - row["paper"]) > APART]


def published_below(rows: Rows, bound: float) -> list[str]:
    """The rows that are below an accuracy in the paper."""
    return [method for method, row in rows.items() if row["paper"] is not None and row["paper"] < bound]


def sampled_pairs(results: Results) -> str:
    """How many pairs of tasks the paper's rows measured, if not all."""
    tasks = past_tasks(results)
    return f", of {n_log2_n(tasks):,} pairs drawn by lot" if tasks > LARGE_BANK else ""


def reversed_targets(results: Results, method: str) -> str:
    """The few targets whose two labels a row takes for one another, and what it scores on the others."""
    scores = {target["task"]: target["accuracy"][method] for target in results["targets"]
              if target["labels"] == 2 and method in target["accuracy"]}  # fmt: skip
    below = {task: score for task, score in scores.items() if score < 1 / 2}
    others = [score for task, score in scores.items() if task not in below]
    if not 0 < len(below) <= MAX_REVERSED or not others:
        return ""
    named = listed([f"{task} ({percent(score)})" for task, score in below.items()])
    return f" Less than half is right on {named}; on the others the mean is {percent(sum(others) / len(others))}."


def gain_over_one(target: Row) -> float:
    """What ours gains on a target over one metric for all tasks."""
    return float(target["accuracy"][REFERENCE] - target["accuracy"][ONE_METRIC])


def gained_most(results: Results) -> list[Row]:
    """The targets that gained most over one metric for all tasks."""
    return sorted(results["targets"], key=gain_over_one, reverse=True)[:MOST_GAINED]


def tasks_of_clusters(results: Results) -> dict[str, str]:
    """The tasks of each cluster; of many the first."""
    shown = {}
    for cluster in results["clusters"]:
        tasks, rest = cluster["tasks"], len(cluster["tasks"]) - MAX_TASKS
        shown[cluster["name"]] = ", ".join(tasks) if rest <= 1 else f"{', '.join(tasks[:MAX_TASKS])} and {rest} more"
    return shown


def metrics_shown(results: Results) -> list[str]:
    """The clusters, and whatever else has a weight for the targets that gained most."""
    weighed = [name for target in gained_most(results) for name in target["weights"]]
    return list(dict.fromkeys([*(cluster["name"] for cluster in results["clusters"]), *weighed]))


def gains_told(results: Results) -> list[str]:
    """What each target gained that gained most."""
    return [f"{target['task']} {signed(gain_over_one(target))}" for target in gained_most(results)]
