"""The first screen of docs/results.md: what wins, by how much, and where nothing is gained. Every word is computed."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.compared_page import BEST_RIVAL, cell, seen, verdicts
from experiments.comparison import OFF, ON
from experiments.comparison import OURS as OURS_COMPARED
from experiments.held_out import MAJORITY, OURS, WITH_NAMES
from experiments.markdown import both, capitalized, fold, points, table
from experiments.plan import AMAZON, EXPERIMENTS, INTENT, PAPER, PUBLISHED, RANDOM_ABLATION, REFERENCE, TODAY
from experiments.provenance import version_told
from experiments.several_page import one_line

Results = Mapping[str, Any]
Row = Mapping[str, Any]

DATA = {AMAZON: "Amazon reviews", INTENT: "intents of chatbots"}
POOLED, SINGLE_TASK = "TF-IDF + LR over all tasks", "Single-task CNN"
UNMOVED = 0.01  # a difference that is not spoken of
BLIND = 0.53  # a balanced accuracy below this, with two labels, tells them apart no better than a coin


def first_screen(experiments: Mapping[str, Results], held_out: Sequence[Results], several: Sequence[Results] = (),
                compared: Sequence[Results] = ()) -> str:  # fmt: skip
    """A table of the rows that matter, then the verdicts."""
    found = [name for name in EXPERIMENTS if name in experiments]
    if not found:
        return ""
    wins, nothing = [], []
    for name in found:
        better, level = _against_baselines(name, experiments[name])
        wins += better
        nothing += level + _clusters(name, experiments[name])
    for results in compared:
        data = str(DATA.get(results["bank"], results["bank"]))
        elsewhere = _best_rival(experiments[results["bank"]]) if results["bank"] in experiments else None
        better, level = by_verdict(verdicts(capitalized(data), results, elsewhere))
        wins += better
        nothing += level
    for results in held_out:
        better, level = _held_out(results)
        wins += better
        nothing += level
    lists = [
        ("What wins", wins),
        ("Where nothing is gained", nothing),
        ("Do several metrics pay?", [one_line(results) for results in several]),
    ]
    told = [f"**{title}**\n\n" + "\n".join(_item(line) for line in lines) + "\n" for title, lines in lists if lines]
    words = "Points are the accuracy of RobustTC-FSL less that of the other, with a 95 % interval.\n"
    return "\n".join(["## At a glance\n", _table(experiments, found, compared), words, *told])


def _table(experiments: Mapping[str, Results], found: Sequence[str], compared: Sequence[Results]) -> str:
    """Accuracy and balanced accuracy of the rows that matter."""
    default = {results["bank"]: results for results in compared if results["recipe_name"] == "default"}
    rows = {name: {row["method"]: row for row in experiments[name]["rows"]} for name in found}
    wanted = {
        REFERENCE: "RobustTC-FSL on word vectors, recipe fast",
        PUBLISHED: "RobustTC-FSL as published, on word vectors",
        POOLED: "TF-IDF + LR over all tasks, without a look at the shots",
        "Frozen vectors + LR": "Frozen word vectors + LR on the shots",
        "Majority class": "Always the commonest label",
    }
    lines: list[list[str]] = []
    on_sentences = {
        "RobustTC-FSL, recipe default": (OURS_COMPARED, OFF),
        "RobustTC-FSL, recipe default, label names": (OURS_COMPARED, ON),
        "The same sentence encoder, frozen, + LR on the shots": (BEST_RIVAL, OFF),
        "The same, label names": (BEST_RIVAL, ON),
    }
    for words, row in on_sentences.items() if default else ():
        version = version_told(*default.values()) if row[0] == OURS_COMPARED else ""
        lines.append([words + version, *(cell(default.get(name), *row) for name in found)])
    for method, words in wanted.items():
        cells = [both(rows[name][method]) if rows[name][method]["applies"] else "-" for name in found]
        version = version_told(*experiments.values()) if method == REFERENCE else ""
        lines.append([words + version, *cells])
    return table(["accuracy (balanced accuracy), per cent"], [DATA[name] for name in found], lines)


def _against_baselines(name: str, results: Results) -> tuple[list[str], list[str]]:
    """Verdicts on our row against the best baseline, all texts pooled, the network alone."""
    rows = {row["method"]: row for row in results["rows"] if row["applies"]}
    data = _on_words(name) + version_told(results)
    best = _best_rival(results)
    balanced = rows[REFERENCE]["balanced_accuracy"]["value"] - best["balanced_accuracy"]["value"]
    line = f"{data}: {points(best['gain'])} points over the best baseline, {best['method']}; balanced accuracy "
    verdicts = [(best["gain"], line + f"{100 * balanced:+.1f}." + _unseen(best))]
    if POOLED in rows and best["method"] != POOLED:
        gain = rows[POOLED]["gain"]
        verdicts.append((gain, f"{data}: {points(gain)} points over {POOLED}." + _unseen(rows[POOLED])))
    wins, level = by_verdict(verdicts)
    alone = rows.get(SINGLE_TASK, {}).get("balanced_accuracy", {}).get("value", 1.0)
    if name == AMAZON and alone < BLIND:
        level.append(
            f"{data}: {SINGLE_TASK} does not tell the labels apart (balanced accuracy {100 * alone:.1f}); its accuracy "
            "is what its offset happens to be."
        )
    return wins, level


def _best_rival(results: Results) -> Row:
    """The best row of an experiment that is not ours."""
    rows = [row for row in results["rows"] if row["applies"] and row["group"] in (PAPER, TODAY)]
    return max(
        (row for row in rows if row["method"] != "Majority class"), key=lambda row: float(row["accuracy"]["value"])
    )


def _on_words(name: str) -> str:
    """What the rows of an experiment are about: `reproduce` learns over word vectors."""
    return f"{DATA[name].capitalize()}, word vectors"


def _unseen(row: Row) -> str:
    return " It never looks at a target's shots." if row["method"] == POOLED else ""


def by_verdict(verdicts: Sequence[tuple[Mapping[str, float], str]]) -> tuple[list[str], list[str]]:
    """Those whose gain lies above zero with its whole interval, and the others."""
    return [line for gain, line in verdicts if gain["low"] > 0], [line for gain, line in verdicts if gain["low"] <= 0]


def _clusters(name: str, results: Results) -> list[str]:
    """Verdicts on clusters: their number, and which tasks are in them."""
    own = sorted((one for one in results["by_clusters"] if one["method"] == REFERENCE), key=lambda one: one["clusters"])
    if len(own) < 2:
        return []
    first, last = own[0], own[-1]
    best = max(own[1:], key=lambda one: float(one["accuracy"]["value"]))
    change = last["balanced_accuracy"]["value"] - first["balanced_accuracy"]["value"]
    way = "falls" if change < -UNMOVED else "rises" if change > UNMOVED else "stays"
    earlier = " (an earlier run)" if "parts_of" in results else ""
    lines = [
        f"{_on_words(name)}{earlier}: the best number of clusters, {best['clusters']}, picked by the targets, "
        f"gains {points(best['over_one'])} points over one; balanced accuracy {way} with their number, from "
        f"{100 * first['balanced_accuracy']['value']:.1f} at {first['clusters']} to "
        f"{100 * last['balanced_accuracy']['value']:.1f} at {last['clusters']}."
    ]
    chance = next((row for row in results["ablations"] if row["method"] == RANDOM_ABLATION and row["applies"]), None)
    if chance is not None:
        gain = points(chance["gain"])
        lines.append(f"{_on_words(name)}{earlier}: clusters drawn at random ({_draws(chance)}) lose {gain} points.")
    return lines


def _draws(row: Row) -> str:
    count = max(1, len(row["per_seed"]))
    return f"{count} draw{'s' * (count > 1)}"


def _held_out(results: Results) -> tuple[list[str], list[str]]:
    """Verdicts on held-out sources: the best rival, with label names and without."""
    rows, verdicts = {row["method"]: row for row in results["rows"]}, []
    about = (
        f"Every source of the {DATA.get(results['bank'], results['bank'])} held out once ({results['tasks']} tasks of "
        f"{results['sources']} sources, recipe {results['recipe_name']}"
    )
    for told in ("", WITH_NAMES):
        rivals = [row for method, row in rows.items() if row["ahead"] is not None and method != MAJORITY
                  and method.endswith(WITH_NAMES) == bool(told)]  # fmt: skip
        if not rivals:
            continue
        best = max(rivals, key=lambda row: float(row["accuracy"]["value"]))
        balanced = rows[OURS + told]["balanced_accuracy"]["value"] - best["balanced_accuracy"]["value"]
        line = (
            f"{about}{told}){version_told(results)}: {points(best['ahead'])} points "
            f"over the best of the others, {best['method'].removesuffix(WITH_NAMES)}; balanced accuracy "
            f"{100 * balanced:+.1f}."
        )
        line += seen(results)
        verdicts.append((best["ahead"], line))
    return by_verdict(verdicts)


def _item(text: str) -> str:
    lines = fold(text, 118).splitlines()
    return "- " + "\n  ".join(lines)
