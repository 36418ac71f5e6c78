"""What `several` answered -> rows with intervals, the command, and its table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.clusterings import FOUND, KNOWN, NONE, ONE, RANDOM
from experiments.intervals import over_groups
from experiments.markdown import points, share
from experiments.options import (
    Results,
    count_option,
    experiment,
    family_option,
    folders_option,
    folds_option,
    recipe_option,
)
from experiments.several import DRAWS, FOLDS, OTHERS, OWN, SHOTS, Row, run_several
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table

MANY_FAMILIES = 10  # from so many on, intervals are over families instead of sources
SCORES = ("accuracy", "balanced_accuracy", "auc")
KINDS = (FOUND, KNOWN, RANDOM)
ROWS: tuple[Row, ...] = ((NONE, ""), (ONE, ""), *((kind, how) for kind in KINDS for how in (SHOTS, OWN)))
EVERY_ROW: tuple[Row, ...] = (*ROWS, *((kind, OTHERS) for kind in KINDS))


def show(results: Results) -> Iterator[str | Table]:
    """A row for each kind of clusters and weights."""
    table = Table("metrics", "weights", numbers=["accuracy", "balanced accuracy", "AUC", "over one metric"])
    for row in results["rows"]:
        cells = [share(row[name]) for name in SCORES] + [points(row["accuracy_gain"])]
        table.add_row(row["clusters"], row["weights"], *cells)
    yield table
    own = "; ".join(f"{kind} {points(one)}" for kind, one in results["own_over_others"].items())
    agreed = ", ".join(f"{kind} {value:.2f}" for kind, value in results["agreement"].items())
    yield f"own cluster's metric over another's: {own}"
    yield f"clusters found against families, adjusted Rand: {agreed}"
    yield (f"{results['tasks']} tasks, {results['sources']} sources, {results['families']} families, intervals over "
           f"{results['over']}")  # fmt: skip


@experiment(
    "several",
    folders_option,
    recipe_option,
    family_option,
    count_option("--seeds", 1, "How many seeds."),
    folds_option(FOLDS),
    count_option("--draws", DRAWS, "Of random clusters."),
    file="several-{}.json", show=show,
    short_help="Whether several metrics pay: clusters found, known, and drawn at random.",
)  # fmt: skip
def several(*, folders: tuple[Path, ...], out: Path, recipe: str, seeds: int, draws: int, **how: Any) -> Results:
    """Answer few-shot problems of held-out tasks by one metric, and by one for each cluster of some kinds of clusters.

    Intervals are 95 % bootstrap intervals over families, or over sources where families are few. All that is finished
    is kept in --out, which several banks can share.
    """
    found = run_several(folders, out, choose_recipe(recipe), seeds=seeds, draws=draws, **how)
    return {"seeds": seeds, "draws": draws, **score(found)}


def score(found: Mapping[str, Any]) -> dict[str, Any]:
    """Every row with intervals, what it gains over one metric, and how much better own clusters are than others."""
    families, sources, answers = found["families"], found["sources"], found["answers"]
    many = len(set(families.values())) >= MANY_FAMILIES
    groups = families if many else sources
    values = {score: {row: by_task(answers, row, score) for row in EVERY_ROW} for score in SCORES}
    rows = []
    for row in ROWS:
        scored: dict[str, Any] = {"clusters": row[0], "weights": row[1]}
        for name in SCORES:
            one, own = values[name][ONE, ""], values[name][row]
            scored[name] = over_groups(own, groups)
            scored[f"{name}_gain"] = None if row == (ONE, "") else over_groups(_less(own, one), groups)
        rows.append(scored)

    def gain(one: Row, other: Row) -> dict[str, float] | None:
        return over_groups(_less(values["accuracy"][one], values["accuracy"][other]), groups)

    return {
        "data": found["data"],
        "tasks": len(families),
        "sources": len(set(sources.values())),
        "families": len(set(families.values())),
        "over": "families" if many else "sources",
        "metrics": found["metrics"],
        "chosen": found["chosen"],
        "rows": rows,
        "own_over_others": {kind: gain((kind, OWN), (kind, OTHERS)) for kind in KINDS},
        "over_random": {
            kind: {how: gain((kind, how), (RANDOM, how)) for how in (SHOTS, OWN)} for kind in (FOUND, KNOWN)
        },
        "by_draw": {how: by_draw(answers, how, found["draws"]) for how in (SHOTS, OWN)},
        "agreement": {kind: _mean([one[kind] for one in found["agreement"]]) for kind in found["agreement"][0]},
        "seconds_of_processor": found["seconds_of_processor"],
    }


def by_task(answers: Sequence[Mapping[str, Any]], row: Row, score: str) -> dict[str, float]:
    """The mean of a score over the seeds, draws and problems of each task that has it."""
    found: dict[str, list[float]] = {}
    for seed in answers:
        for task, rows in seed.items():
            found.setdefault(task, []).extend(one[score] for one in rows.get(row, ()) if score in one)
    return {task: _mean(values) for task, values in found.items() if values}


def by_draw(answers: Sequence[Mapping[str, Any]], how: str, draws: int) -> list[float]:
    """The accuracy of each draw of random clusters, over all tasks and seeds."""
    found: list[list[float]] = [[] for _ in range(draws)]
    for seed in answers:
        for rows in seed.values():
            values = [one["accuracy"] for one in rows[RANDOM, how]]  # of one draw after the other
            for draw, some in enumerate(np.array_split(values, draws)):
                found[draw].append(float(some.mean()))
    return [_mean(values) for values in found]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _less(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The difference of two scores on the tasks that have both."""
    return {task: value - other[task] for task, value in one.items() if task in other}
