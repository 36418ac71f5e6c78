"""`learn`: a folder of tasks -> a model. `recipe`: every knob of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.group import remember_run
from manymetrics.cli.output import (
    examples_of_use,
    json_option,
    make_table,
    name_tasks,
    say,
    without_breaks,
    write_json,
    write_lines,
    write_table,
)
from manymetrics.cli.progress import Stages
from manymetrics.cli.sharing import Shared

FORMAT = 1
NAMED = ("default", "tuned", "fast", "paper")


@click.command(
    short_help="Learn metrics from a folder of tasks.",
    epilog=examples_of_use(
        "manymetrics learn bank --out model",
        "manymetrics learn bank --out model --run run --workers 8    # can be stopped and given again",
        "manymetrics learn bank --out model --run run --ray auto  # on the Ray cluster this machine is part of",
        "manymetrics recipe > my.toml && manymetrics learn bank --out model --recipe my.toml",
    ),
)
@click.argument("bank", type=click.Path(path_type=Path), required=False)
@click.option("--from-service", metavar="URL",
              help="Learn from what clients of a service share; MANYMETRICS_KEY is an operator's key.")  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write the model to.")
@click.option("--run", type=click.Path(path_type=Path),
              help="Folder to keep finished work in, to go on from; without it nothing is kept.")  # fmt: skip
@click.option("--recipe", "recipe_name", metavar="NAME|FILE", default="default", show_default=True,
              help="default, tuned, fast (word vectors), paper, or a TOML file of knobs; see `recipe`.")  # fmt: skip
@click.option("--clusters", type=int, help="How many clusters to part the tasks in; chosen from the data if not given.")
@click.option(
    "--pairs", metavar="N|all", help="How many pairs of tasks to measure; chosen by their number if not given."
)
@click.option(
    "--hold-out",
    "hold_out",
    metavar="NAME",
    multiple=True,
    help="Do not learn from this task, or from those whose names begin so; repeatable. `evaluate --target` tries them.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes to work in.  [default: one for each core]")
@click.option("--ray", metavar="auto|ADDRESS", help="Work on the nodes of a Ray cluster instead.")
@click.option("--unit-timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Give up a piece of work that takes longer.")  # fmt: skip
@click.option("--unit-memory", type=click.IntRange(min=1), metavar="MIB", help="Give up one that takes more memory.")
@click.option("--seed", type=int, help="Of all randomness; the same seed gives the same model.")
@click.option(
    "--strict", is_flag=True, help="Accept no task that cannot be used or learned, instead of leaving it out."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@click.option("--progress", type=click.Choice(["text", "json"]), default="text", help="How to tell of it on stderr.")
@json_option
def learn(*, bank: Path | None, from_service: str | None, out: Path, run: Path | None, recipe_name: str,
          clusters: int | None, pairs: str | None, hold_out: tuple[str, ...], workers: int | None, ray: str | None,
          unit_timeout: float | None, unit_memory: int | None, seed: int | None, strict: bool, quiet: bool,
          progress: str, as_json: bool) -> None:  # fmt: skip
    """Learn metrics from the tasks in the folder BANK and save them as a model.

    Tasks that the folder's manifest.json marks as targets are not learned from. A task that cannot be learned is left
    out and named at the end; with --run, the same command tries it again.
    """
    remember_run(run)
    recipe = choose_recipe(recipe_name, clusters=clusters, seed=seed)
    shared = Shared.of(from_service)
    past = shared.with_bank(bank, lambda folder: _learn_from(folder, hold_out, out=out, run=run, strict=strict))
    recipe = replace(recipe, pairs=choose_pairs(pairs, len(past)) if pairs else recipe.pairs)
    with Stages(quiet=quiet, as_json=progress == "json") as stages:
        model = mm.learn_metrics(
            past,
            recipe,
            run=run,
            workers=workers or os.cpu_count() or 1,
            ray=ray,
            limits=mm.Limits(unit_timeout, unit_memory and unit_memory * 2**20),
            report=stages,
        )
        if strict and stages.failures:
            stages.sum_up()
            count = f"{len(stages.failures)} unit{'s' * (len(stages.failures) > 1)}"
            raise mm.UnitsFailed(f"{count} failed, and --strict accepts none. No model is saved.")
        model = shared.published(model)
        model.save(out)
    if as_json:
        write_json(_describe(model, out, stages.seconds, stages.failures))
    else:
        _show(model)
    stages.sum_up()
    if not quiet and progress == "text":
        say(f"The model is in {out}.")


@click.command(
    short_help="Print the knobs of learning, as TOML.", epilog=examples_of_use("manymetrics recipe fast > my.toml")
)
@click.argument("name", type=click.Choice(NAMED), default=NAMED[0])
def recipe(*, name: str) -> None:
    """Print a recipe as TOML: every knob of `learn` with what it is, to start your own from.

    NAME is default (a sentence encoder), tuned (the same, tuned on the bank), fast (static word vectors) or paper (the
    published networks).
    """
    click.echo(mm.Recipe.named(name).as_toml(explained=True), nl=False)


def choose_recipe(name: str, **chosen: Any) -> mm.Recipe:
    """The recipe of a name or a file, with what was chosen on the command line."""
    recipe = mm.Recipe.named(name) if name in NAMED else mm.Recipe.load(name)
    return replace(recipe, **{name: value for name, value in chosen.items() if value is not None})


def choose_pairs(pairs: str, tasks: int) -> int:
    """How many pairs `--pairs` asks for."""
    if pairs == "all":
        return max(1, tasks * (tasks - 1) // 2)
    if not (pairs.isascii() and pairs.isdigit() and int(pairs)):
        raise mm.InputError(f"--pairs is {pairs!r}. Give a number from 1 up, or all.")
    return int(pairs)


def _learn_from(folder: Path, hold_out: tuple[str, ...], *, out: Path, run: Path | None, strict: bool) -> mm.TaskBank:
    """The tasks of a folder, whose place is no place for results."""
    mm.require_places(folder, out=out, run=run)
    return tasks_to_learn_from(folder, hold_out, strict=strict)


def tasks_to_learn_from(folder: Path, hold_out: tuple[str, ...], *, strict: bool) -> mm.TaskBank:
    """The tasks of a folder that are neither targets nor held out by name."""
    bank = mm.load_tasks(folder, strict=strict)
    past = bank.split_off(*hold_out)[0] if hold_out else bank
    return past.only([name for name in past.names if past.role(name) != "target"])


def _show(model: mm.MetricModel) -> None:
    table = make_table("cluster", "tasks")
    for number, tasks in enumerate(model.clusters):
        table.add_row(f"cluster-{number}", name_tasks(tasks))
    click.echo(f"{len(model.clusters.names)} tasks in {len(model.clusters)} clusters.")
    write_lines(_metrics_told(model))
    measured, every = _pairs(model)
    click.echo(f"Transfer was measured for {measured:,} of {every:,} pairs of tasks.\n")
    write_table(table)


def _metrics_told(model: mm.MetricModel) -> str:
    """How many metrics there are, and of what."""
    of_clusters = [metric for metric in model.metrics if metric.cluster is not None]
    others = [metric.name for metric in model.metrics if metric.cluster is None]
    count = f"{len(model.metrics)} metrics: {len(of_clusters)} of single clusters"
    return f"{count}, {len(others)} others ({', '.join(map(without_breaks, others))})." if others else f"{count}."


def _pairs(model: mm.MetricModel) -> tuple[int, int]:
    """How many pairs of tasks were measured, in both directions, and how many there are."""
    scores, tasks = model.transfer.scores, len(model.transfer.names)
    return int((scores == scores).sum()) // 2, tasks * (tasks - 1) // 2  # noqa: PLR0124 - only NaN differs from itself


def _describe(
    model: mm.MetricModel, out: Path, seconds: dict[str, float], failures: list[mm.Failure]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": str(out),
        "clusters": [list(tasks) for tasks in model.clusters],
        "metrics": [
            {"name": metric.name, "kind": metric.kind, "cluster": metric.cluster, "tasks": metric.tasks}
            for metric in model.metrics
        ],
        "held_out": model.held_out,
        "bank": model.origin.bank_fingerprint,
        "pairs": _pairs(model)[0],
        "seconds": seconds,
        "failures": [vars(failure) for failure in failures],
    }
