"""What `several` answered -> rows with intervals, the command, and its table."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.options import folders_option, run_options
from experiments.partings import FOUND, KNOWN, NONE, ONE, RANDOM
from experiments.provenance import FORMAT
from experiments.several import DRAWS, FOLDS, OTHERS, OWN, SHOTS, Row, run_several
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, say, write_json
from manymetrics.cli.progress import Stages
from manymetrics.evaluation.scoring import Estimate, interval, resample_sources
from manymetrics.store import write_atomically

RESULTS = "several-{}.json"  # with the names of the banks
MANY_FAMILIES = 10  # from so many on, intervals are over families instead of sources
REDRAWN = 1000
SCORES = ("accuracy", "balanced_accuracy", "auc")
KINDS = (FOUND, KNOWN, RANDOM)
ROWS: tuple[Row, ...] = ((NONE, ""), (ONE, ""), *((kind, how) for kind in KINDS for how in (SHOTS, OWN)))


@click.command("several", short_help="Whether several metrics pay: clusters found, known, and drawn at random.")
@folders_option
@click.option("--by", default="family", show_default=True, help="Entry of manifest.json that names the known cluster.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds.")
@click.option("--folds", type=click.IntRange(min=2), default=FOLDS, show_default=True, help="Parts to deal sources to.")
@click.option("--draws", type=click.IntRange(min=1), default=DRAWS, show_default=True, help="Of random clusters.")
@run_options
def several(*, folders: tuple[Path, ...], out: Path, recipe: str, by: str, seeds: int, folds: int, draws: int,
            workers: int | None, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Answer few-shot problems of held-out tasks by one metric, and by one for each cluster of some kinds of clusters.

    Intervals are 95 % bootstrap intervals over families, or over sources where families are few. All that is finished
    is kept in --out, which several banks can share.
    """
    remember_run(out)
    with Stages(quiet=quiet) as stages:
        found = run_several(
            folders, out, choose_recipe(recipe), by=by, seeds=seeds, folds=folds, draws=draws,
            workers=workers or os.cpu_count() or 1, report=stages,
        )  # fmt: skip
    named = " ".join(f"--data {folder.resolve().name}" for folder in folders)
    results = {
        "format": FORMAT,
        "command": f"python -m experiments several {named} --recipe {recipe} --by {by} --seeds {seeds} --folds {folds} "
        f"--draws {draws} --out OUT",
        "banks": [folder.resolve().name for folder in folders],
        "seeds": seeds,
        "draws": draws,
        **score(found),
    }
    write_atomically(out / RESULTS.format("-".join(results["banks"])), json.dumps(results, indent=1).encode())
    write_json(results) if as_json else _show(results)
    if not quiet:
        say(f"Everything is in {out}.")


def score(found: Mapping[str, Any]) -> dict[str, Any]:
    """Every row with intervals, what it gains over one metric, and how much better own clusters are than others."""
    families, sources = found["families"], found["sources"]
    many = len(set(families.values())) >= MANY_FAMILIES
    groups = families if many else sources
    values = {score: {row: by_task(found["answers"], row, score) for row in _every_row()} for score in SCORES}
    rows = []
    for row in ROWS:
        about: dict[str, Any] = {"clusters": row[0], "weights": row[1]}
        for name in SCORES:
            one, own = values[name][ONE, ""], values[name][row]
            about[name] = estimate(own, groups)
            about[f"{name}_gain"] = None if row == (ONE, "") else estimate(less(own, one), groups)
        rows.append(about)
    accuracies = values["accuracy"]
    return {
        "data": found["data"],
        "tasks": len(families),
        "sources": len(set(sources.values())),
        "families": len(set(families.values())),
        "over": "families" if many else "sources",
        "metrics": "projections",
        "chosen": found["chosen"],
        "rows": rows,
        "own_over_others": {
            kind: estimate(less(accuracies[kind, OWN], accuracies[kind, OTHERS]), groups) for kind in KINDS
        },
        "over_random": {
            kind: {how: estimate(less(accuracies[kind, how], accuracies[RANDOM, how]), groups) for how in (SHOTS, OWN)}
            for kind in (FOUND, KNOWN)
        },
        "by_draw": {how: by_draw(found["answers"], how, found["draws"]) for how in (SHOTS, OWN)},
        "agreement": {kind: _mean([one[kind] for one in found["agreement"]]) for kind in found["agreement"][0]},
        "seconds_of_processor": found["seconds_of_processor"],
    }


def _every_row() -> list[Row]:
    return [*ROWS, *((kind, OTHERS) for kind in KINDS)]


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


def less(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The difference of two scores on the tasks that have both."""
    return {task: value - other[task] for task, value in one.items() if task in other}


def estimate(values: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float] | None:
    """The mean over tasks, with the interval that drawing other groups would give; None of no tasks."""
    if not values:
        return None
    drawn = np.repeat(np.array(list(values.values()))[:, None], REDRAWN, axis=1)  # (tasks, draws)
    means = resample_sources(drawn, [groups[task] for task in values], np.random.default_rng(0))
    return vars(Estimate(_mean(list(values.values())), *interval(means)))


def _show(results: Mapping[str, Any]) -> None:
    table = Table("metrics", "weights", numbers=["accuracy", "balanced accuracy", "AUC", "over one metric"])
    for row in results["rows"]:
        cells = [_points(row[name]) for name in SCORES] + [_points(row["accuracy_gain"], plus=True)]
        table.add_row(row["clusters"], row["weights"], *cells)
    table.write()
    own = "; ".join(f"{kind} {_points(one, plus=True)}" for kind, one in results["own_over_others"].items())
    agreed = ", ".join(f"{kind} {value:.2f}" for kind, value in results["agreement"].items())
    click.echo(
        f"\nown cluster's metric over another's: {own}\nclusters found against families, adjusted Rand: {agreed}\n"
        f"{results['command']}\n{results['tasks']} tasks, {results['sources']} sources, {results['families']} families,"
        f" data {results['data'][:12]}, intervals over {results['over']}"
    )


def _points(one: Mapping[str, float] | None, *, plus: bool = False) -> str:
    if one is None:
        return "-"
    sign = "+" if plus else ""
    return f"{100 * one['value']:{sign}.1f} [{100 * one['low']:{sign}.1f}, {100 * one['high']:{sign}.1f}]"
