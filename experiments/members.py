"""`members`: what each member of the mix is worth, and what its exponents may depend on, on tasks not learned from.

Metrics are learned from a bank, a fifth of its sources held out. Exponents are learned on problems of some of the
held-out sources and tried on the others', in turn, so that no row has seen what it answers. No target is involved.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from experiments.comparison import points
from experiments.options import data_option, run_options, seeds_option
from manymetrics.cli.group import remember_run
from manymetrics.cli.learning import choose_recipe
from manymetrics.cli.output import make_table, say, write_json, write_table
from manymetrics.cli.progress import Stages
from manymetrics.engine import Progress
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import mean_gain
from manymetrics.learn import Candidates, draw_candidates, find_clusters, with_shared_projection
from manymetrics.recipe import Recipe
from manymetrics.start import at_work, in_order, load_base, make_ready, past_tasks, prepare
from manymetrics.store import Run, write_atomically
from manymetrics.values import Floats, TaskBank
from manymetrics.weigh.pooling import PENALTIES, Coefficients, PooledEpisode, exponents_of, learn_exponents
from manymetrics.weigh.selection import answer_episode, pool_groups
from manymetrics.weigh.settings import MixSettings

FOLDS = 5  # of the held-out sources
MIX = "the mix"
FIXED, FREE = (PENALTIES[0], 1e6, 1e6), (PENALTIES[0],) * 3  # the same exponents for all problems; as the bank has it


@dataclass(frozen=True, eq=False)
class Problem:
    """What every group of members answers in a few-shot problem, and the source of its task."""

    pooled: PooledEpisode
    groups: tuple[str, ...]
    source: str


@click.command(short_help="What each member of the mix is worth on held-out tasks of a bank.")
@data_option
@seeds_option
@run_options
def members(*, data: Path, out: Path, recipe: str, seeds: int, workers: int | None, quiet: bool,
            as_json: bool) -> None:  # fmt: skip
    """Learn from the past tasks of --data, and answer problems of those held out with all members and with fewer."""
    remember_run(out)
    bank = in_order(past_tasks(data), None)
    if bank.shared_labels is not None:
        raise InputError(
            f"{data}: where all tasks have the same labels, members are not multiplied. Take another bank."
        )
    sources = {task.name: task.source for task in bank}
    found: dict[str, list[Problem]] = {"off": [], "on": []}
    with Stages(quiet=quiet) as stages:
        for seed in range(seeds):
            knobs = choose_recipe(recipe, seed=seed)
            tried = candidates(bank, knobs, out / "run", workers or os.cpu_count() or 1, stages)
            for told in found:
                found[told] += answered(tried, sources, names=told == "on")
    if not found["off"]:
        raise InputError(f"{data}: of so few tasks none can be kept from learning. Take more tasks.")
    results: dict[str, Any] = {
        "format": 1,
        "command": f"python -m experiments members --data {data.name} --recipe {recipe} --seeds {seeds}",
        "data": bank.fingerprint,
        "problems": len(found["off"]),
        "rows": [row for told, problems in found.items() for row in score(problems, problems[0].groups, told)],
    }
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "members.json", json.dumps(results, indent=1).encode())
    write_json(results) if as_json else _show(results)
    if not quiet:
        say(f"Everything is in {out}.")


def candidates(bank: TaskBank, recipe: Recipe, run: Path, workers: int,
               report: Callable[[Progress], None]) -> Candidates:  # fmt: skip
    """Metrics that some tasks were kept from, and problems of these."""
    with threadpool_limits(1), Run.open(run, recipe.as_toml()) as kept:
        where: dict[str, Any] = {"workers": workers, "run": kept, "report": report}
        ready = make_ready(prepare(bank, load_base(recipe), {}), recipe, **where)
        with at_work(ready, **where) as work:
            shared = with_shared_projection(ready, work, recipe)
            return draw_candidates(shared, find_clusters(shared, work, recipe).clusters, work, recipe)


def answered(tried: Candidates, sources: Mapping[str, str], *, names: bool) -> list[Problem]:
    """What every group of members answers in each problem, and the source of its task."""
    found = []
    for episode in tried.episodes:
        answers = answer_episode(tried.metrics, episode, tried.routing, names=names)
        pooled = pool_groups(answers, MixSettings().prior_shots)
        found.append(Problem(pooled, tuple(dict.fromkeys(answers.groups)), sources[episode.task]))
    return found


def score(problems: Sequence[Problem], groups: Sequence[str], told: str) -> list[dict[str, Any]]:
    """The mix, the mix with other exponents and without a group, and each group alone, with intervals over sources."""
    every = range(len(groups))
    tried = {
        MIX: cross_fitted(problems, groups, every, PENALTIES),
        "exponents the same for all problems": cross_fitted(problems, groups, every, FIXED),
        "exponents free to follow a problem's size": cross_fitted(problems, groups, every, FREE),
    }
    for place, group in enumerate(groups):
        rest = [one for one in every if one != place]
        tried[f"without {group}"] = cross_fitted(problems, groups, rest, PENALTIES)
    for place, group in enumerate(groups):
        tried[f"{group} alone"] = [softmax(one.pooled.logs[:, place], axis=1) for one in problems]
    best = [_right(found, one) for found, one in zip(tried[MIX], problems, strict=True)]
    sources, rows = [one.source for one in problems], []
    for row, answers in tried.items():
        right = [_right(found, one) for found, one in zip(answers, problems, strict=True)]
        likely = [_likelihood(found, one) for found, one in zip(answers, problems, strict=True)]
        gains = [one - other for one, other in zip(best, right, strict=True)]
        rows.append({
            "row": row,
            "names": told,
            "accuracy": asdict(mean_gain(right, sources=sources)),
            "log_likelihood": float(np.mean(likely)),
            "ahead": None if row == MIX else asdict(mean_gain(gains, sources=sources)),
        })  # fmt: skip
    return rows


def cross_fitted(problems: Sequence[Problem], groups: Sequence[str], kept: Sequence[int],
                 penalties: Coefficients) -> list[Floats]:  # fmt: skip
    """Answers by exponents that were learned on problems of other sources: (texts, classes) of each problem."""
    names, logs = [groups[place] for place in kept], [one.pooled.logs[:, list(kept)] for one in problems]
    folds = [_fold(one.source) for one in problems]
    found: list[Floats] = [np.zeros(0)] * len(problems)
    for fold in set(folds):
        others = [replace(one.pooled, logs=own) for one, own, its in zip(problems, logs, folds, strict=True)
                  if its != fold]  # fmt: skip
        learned = list(learn_exponents(others, names, penalties=penalties).values())
        for place in (place for place, its in enumerate(folds) if its == fold):
            exponents = exponents_of(learned, problems[place].pooled.size)
            found[place] = softmax(np.einsum("g,igc->ic", exponents, logs[place]), axis=1)
    return found


def _fold(source: str) -> int:
    return int(hashlib.sha256(source.encode()).hexdigest(), 16) % FOLDS


def _right(found: Floats, problem: Problem) -> Floats:
    right: Floats = (found.argmax(axis=1) == problem.pooled.answers).astype(np.float64)
    return right


def _likelihood(found: Floats, problem: Problem) -> float:
    right = found[np.arange(len(found)), problem.pooled.answers]
    return float(np.log(np.maximum(right, 1e-12)).mean())


def _show(results: Mapping[str, Any]) -> None:
    table = make_table("", "label names", numbers=["accuracy", "log-likelihood", f"{MIX} ahead by"])
    for row in results["rows"]:
        ahead = "" if row["ahead"] is None else points(row["ahead"])
        table.add_row(row["row"], row["names"], points(row["accuracy"], plus=False), f"{row['log_likelihood']:.3f}",
                      ahead)  # fmt: skip
    write_table(table)
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, {results['problems']} problems of held-out tasks")
