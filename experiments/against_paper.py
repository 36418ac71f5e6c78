"""results.json of an experiment -> what its chapter of docs/results.md says of the paper: what holds, what differs."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.markdown import both, fold, listed, points
from experiments.plan import AMAZON, LARGE_BANK, PUBLISHED_FREE, REFERENCE, n_log2_n
from experiments.plan import RANDOM_ABLATION as RANDOM_CLUSTERS
from experiments.provenance import past_tasks

PAPER_MIX, MAJORITY = "RobustTC-FSL, paper mix", "Majority class"
ADAPTIVE, ADAPTIVE_PAPER = "Adaptive RobustTC-FSL", "Adaptive RobustTC-FSL, paper mix"
SINGLE_TASK, MATCHING, PROTOTYPICAL = "Single-task CNN", "Matching Network", "Prototypical Network"
POOLED = "TF-IDF + LR over all tasks"
NO_LEARNED = "Without learned metrics"
BEST_STATIC = 0.8563  # Induction Networks on the Amazon data: the best published without a transformer
APART = 0.02  # an accuracy this far from the paper's is spoken of
FEW_TURNED = 3  # targets on which a row answers the contrary, that are named

Results = Mapping[str, Any]
Row = Mapping[str, Any]


def shown_section(name: str, results: Results) -> str:
    """What was to be shown, and whether it is."""
    rows = {row["method"]: row for row in results["rows"] if row["applies"]}
    ours, lines = rows[REFERENCE], []
    if name == AMAZON:
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
    lines += _networks(name, rows[PAPER_MIX])
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


def _networks(name: str, row: Row) -> list[str]:
    """The networks of the clusters that the method as published chose, beside the paper's."""
    chosen = row.get("chosen", {})
    if "words" not in chosen:
        return []
    words = {"fixed": "fixed", "learned": "begun at the given ones", "random": "begun at random"}
    paper = "begun at random" if name == AMAZON else "begun at GloVe"
    return [
        f"- Networks of the paper's clusters, chosen on past tasks: word vectors {words[chosen['words']]}, window "
        f"{chosen['window']}, {chosen['width']} filters; in the paper, chosen likewise, {paper}, 5 and 200."
    ]


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
        f"Random clusters of the same sizes lose {points(chance)} points, ours without any learned metric loses "
        f"{points(nothing)}: {verdict} here."
    )


def differences_section(name: str, results: Results) -> str:
    """Where the paper's figures and ours part, and what speaks for which reason."""
    rows = {row["method"]: row for row in results["rows"] if row["applies"]}
    lines: list[str] = []
    for row in rows.values():
        if name == AMAZON and row["paper"] is not None and abs(_value(row) - row["paper"]) > APART:
            way = "above" if _value(row) > row["paper"] else "below"
            apart = f"{100 * _value(row):.1f}, {100 * abs(_value(row) - row['paper']):.1f} points {way}"
            lines.append(f"- {row['method']}: {apart}.{_turned(row, results)}")
    reasons = _reasons_amazon(rows, results) if name == AMAZON else _reasons_intent(rows, results)
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
            "**The mix.** As published, networks, clusters, rate and steps chosen on past tasks, the clusters' metrics "
            f"give {both(rows[PAPER_MIX])} (accuracy, balanced accuracy) by convex weights and "
            f"{both(rows[PUBLISHED_FREE])} by free ones; our own way to answer gives {both(rows[REFERENCE])}."
        ),
        fold(
            f"**The rest.** Word vectors are {results['recipe']['vectors']}, the paper's GloVe. In the paper's rows S "
            "holds accuracy and clusters come from it as published; ours have other evidence. The paper does not say "
            "which clusters, learning rates and epochs its rows had."
        ),
    ])  # fmt: skip


def _reasons_intent(rows: Mapping[str, Row], results: Results) -> str:
    static = [row for row in rows.values() if row["group"] == "today" and row["method"] != MAJORITY]
    best = max(static, key=_value)
    sample = f", of {n_log2_n(past_tasks(results)):,} pairs drawn by lot" if past_tasks(results) > LARGE_BANK else ""
    return fold(
        f"The data are others, so levels differ, and what can be held against the paper is distances. The clusters' "
        f"metrics alone, mixed as published, score {100 * _value(rows[PAPER_MIX]):.1f}; our own way to answer "
        f"{100 * _value(rows[REFERENCE]):.1f}; the best baseline that learns nothing from the bank, {best['method']}, "
        f"{100 * _value(best):.1f}. The ablations below take out what was learned. In the paper's rows S "
        f"holds accuracy{sample}; in ours, evidence of all pairs."
    )


def _value(row: Row) -> float:
    return float(row["accuracy"]["value"])
