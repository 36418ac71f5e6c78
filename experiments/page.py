"""results.json of one or two experiments -> docs/results.md. Every figure of the page is computed, none is typed.

The sections of a chapter are made by provenance.py, page_tables.py and against_paper.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.against_paper import differences_section, shown_section
from experiments.compared_page import compared_section, seen
from experiments.first_screen import first_screen
from experiments.markdown import fold, points, share, table
from experiments.page_tables import (
    ablations_section,
    chosen_section,
    clusters_section,
    fallback_section,
    figure_section,
    knobs_told,
    main_table,
)
from experiments.plan import AMAZON, EXPERIMENTS, INTENT
from experiments.provenance import data_section, is_older, origin_section
from experiments.repeated import held_out_told, targets_told
from experiments.several_page import DISCLOSED, several_section

TITLES = {AMAZON: "Amazon reviews", INTENT: "Intents of chatbots"}

HEAD = """# Results

Made by `make results` from what `python -m experiments reproduce` wrote and what is kept in
[experiments/kept](../experiments/kept); do not edit. Numbers are per cent, means over targets and seeds. In square
brackets stand 95 % bootstrap intervals over sources (products, corpora, repositories) and texts. *Gain* is the accuracy
of RobustTC-FSL less that of the row on the same targets, texts and seeds, in points: above zero, RobustTC-FSL is ahead.
*paper* is the accuracy that the paper reports. Balanced accuracy and macro-F1 of the intents stand without intervals:
those that were kept came from a bootstrap that lost rare labels, and the experiments were not run again.
"""
OLDER = fold(
    "**Measured with an earlier version of the code, in which RobustTC-FSL mixed the answers of several kinds of "
    "metrics; rows of parts that are gone are of that version.**"
)
PROTOCOL = """## The protocol

Targets are shown to methods without their test labels, and to training and selection not at all. Everything that is
tuned is tuned on past tasks held out from training: when training stops, scope and calibration, and the settings of the
paper's rows (window, width and word vectors of its clusters' networks, and their number, among them) and of baselines.
Our number of clusters follows from the spectrum of X. What is not tuned is a
default of the recipe. Three things about the paper's rows were seen on targets first and decided again without them:
that rate and number of steps of its mix have to be tuned; that the network of all tasks needs a lower rate than the
recipe's (on targets it answered one label; on valid texts of past tasks its likelihood fell below a coin's at the
recipe's rate and rose at a quarter of it, the only other one tried); that free weights can
turn whole tasks round ([19](decisions/0019-the-papers-rows.md)): free and convex ones are shown. Four parts of our
method were thought of or settled after a look at target scores or targets' shots, and are named where they were decided
([18](decisions/0018-tasks-that-share-labels.md), [18](decisions/0018-tasks-that-share-labels.md),
[history](decisions/history.md)). A test permutes the targets' test labels and finds every byte of the model,
every weight and every answer unchanged. The majority row alone looks at the test labels.
"""

Results = Mapping[str, Any]


def write_page(experiments: Mapping[str, Results], held_out: Sequence[Results] = (), several: Sequence[Results] = (),
               compared: Sequence[Results] = (), repeated: Sequence[Results] = ()) -> str:  # fmt: skip
    """The page, as Markdown."""
    counts = {str(results["bank"]): results for results in repeated}
    parts = [HEAD, first_screen(experiments, held_out, several, compared)]
    if not experiments:
        parts.append("No results are kept yet.\n")
    if any(results["quick"] for results in experiments.values()):
        parts.append(
            "**Some of these are quick runs, on smaller tasks with shorter training: they show that everything runs, "
            "not how good it is.**\n"
        )
    if several:
        older = DISCLOSED if any(is_older(results) for results in several) else ""
        parts += ["## Do several metrics pay?\n", older, *(several_section(results) for results in several)]
    parts += [compared_section(str(TITLES.get(results["bank"], results["bank"])), results) for results in compared]
    parts += [_held_out(results, counts.get(str(results["bank"]))) for results in held_out]
    parts += [_chapter(name, experiments[name], counts.get(name)) for name in EXPERIMENTS if name in experiments]
    return "\n".join([*parts, PROTOCOL])


def _chapter(name: str, results: Results, repeated: Results | None) -> str:
    sections = [
        f"## {TITLES[name]}\n",
        OLDER if is_older(results) else "",
        data_section(name, results),
        "" if repeated is None else _with_command(targets_told(repeated), repeated),
        main_table(results),
        chosen_section(results),
        fallback_section(results),
        shown_section(name, results),
        differences_section(name, results),
        figure_section(name, results) if results["by_clusters"] else "",
        ablations_section(name, results) if results["ablations"] else "",
        clusters_section(results),
        origin_section(results),
    ]
    return "\n".join(section for section in sections if section)


def _with_command(told: str, repeated: Results) -> str:
    """What is told of repeated texts, with the command that counts them."""
    return fold(f"{told} (`{repeated['command']}`, data `{repeated['data'][:16]}`.)")


def _held_out(results: Results, repeated: Results | None) -> str:
    """One run of `held-out`."""
    bank = TITLES.get(results["bank"], results["bank"])
    words = (
        f"{results['tasks']} tasks of {results['sources']} sources, assigned to {results['folds']} folds; each fold is "
        "answered by what was learned from the others, on few-shot problems shaped as the targets are. No target is "
        "involved. *Ahead* is the accuracy of RobustTC-FSL less that of the row, both with label names or both without."
    )
    words += seen(results)
    if repeated is not None and repeated["held_out"]["folds"] == results["folds"]:
        words += f" {held_out_told(repeated)}"
    rows = [
        [row["method"], share(row["accuracy"]), share(row["balanced_accuracy"]), points(row["ahead"])]
        for row in results["rows"]
    ]
    chosen = "; ".join(f"{row}: {knobs_told(settings)}" for row, settings in results["chosen"].items())
    return "\n".join([
        f"## {bank}: every source held out once, recipe {results['recipe_name']}\n",
        *([OLDER] if is_older(results) else ()),
        fold(words),
        table(["method"], ["accuracy", "balanced accuracy", "ahead"], rows),
        f"Chosen on the first fold's past tasks: {chosen}. `{results['command']}`, data `{results['data'][:16]}`.\n",
    ])  # fmt: skip


def keep_parts(results: Results, before: Results | None = None) -> dict[str, Any]:
    """Results of a table alone with the figure and the ablations kept before, marked as those of an earlier run."""
    if results["by_clusters"] or before is None or not before["by_clusters"]:
        return dict(results)
    kept = {name: before[name] for name in ("by_clusters", "ablations")}
    return {**results, **kept, "parts_of": before.get("parts_of", before["command"])}
