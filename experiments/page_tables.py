"""results.json of an experiment -> the tables of its chapter of docs/results.md: rows, settings, parts, clusters."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.against_paper import PROTOTYPICAL
from experiments.markdown import fold, listed, points, share, table
from experiments.plan import OURS, PAPER, PUBLISHED_ADAPTIVE, REFERENCE, TODAY, WHOLE
from experiments.published import PAPER_THRESHOLD

GROUPS = {OURS: "RobustTC-FSL", PAPER: "The paper's baselines", TODAY: "What else there is"}
MOST_GAINED = 3  # targets whose weights are shown
TASKS_SHOWN = 20  # of a cluster; what is kept names them all

Results = Mapping[str, Any]
Row = Mapping[str, Any]


def main_table(results: Results) -> str:
    """Every row in its group, and why some were not run."""
    numbers = ["paper", "accuracy", "balanced accuracy", "macro-F1", "over seeds", "gain"]
    rows = []
    for group, title in GROUPS.items():
        rows.append([f"*{title}*", *[""] * len(numbers)])
        rows += [_cells(row) for row in results["rows"] if row["group"] == group]
    skipped = [f"\n{row['method']}: {row['note']}.\n" for row in results["rows"] if not row["applies"]]
    return table(["method"], numbers, rows) + "".join(skipped)


def _cells(row: Row) -> list[str]:
    paper = "" if row["paper"] is None else f"{100 * row['paper']:.1f}"
    if not row["applies"]:
        return [row["method"], paper, "-", "-", "-", "-", ""]
    seeds = row["over_seeds"]["accuracy"]
    spread = f"± {100 * (seeds['high'] - seeds['value']):.1f}" if seeds["high"] > seeds["low"] else ""
    scores = [share(row[score]) for score in ("accuracy", "balanced_accuracy", "macro_f1")]
    return [row["method"], paper, *scores, spread, points(row["gain"])]


def chosen_section(results: Results) -> str:
    """What each row was allowed to choose on past tasks, and what it chose."""
    rows = [row for row in results["rows"] if row.get("chosen")]
    if not rows:
        return ""
    words = (
        "Chosen by accuracy on few-shot problems of past tasks that the row did not learn from, with the first seed:"
    )
    lines = [f"- {row['method']}: {knobs_told(row['chosen'])}." for row in rows]
    return "### What rows were allowed to choose\n\n" + fold(words) + "\n" + "\n".join(lines) + "\n"


def fallback_section(results: Results) -> str:
    """What falling back to a single-task network does, by the accuracy on the shots below which it is done."""
    told = results.get("fallback")
    if not told or not told["rules"]:
        return ""
    words = (
        f"{PUBLISHED_ADAPTIVE}: a task whose shots no cluster's metric answers to the threshold is left to the "
        f"single-task network. On {told['problems']} few-shot problems of past tasks that the metrics were kept from; "
        f"chosen: {told['threshold']:g} (the paper's: {PAPER_THRESHOLD:g})."
    )
    own = [target["task"] for target in results["targets"] if target["fallback"]]
    words += f" Ours falls back on {listed(own) if own else 'none'} of the {len(results['targets'])} targets."
    if not any(rule["below"] for rule in told["rules"]):
        most = max(rule["threshold"] for rule in told["rules"])
        return "### When no cluster fits\n\n" + fold(f"{words} Up to {most:g} no threshold leaves a problem to it.")
    numbers = ["threshold", "problems below", "the mix there", "single-task network there",
               "the rule, on all problems"]  # fmt: skip
    rows = [
        [f"{rule['threshold']:g}", f"{rule['below']}",
         *("" if one is None else f"{100 * one:.1f}" for one in (rule["mixed"], rule["alone"], rule["accuracy"]))]
        for rule in told["rules"]
    ]  # fmt: skip
    return "### When no cluster fits\n\n" + fold(words) + "\n" + table([], numbers, rows)


def knobs_told(chosen: Mapping[str, Any] | float) -> str:
    """What was chosen, in words; a number alone is a penalty."""
    settings = chosen if isinstance(chosen, Mapping) else {"C": chosen}
    return listed([_knob(*setting) for setting in settings.items()])


def _knob(name: str, value: Any) -> str:
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def figure_section(name: str, results: Results) -> str:
    """Scores by the number of clusters."""
    methods = list(dict.fromkeys(point["method"] for point in results["by_clusters"]))
    numbers = sorted({point["clusters"] for point in results["by_clusters"]})
    by_place = {(point["method"], point["clusters"]): point for point in results["by_clusters"]}
    columns = [name for method in methods for name in (f"{method}: accuracy", "balanced", "over one cluster")]
    rows = []
    for number in numbers:
        cells = [str(number)]
        for method in methods:
            point = by_place.get((method, number))
            cells += ["", "", ""] if point is None else [
                share(point["accuracy"]), share(point["balanced_accuracy"]),
                "" if number == 1 else points(point["over_one"])]  # fmt: skip
        rows.append(cells)
    pictures = _pictures(f"{name}-clusters-accuracy", f"{name}-clusters-balanced")
    written = table([], ["K", *columns], rows)
    return f"### Accuracy against the number of clusters\n\n{pictures}\n{written}{_seed(results)}"


def ablations_section(name: str, results: Results) -> str:
    """Scores with one part of the method taken out, and what the whole gains over them."""
    rows = []
    for row in results["ablations"]:
        if row["applies"]:
            same = row["method"] != WHOLE and row["gain"]["low"] == row["gain"]["high"] == 0
            gain = "no answer differs" if same else points(row["gain"])
            rows.append([row["method"], share(row["accuracy"]), share(row["balanced_accuracy"]), gain])
        else:
            rows.append([row["method"], row["note"], "", ""])
    numbers = ["accuracy", "balanced accuracy", "the whole gains"]
    written = table(["RobustTC-FSL, but"], numbers, rows)
    return f"### What each part is worth\n\n{_pictures(f'{name}-parts')}\n{written}{_seed(results)}"


def _seed(results: Results) -> str:
    earlier = f" **Of an earlier run, `{results['parts_of']}`.**" if "parts_of" in results else ""
    return f"\nSeed {results['seeds'][0]}.{earlier}\n"


def _pictures(*names: str) -> str:
    return "\n".join(f"![{name.replace('-', ' ')}](images/{name}.svg)" for name in names) + "\n"


def clusters_section(results: Results) -> str:
    """The tasks of each metric, and its weight for the targets that gained most over one metric for all tasks."""
    gained = sorted(results["targets"], key=lambda target: -_gain(target))[:MOST_GAINED]
    tasks = {cluster["name"]: _some(cluster["tasks"]) for cluster in results["clusters"]}
    names = list(dict.fromkeys([*tasks, *(name for target in gained for name in target["weights"])]))
    rows = [
        [name, tasks.get(name, ""), *(f"{target['weights'].get(name, 0):.3f}" for target in gained)] for name in names
    ]
    weights = table(["cluster", "tasks"], [target["task"] for target in gained], rows)
    gains = listed([f"{target['task']} {100 * _gain(target):+.1f}" for target in gained])
    return (
        f"### Clusters, and the weights of the targets that gained most\n\n{weights}\n"
        f"Gained over one metric for all tasks ({PROTOTYPICAL}), in points: {gains}.\n"
    )


def _some(tasks: Sequence[str]) -> str:
    rest = len(tasks) - TASKS_SHOWN
    return ", ".join(tasks) if rest <= 1 else f"{', '.join(tasks[:TASKS_SHOWN])} and {rest} more"


def _gain(target: Mapping[str, Any]) -> float:
    return float(target["accuracy"][REFERENCE] - target["accuracy"][PROTOTYPICAL])
