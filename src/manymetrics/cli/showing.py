"""`demo`: everything at once, on a bank of tasks that the package makes itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.group import remember_run
from manymetrics.cli.looking import fetch_encoder_if_missing
from manymetrics.cli.output import (
    as_time,
    examples_of_use,
    json_option,
    make_table,
    name_tasks,
    say,
    with_interval,
    write_json,
    write_path,
    write_table,
)
from manymetrics.cli.progress import Stages

FORMAT = 1


@click.command(
    short_help="See everything work on a bank made for it.",
    epilog=examples_of_use(
        "manymetrics demo",
        "manymetrics demo --bank-only bank && manymetrics learn bank --out model",
    ),
)
@click.option("--bank-only", type=click.Path(path_type=Path), help="Write the bank of tasks to this folder, and stop.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the bank and the learning.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to work in.  [default: one for each core]")
@click.option("--run", type=click.Path(path_type=Path), help="Folder to keep finished work in, to go on from.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@json_option
def demo(*, bank_only: Path | None, seed: int, workers: int | None, run: Path | None, quiet: bool,
         as_json: bool) -> None:  # fmt: skip
    """Make a bank of 48 small tasks, learn from it, and compare methods on 8 tasks not learned from.

    Takes some minutes; nothing leaves the machine, and only the sentence encoder is fetched, once.
    """
    if bank_only is not None:
        _write_bank(bank_only, seed)
        return
    remember_run(run)
    fetch_encoder_if_missing(mm.Recipe().encoder)
    with Stages(quiet=quiet) as stages:
        found = mm.run_demo(seed=seed, workers=workers or os.cpu_count() or 1, run=run, report=stages)
    if as_json:
        write_json(_describe(found, seed=seed))
    else:
        _show(found)
    stages.sum_up()


def _write_bank(folder: Path, seed: int) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise mm.InputError(f"{folder} is there already and is not empty. Give a new folder.")
    bank = mm.sample_bank(seed)
    families = {name: family for name in bank.names if (family := mm.planted_family(name)) is not None}
    mm.write_bank(bank, folder, families=families)
    say(f"Wrote {len(bank)} tasks. Learn from them with: manymetrics learn {folder} --out model")
    write_path(folder)


def _show(found: mm.Demo) -> None:
    table = make_table("method", numbers=["accuracy", "balanced accuracy", "time"])
    for row in found.rows:
        scores = (with_interval(row.accuracy), with_interval(row.balanced_accuracy))
        table.add_row(row.method, *scores, as_time(row.seconds))
    write_table(table)
    gain, origin = found.gain, found.model.origin
    click.echo(
        f"\nRobustTC over one metric for all: {100 * gain.value:+.1f} points "
        f"[{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]\n"
        f"clusters against planted families: adjusted Rand index {found.agreement:.2f}\n"
        f"bank {origin.bank_fingerprint[:12]}, seed {origin.recipe.seed}, manymetrics {mm.__version__}; in brackets "
        "95 % bootstrap intervals,\nof the table over the targets' texts, of the gain over targets and texts\n"
    )
    from_tasks = {metric.name: metric.tasks for metric in found.model.metrics}
    heaviest = make_table("new task", "heaviest metric", "learned from", numbers=["weight"])
    for task, metric, weight in found.targets:
        heaviest.add_row(task, metric, name_tasks(from_tasks.get(metric, ())), f"{weight:.2f}")
    write_table(heaviest)


def _describe(found: mm.Demo, *, seed: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "seed": seed,
        "bank": found.model.origin.bank_fingerprint,
        "version": mm.__version__,
        "rows": [
            {
                "method": row.method,
                "accuracy": vars(row.accuracy),
                "balanced_accuracy": vars(row.balanced_accuracy),
                "seconds": row.seconds,
            }
            for row in found.rows
        ],
        "gain": vars(found.gain),
        "agreement": found.agreement,
        "clusters": [list(tasks) for tasks in found.model.clusters],
        "targets": [{"task": task, "metric": metric, "weight": weight} for task, metric, weight in found.targets],
    }
