"""The first screen of docs/results.md: the rows that matter, what wins and by how much, and where nothing is gained."""

from collections.abc import Iterator, Mapping, Sequence

from experiments.comparison import OFF, ON
from experiments.comparison import OURS as OURS_COMPARED
from experiments.held_out import OURS, OURS_WITH_STEPS, WITH_NAMES
from experiments.markdown import both, capitalized, percent, points, signed, table
from experiments.page_values import (
    DATA,
    MAJORITY,
    POOLED,
    SINGLE_TASK,
    Results,
    Row,
    accuracy,
    by_method,
    seen,
    version,
)
from experiments.plan import AMAZON, PAPER, PUBLISHED, RANDOM_ABLATION, REFERENCE, TODAY

UNMOVED = 0.01  # a smaller difference is none
BLIND = 0.53  # a balanced accuracy below this, with two labels, tells them apart no better than a coin
FROZEN_REGRESSION = "frozen encoder, logistic regression, balanced"
COMPARED_ROWS = {  # of `compare`: method, label names
    "RobustTC-FSL, recipe default": (OURS_COMPARED, OFF),
    "RobustTC-FSL, recipe default, label names": (OURS_COMPARED, ON),
    "The same sentence encoder, frozen, + LR on the shots": (FROZEN_REGRESSION, OFF),
    "The same, label names": (FROZEN_REGRESSION, ON),
}
ROWS = {  # of `reproduce`
    "RobustTC-FSL on word vectors, recipe fast": REFERENCE,
    "RobustTC-FSL as published, on word vectors": PUBLISHED,
    "TF-IDF + LR over all tasks, without a look at the shots": POOLED,
    "Frozen word vectors + LR on the shots": "Frozen vectors + LR",
    "Always the commonest label": MAJORITY,
}

Verdict = tuple[bool, str]  # whether the whole interval is above zero, and the sentence


def glance_table(experiments: Mapping[str, Results], compared: Sequence[Results]) -> str:
    """Accuracy and balanced accuracy of the rows that matter."""
    default = {results["bank"]: _told(results) for results in compared if results["recipe_name"] == "default"}
    lines = []
    for words, key in COMPARED_ROWS.items() if default else ():
        rows = [default.get(name, {}).get(key) for name in experiments]
        cells = [f"{percent(accuracy(row))} ({percent(row['balanced_accuracy'])})" if row else "-" for row in rows]
        lines.append([words + (version(*compared) if key[0] == OURS_COMPARED else ""), *cells])
    for words, method in ROWS.items():
        rows = [by_method(results["rows"]).get(method) for results in experiments.values()]
        told = version(*experiments.values()) if method == REFERENCE else ""
        lines.append([words + told, *(both(row) if row else "-" for row in rows)])
    return table(["accuracy (balanced accuracy), per cent"], [DATA[name] for name in experiments], lines)


def verdicts(experiments: Mapping[str, Results], compared: Sequence[Results],
             held_out: Sequence[Results]) -> Iterator[Verdict]:  # fmt: skip
    """Ours against the best of the others, wherever they were compared, and what clusters are worth."""
    for name, results in experiments.items():
        yield from _on_words(name, results)
        yield from _on_clusters(f"{capitalized(DATA[name])}, word vectors", results)
    for results in compared:
        yield from _on_sentences(results, experiments.get(results["bank"]))
    for results in held_out:
        yield from _on_held_out(results)


def _over(gain: Mapping[str, float], others: str, balanced: float) -> str:
    return f"{points(gain)} points over {others}; balanced accuracy {signed(balanced)}."


def _on_words(name: str, results: Results) -> Iterator[Verdict]:
    """Our row against the best baseline, all texts pooled, the network alone."""
    rows, best = by_method(results["rows"]), _best_rival(results)
    data = f"{capitalized(DATA[name])}, word vectors{version(results)}"
    balanced = rows[REFERENCE]["balanced_accuracy"]["value"] - best["balanced_accuracy"]["value"]
    blind = " It never looks at a target's shots."
    line = _over(best["gain"], f"the best baseline, {best['method']}", balanced)
    yield best["gain"]["low"] > 0, f"{data}: {line}{blind * (best['method'] == POOLED)}"
    if POOLED in rows and best["method"] != POOLED:
        gain = rows[POOLED]["gain"]
        yield gain["low"] > 0, f"{data}: {points(gain)} points over {POOLED}.{blind}"
    alone = rows[SINGLE_TASK]["balanced_accuracy"]["value"] if SINGLE_TASK in rows else 1.0
    if name == AMAZON and alone < BLIND:
        line = f"{data}: {SINGLE_TASK} does not tell the labels apart (balanced accuracy {percent(alone)}); "
        yield False, line + "its accuracy is what its offset happens to be."


