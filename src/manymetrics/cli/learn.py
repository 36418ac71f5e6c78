"""`learn`: a folder of tasks -> a model. `recipe`: all settings of learning."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.inputs import open_model
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, name_tasks, say, write_result
from manymetrics.cli.progress import Stages
from manymetrics.service.domain.shared_tasks import bank_of, clients_of, published, require_clients

KEY = "MANYMETRICS_KEY"
MIN_CLIENTS = 3  # behind each published metric


@options.command(
    "manymetrics learn bank --out model",
    "manymetrics learn bank --out model --run run --workers 8    # resumes if interrupted",
    "manymetrics learn bank --out model --run run --ray auto     # on the Ray cluster of this machine",
    "manymetrics learn bank --out model --from starter           # a small bank, added to the starter model",
    "manymetrics learn bank --out model --encoder my-encoder --pooling mean",
    "manymetrics recipe > my.toml && manymetrics learn bank --out model --recipe my.toml",
)
@click.argument("bank", type=options.PATH, required=False)
@options.group(
    "Output",
    options.folder("--out", help="Save the model in this folder.", required=True),
    options.run,
    options.flag("--replace", help="Replace the model in --out, if there is one."),
    options.json_option,
)
@options.group(
    "Method",
    options.recipe,
    options.encoder,
    options.option("--clusters", metavar="N", type=int, help="Number of clusters.  [default: chosen from the data]"),
    options.option("--from", "start", metavar="MODEL", help="Add what is learned to this model: a folder, or starter."),
    options.option(
        "--from-service", metavar="URL", help=f"Also learn from tasks that clients of this service share; needs {KEY}."
    ),
    options.seed,
)
@options.group(
    "Execution",
    options.workers,
    options.option("--ray", metavar="auto|ADDRESS", help="Run jobs on a Ray cluster instead of worker processes."),
    options.option("--job-timeout", metavar="SECONDS", type=click.FloatRange(0, min_open=True),
                   help="Skip jobs that take longer than this."),
    options.count("--job-memory", metavar="MIB", help="Skip jobs that need more memory than this."),
    options.flag("--strict", help="Fail if a task or a job would be skipped."),
    options.quiet,
)  # fmt: skip
def learn(*, bank: Path | None, out: Path, run: Path | None, replace: bool, as_json: bool, recipe: str,
          start: str | None, from_service: str | None, workers: int, ray: str | None,
          job_timeout: float | None, job_memory: int | None, strict: bool, quiet: bool,
          **settings: Any) -> None:  # fmt: skip
    """Learn metrics from the tasks in the folder BANK and save a model.

    Tasks marked as targets in BANK/manifest.json are not used. Tasks that cannot be read or trained on are skipped, and
    listed at the end; the same command with --run and --replace tries them again.
    """
    remember_run(run)
    chosen = choose_recipe(recipe, **settings)
    mm.model.check_output_folders(bank, out=out, run=run, replace=replace)
    shared = [] if from_service is None else _fetch_shared_tasks(from_service)
    if bank is None and not shared:
        raise mm.InputError("There is nothing to learn from. Give a folder of tasks, or --from-service URL.")
    read = mm.TaskBank(()) if bank is None else mm.load_tasks(bank, strict=strict)
    tasks = bank_of(shared, read.only([name for name in read.names if read.role(name) != "target"]))
    first = None if start is None else open_model(start)
    limits = mm.Limits(job_timeout, job_memory and job_memory * 2**20)
    with Stages(quiet=quiet) as stages:
        model = mm.learn_metrics(
            tasks, chosen, run=run, report=stages, workers=workers, ray=ray, limits=limits, start=first
        )  # fmt: skip
        if strict and (count := len(stages.failures)):
            stages.sum_up()
            raise mm.StageFailed(f"{count} job{'s' * (count != 1)} failed. With --strict, no model is saved.")
        model = _publish(model, shared) if shared else model
        model.save(out)
    summary = _summary(model, out, stages)
    write_result(summary, _text(summary, len(model.transfer.names)), as_json=as_json)
    stages.sum_up("--replace")
    if not quiet:
        say(f"The model is in {out}.")


@options.command("manymetrics recipe fast > my.toml")
@click.argument("name", metavar="[NAME]", type=click.Choice(options.RECIPES), default=options.RECIPES[0])
def recipe(*, name: str) -> None:
    """Print a recipe as TOML.

    A recipe has all settings of `learn`; each is printed with an explanation. NAME is default (a sentence encoder),
    tuned (the same, fine-tuned on the bank), fast (static word vectors) or paper (the networks of the paper).
    """
    click.echo(mm.Recipe.named(name).as_toml(explained=True), nl=False)


def choose_recipe(name: str, **settings: Any) -> mm.Recipe:
    """The recipe with this name or in this file, changed by the settings that are not None."""
    if name not in options.RECIPES and not Path(name).exists():
        names = ", ".join(options.RECIPES)
        raise mm.RecipeError(f"There is no recipe and no file {name}. Give {names}, or the path of a TOML file.")
    recipe = mm.Recipe.named(name) if name in options.RECIPES else mm.Recipe.load(name)
    return dataclasses.replace(recipe, **{name: value for name, value in settings.items() if value is not None})


def _fetch_shared_tasks(url: str) -> list[dict[str, Any]]:
    key = os.environ.get(KEY)
    if not key:
        raise mm.InputError(f"The environment variable {KEY} is not set. Set it to a key with the scope operate.")
    with mm.Client(url, key) as client:
        shared = list(client.pages("/v1/shared-tasks"))
    require_clients(clients_of(shared), MIN_CLIENTS)
    return shared


def _publish(model: mm.MetricModel, shared: list[dict[str, Any]]) -> mm.MetricModel:
    """The model without everything learned from too few clients."""
    reduced, removed = published(model, clients_of(shared), fewest=MIN_CLIENTS)
    if removed:
        say(f"Removed, because fewer than {MIN_CLIENTS} clients contributed to each: {', '.join(removed)}.")
    if hidden := len(model.clusters.names) - len(reduced.clusters.names):
        say(f"New tasks are not compared with {hidden} tasks in clusters of fewer than {MIN_CLIENTS} clients.")
    return reduced


def _summary(model: mm.MetricModel, out: Path, stages: Stages) -> dict[str, Any]:
    names, scores = ("name", "kind", "cluster", "tasks"), model.transfer.scores
    return {
        "model": str(out),
        "clusters": [list(tasks) for tasks in model.clusters],
        "metrics": [{name: getattr(metric, name) for name in names} for metric in model.metrics],
        "held_out": model.held_out,
        "bank": model.origin.bank_fingerprint,
        "pairs": int((scores == scores).sum()) // 2,  # noqa: PLR0124 - NaN: a pair that was not measured
        "seconds": stages.seconds,
        "failures": stages.failures,
    }


def _text(summary: dict[str, Any], n_tasks: int) -> Iterator[str | Table]:
    clusters, metrics = summary["clusters"], summary["metrics"]
    others = [metric["name"] for metric in metrics if metric["cluster"] is None]
    of_others = f", {len(others)} others ({', '.join(others)})" if others else ""
    yield f"{sum(map(len, clusters))} tasks in {len(clusters)} clusters."
    yield f"{len(metrics)} metrics: {len(metrics) - len(others)} of single clusters{of_others}."
    yield f"Transfer was measured for {summary['pairs']:,} of {n_tasks * (n_tasks - 1) // 2:,} pairs of tasks."
    yield ""
    rows = [(f"cluster-{number}", name_tasks(names)) for number, names in enumerate(clusters)]
    yield Table("cluster", "tasks", rows=rows)
