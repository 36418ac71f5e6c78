"""results.json of one or two experiments -> docs/results.md. Every figure of the page is computed, none is typed.

The sections of a chapter are made by provenance.py, page_tables.py and against_paper.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.against_paper import differences_section, shown_section
from experiments.compared_page import compared_section, seen
from experiments.glance import at_a_glance
from experiments.markdown import fold, points, share
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
from experiments.several_page import DISCLOSED, several_section
from manymetrics.recipe import WORDS as STATIC

TITLES = {AMAZON: "Amazon reviews", INTENT: "Intents of chatbots"}

HEAD = """# Results

Made by `make results` from what `python -m experiments reproduce` wrote and what is kept in
[experiments/kept](../experiments/kept); do not edit. Numbers are per cent, means over targets and seeds. In square
brackets stand 95 % bootstrap intervals over sources (products, corpora, repositories) and texts. *Gain* is the accuracy
of RobustTC-FSL less that of the row on the same targets, texts and seeds, in points: above zero, RobustTC-FSL is ahead.
*paper* is the accuracy that the paper reports.
"""
OLDER = "**The results of this chapter are of an earlier version of the code, whose recipe had other knobs.**\n"
PROTOCOL = """## The protocol

Targets are shown to methods without their test labels, and to training and selection not at all. Everything that is
tuned is tuned on past tasks held out from training: the settings of the mix, the threshold of the fallback, when
training stops, and the knobs of the paper's rows (window, width and word vectors of its clusters' networks, and their
number, among them) and of baselines. Our number of clusters follows from the spectrum of X. What is not tuned is a
default of the recipe. Three things about the paper's rows were seen on targets first and decided again without them:
that rate and number of steps of its mix have to be tuned; that the network of all tasks needs a lower rate than the
recipe's (on targets it answered one label; on valid texts of past tasks its likelihood fell below a coin's at the
recipe's rate and rose at a quarter of it, the only other one tried); that free weights can
turn whole tasks round ([32](decisions/0032-the-papers-rows.md)): free and convex ones are shown. Four parts of our
method were thought of or settled after a look at target scores or targets' shots, and are named where they were decided
([12](decisions/0012-tasks-that-share-their-labels.md), [17](decisions/0017-a-linear-metric-of-all-tasks.md),
[19](decisions/0019-whose-task-this-is.md)). A test permutes the targets' test labels and finds every byte of the model,
every weight and every answer unchanged. The majority row alone looks at the test labels.
"""

Results = Mapping[str, Any]


def write_page(experiments: Mapping[str, Results], held_out: Sequence[Results] = (), several: Sequence[Results] = (),
               compared: Sequence[Results] = ()) -> str:  # fmt: skip
    """The page, as Markdown."""
    parts = [HEAD, at_a_glance(experiments, held_out, several, compared)]
    if not experiments:
        parts.append("No results are kept yet.\n")
    if any(results["quick"] for results in experiments.values()):
        parts.append(
            "**Some of these are quick runs, on smaller tasks with shorter training: they show that everything runs, "
            "not how good it is.**\n"
        )
    if several:
        parts += ["## Do several metrics pay?\n", DISCLOSED, *(several_section(results) for results in several)]
    parts += [compared_section(str(TITLES.get(results["bank"], results["bank"])), results) for results in compared]
    parts += [_held_out(results) for results in held_out]
    parts += [_chapter(name, experiments[name]) for name in EXPERIMENTS if name in experiments]
    return "\n".join([*parts, PROTOCOL])


def _chapter(name: str, results: Results) -> str:
    sections = [
        f"## {TITLES[name]}\n",
        OLDER if is_older(results) else "",
        data_section(name, results),
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


def _held_out(results: Results) -> str:
    """One run of `held-out`."""
    bank = TITLES.get(results["bank"], results["bank"])
    words = (
        f"{results['tasks']} tasks of {results['sources']} sources, dealt to {results['folds']} folds; each fold is "
        "answered by what was learned from the others, on few-shot problems shaped as the targets are. No target is "
        "involved. *Ahead* is the accuracy of RobustTC-FSL less that of the row, both with label names or both without."
    )
    if results["recipe"]["encoder"] == STATIC:
        words += " Over word vectors, with every row of the paper's table; none looks at label names."
    words += seen(results)
    lines = [f"## {bank}: every source held out once, recipe {results['recipe_name']}\n", fold(words),
             "| method | accuracy | balanced accuracy | ahead |", "|---|---:|---:|---:|"]  # fmt: skip
    for row in results["rows"]:
        ahead = "" if row["ahead"] is None else points(row["ahead"])
        lines.append(f"| {row['method']} | {share(row['accuracy'])} | {share(row['balanced_accuracy'])} | {ahead} |")
    chosen = "; ".join(f"{row}: {knobs_told(knobs)}" for row, knobs in results["chosen"].items())
    return "\n".join(lines) + f"\n\nChosen on the first fold's past tasks: {chosen}. `{results['command']}`, data " \
        f"`{results['data'][:16]}`.\n"  # fmt: skip


def keep_parts(results: Results, before: Results | None = None) -> dict[str, Any]:
    """Results of a table alone with the figure and the ablations kept before, marked as those of an earlier run."""
    if results["by_clusters"] or before is None or not before["by_clusters"]:
        return dict(results)
    kept = {name: before[name] for name in ("by_clusters", "ablations")}
    return {**results, **kept, "parts_of": before.get("parts_of", before["command"])}