def _best_rival(results: Results) -> Row:
    """The best row of an experiment that is not ours."""
    rows = [row for row in results["rows"] if row["applies"] and row["group"] in (PAPER, TODAY)]
    return max((row for row in rows if row["method"] != MAJORITY), key=accuracy)


def _on_clusters(data: str, results: Results) -> Iterator[Verdict]:
    """Their number, and which tasks are in them."""
    own = sorted((one for one in results["by_clusters"] if one["method"] == REFERENCE), key=lambda one: one["clusters"])
    if len(own) < 2:
        return
    first, last, best = own[0], own[-1], max(own[1:], key=accuracy)
    start, end = (one["balanced_accuracy"]["value"] for one in (first, last))
    way = "falls" if end - start < -UNMOVED else "rises" if end - start > UNMOVED else "stays"
    line = (
        f"{data}: the best number of clusters, {best['clusters']}, picked by the targets, gains "
        f"{points(best['over_one'])} points over one; balanced accuracy {way} with their number, from "
        f"{percent(start)} at {first['clusters']} to {percent(end)} at {last['clusters']}."
    )
    yield False, line
    if chance := by_method(results["ablations"]).get(RANDOM_ABLATION):
        draws = max(1, len(chance["per_seed"]))
        lost = f"{draws} draw{'s' * (draws > 1)}) lose {points(chance['gain'])} points."
        yield False, f"{data}: clusters drawn at random ({lost}"


def _on_sentences(results: Results, elsewhere: Results | None) -> Iterator[Verdict]:
    """Ours against the best row of `compare`, without label names and with them.

    `elsewhere` has rows of another run on the same targets, which use no label names.
    """
    rows, data = _told(results), capitalized(DATA.get(str(results["bank"]), str(results["bank"])))
    for names, told in {OFF: "", ON: ", label names"}.items():
        rivals = [
            row for (method, of), row in rows.items() if of == names and method not in (OURS_COMPARED, "majority")
        ]
        if not rivals:
            continue
        best, ours = max(rivals, key=accuracy), rows[OURS_COMPARED, names]
        balanced = ours["balanced_accuracy"] - best["balanced_accuracy"]
        line = f"{data} (targets, recipe {results['recipe_name']}{told}){version(results)}: "
        line += _over(best["ahead"], f"the best row on the same encoder, {best['method']}", balanced)
        if names == OFF and elsewhere and accuracy(other := _best_rival(elsewhere)) > accuracy(best):
            balanced = ours["balanced_accuracy"] - other["balanced_accuracy"]["value"]
            line += (
                f" Of the table's other rows {other['method']} comes nearest, "
                f"{signed(accuracy(ours) - accuracy(other))} points and {signed(balanced)} in balanced accuracy; it is "
                "of another run, so that no interval is known."
            )
        yield best["ahead"]["low"] > 0, f"{line} {seen(results)}"


def _told(results: Results) -> dict[tuple[str, str], Row]:
    return {(row["method"], row["names"]): row for row in results["rows"]}


def _on_held_out(results: Results) -> Iterator[Verdict]:
    """Ours against the best row on held-out sources, without label names and with them, and with gradient steps."""
    rows = {row["method"]: row for row in results["rows"]}
    about = (
        f"Every source of the {DATA.get(results['bank'], results['bank'])} held out once ({results['tasks']} tasks of "
        f"{results['sources']} sources, recipe {results['recipe_name']}"
    )
    for told in ("", WITH_NAMES):
        rivals = [row for method, row in rows.items() if not method.startswith(OURS) and method != MAJORITY
                  and method.endswith(WITH_NAMES) == bool(told)]  # fmt: skip
        if not rivals:
            continue
        best = max(rivals, key=accuracy)
        others = f"the best of the others, {best['method'].removesuffix(WITH_NAMES)}"
        for ours, lead, steps in ((OURS, "ahead", ""), (OURS_WITH_STEPS, "steps_ahead", ", gradient steps")):
            if ours + told in rows:
                balanced = rows[ours + told]["balanced_accuracy"]["value"] - best["balanced_accuracy"]["value"]
                line = f"{about}{told}{steps}){version(results)}: {_over(best[lead], others, balanced)}"
                yield best[lead]["low"] > 0, f"{line} {seen(results)}"
