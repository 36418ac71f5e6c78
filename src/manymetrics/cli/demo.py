"""`demo`: learn and evaluate on a generated bank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options, output
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, as_gain, with_interval
from manymetrics.cli.progress import Stages


@options.command("manymetrics demo", "manymetrics demo --bank-only bank && manymetrics learn bank --out model")
@options.group(
    "Options",
    options.folder("--bank-only", "Write the bank to this folder, and stop."),
    options.value("--seed", "N", "Random seed of the bank and of learning.", type=click.IntRange(min=0), default=0,
                  show_default=True),
    options.workers,
    options.run,
    options.quiet,
    options.json_option,
)  # fmt: skip
def demo(*, bank_only: Path | None, seed: int, workers: int | None, run: Path | None, quiet: bool,
         as_json: bool) -> None:  # fmt: skip
    """Learn from a generated bank, and compare methods on new tasks.

    The bank has 48 small tasks; methods are compared on 8 tasks that are not used for learning. This takes some
    minutes. Only the sentence encoder is fetched, once; no data leave the machine.
    """
    if bank_only is not None:
        _write_bank(bank_only, seed)
        return
    remember_run(run)
    fetch_encoder_if_missing(mm.Recipe().encoder)
    with Stages(quiet=quiet) as stages:
        result = mm.run_demo(seed=seed, workers=workers or os.cpu_count() or 1, run=run, report=stages)
    output.write_result(_summary(result, seed), _text(result), as_json=as_json)
    stages.sum_up()


def _write_bank(folder: Path, seed: int) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise mm.InputError(f"{folder} already exists and is not empty. Give a new folder.")
    bank = mm.sample_bank(seed)
    families = {name: family for name in bank.names if (family := mm.planted_family(name)) is not None}
    mm.write_bank(bank, folder, families=families)
    output.say(f"Wrote {len(bank)} tasks. Learn from them with: manymetrics learn {folder} --out model")
    output.write_path(folder)


def _summary(result: mm.Demo, seed: int) -> dict[str, Any]:
    names = ("method", "accuracy", "balanced_accuracy", "seconds")
    return {
        "seed": seed,
        "bank": result.model.origin.bank_fingerprint,
        "version": mm.__version__,
        "rows": [{name: getattr(row, name) for name in names} for row in result.rows],
        "gain": result.gain,
        "agreement": result.agreement,
        "clusters": [list(tasks) for tasks in result.model.clusters],
        "targets": [{"task": task, "metric": metric, "weight": weight} for task, metric, weight in result.targets],
    }


def _text(result: mm.Demo) -> Iterator[str | Table]:
    rows = [
        (row.method, with_interval(row.accuracy), with_interval(row.balanced_accuracy), output.as_time(row.seconds))
        for row in result.rows
    ]
    yield Table("method", numbers=["accuracy", "balanced accuracy", "time"], rows=rows)
    yield ""
    origin = result.model.origin
    yield f"RobustTC over logistic regression on one metric for all: {as_gain(result.gain)}"
    yield f"clusters against planted families: adjusted Rand index {result.agreement:.2f}"
    yield f"bank {origin.bank_fingerprint[:12]}, seed {origin.recipe.seed}, manymetrics {mm.__version__}"
    yield "In brackets: 95 % bootstrap intervals; in the table over texts, of the gain over targets and texts."
    yield ""
    tasks = {metric.name: metric.tasks for metric in result.model.metrics}
    heaviest = [
        (task, metric, output.name_tasks(tasks.get(metric, ())), f"{weight:.2f}")
        for task, metric, weight in result.targets
    ]
    yield Table("new task", "heaviest metric", "learned from", numbers=["weight"], rows=heaviest)
