"""`grid`: examples a label by number of labels, the default recipe against logistic regression, TF-IDF and prototypes.

A fifth of the bank's sources is kept from learning, every fifth in turn. Problems are drawn from these: each task with
1 to 50 examples a label, and several tasks taken together for more labels than one has. The best other row of a cell is
the best by hindsight, so a cell of few problems is hard to win; its interval, over sources, says how far it can be
trusted.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparison import OURS, base_encoder, baselines
from experiments.intervals import gain_in_accuracy
from experiments.markdown import percent, points
from experiments.methods import adapted
from experiments.options import Results, count_option, data_option, experiment, recipe_option
from experiments.problems import answer_problems, as_task, tuning_problems
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.episodes import draw_episodes
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.scoring import Answered
from manymetrics.learn import learn_metrics, past_tasks
from manymetrics.model import MetricModel
from manymetrics.values import Task, TaskBank

PARTS = 5  # each of which is kept from learning in turn
DRAWS = 2  # problems of each size that a task gives
SHOTS = (1, 2, 5, 10, 20, 50)
LABELS = ((2, 4), (5, 9), (10, 29), (30, 79), (80, 150))
Cell = tuple[int, tuple[int, int]]  # examples a label, range of labels
Row = tuple[str, str]  # what is told of label names, method


def show(results: Results) -> Iterator[str | Table]:
    """A row for each cell."""
    columns = ["problems", "sources", OURS, "best other", "ahead"]
    table = Table("names", "examples a label", "labels", numbers=columns)
    for cell in results["cells"]:
        ours, best = (percent(cell["accuracy"][name]) for name in (OURS, cell["best"]))
        table.add_row(cell["names"], cell["shots"], "{} to {}".format(*cell["labels"]), cell["problems"],
                      cell["sources"], ours, f"{best} ({cell['best']})", points(cell["ahead"]))  # fmt: skip
    yield table
    yield f"{results['learnings']} learnings"


@experiment("grid", data_option, recipe_option, count_option("--seed", 0, "Of all randomness.", least=0),
            file="grid.json", show=show,
            short_help="Examples a label by number of labels, against three lines of scikit-learn.")  # fmt: skip
def grid(*, data: Path, out: Path, recipe: str, seed: int, **how: Any) -> Results:
    """Learn from four fifths of the past tasks of --data, and answer few-shot problems of the others, five times."""
    past = past_tasks(data)
    fifths = [names for part in range(PARTS) if (names := held_out_part(past, seed, part))]
    if len(fifths) < 2:
        raise InputError(
            f"{data}: of so few sources none falls to the fifth that is kept from learning. Take more tasks."
        )
    cells: dict[Cell, dict[Row, list[Answered]]] = {}
    sources: dict[Cell, list[str]] = {}
    for held_out in fifths:
        rest = past.only([name for name in past.names if name not in held_out])
        settings = choose_recipe(recipe, seed=seed)
        model = learn_metrics(rest, settings, run=out / "run", **how)
        problems = draw_problems(past, held_out, seed)
        for cell, answered in answer_all(model, problems, tuning_problems(rest)).items():
            sources.setdefault(cell, []).extend(_group(task.source) for task in problems[cell])
            for row, found in answered.items():
                cells.setdefault(cell, {}).setdefault(row, []).extend(found)
    return {"data": past.fingerprint, "learnings": len(fifths), "cells": score(cells, sources)}


def held_out_part(bank: TaskBank, seed: int, part: int) -> set[str]:
    """The tasks of one fifth of the sources; tasks whose names begin alike, up to a dash, are of one source."""
    lots = {task.name: hashlib.sha256(f"{seed} {_group(task.name)}".encode()).hexdigest() for task in bank}
    return {name for name, lot in lots.items() if int(lot, 16) % PARTS == part}


def _group(name: str) -> str:
    return name.split("-", maxsplit=1)[0]


def draw_problems(bank: TaskBank, held_out: set[str], seed: int) -> dict[Cell, list[Task]]:
    """Problems of the tasks that were held out, by cell."""
    found: dict[Cell, list[Task]] = {}
    episodes = [
        one
        for draw in range(DRAWS)
        for shots in (5, 2)
        for one in draw_episodes(bank, sorted(held_out), shots=shots, seed=seed + 1000 * draw)
    ]
    for place, episode in enumerate(episodes):
        classes = len(episode.support.classes)
        counts = np.bincount(episode.support.numbers, minlength=classes)
        shots, labels = int(np.median(counts)), next((one for one in LABELS if one[0] <= classes <= one[1]), None)
        if labels is not None and shots in SHOTS and counts.max() <= shots:
            found.setdefault((shots, labels), []).append(as_task(f"{place}", episode, source=episode.task))
    return dict(sorted(found.items()))


def answer_all(model: MetricModel, problems: Mapping[Cell, Sequence[Task]],
               tuning: TaskBank) -> dict[Cell, dict[Row, list[Answered]]]:  # fmt: skip
    """What every method answers in every cell, with label names and without."""
    methods: dict[Row, Method] = {}
    for told, names in (("off", False), ("on", True)):
        made = {OURS: adapted(model, names=names), **baselines(base_encoder(model), tuning, names=names)}
        methods |= {(told, method): answer for method, answer in made.items()}
    return {
        cell: {row: answer_problems(made, TaskBank(tuple(tasks))) for row, made in methods.items()}
        for cell, tasks in problems.items()
    }


def score(cells: Mapping[Cell, Mapping[Row, Sequence[Answered]]],
          sources: Mapping[Cell, Sequence[str]]) -> list[dict[str, Any]]:  # fmt: skip
    """The mean accuracy of every method in every cell, and how far ours is ahead of the best other."""
    found = []
    for names in ("off", "on"):
        for cell in sorted(cells):
            answered = {method: own for (told, method), own in cells[cell].items() if told == names}
            if not answered:
                continue
            means = {method: float(np.mean([one.accuracy for one in own])) for method, own in answered.items()}
            best = max((method for method in means if method != OURS), key=lambda method: means[method])
            ahead = gain_in_accuracy([answered[OURS]], [answered[best]], sources[cell])
            found.append({
                "names": names, "shots": cell[0], "labels": list(cell[1]), "problems": len(answered[OURS]),
                "sources": len(set(sources[cell])), "accuracy": means, "best": best,
                "balanced_accuracy": float(np.mean([one.balanced_accuracy for one in answered[OURS]])),
                "ahead": asdict(ahead),
            })  # fmt: skip
    return found
