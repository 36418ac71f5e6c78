"""`demo`: learn and evaluate on a generated bank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.evaluate import describe_evaluation
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, say, write_path, write_result
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
def demo(*, bank_only: Path | None, seed: int, workers: int, run: Path | None, quiet: bool, as_json: bool) -> None:
    """Learn from a generated bank, and evaluate the model on new tasks.

    The bank has 48 small tasks; the model is evaluated on 8 tasks that are not used for learning. This takes some
    minutes. Only the sentence encoder is fetched, once; no data leave the machine.
    """
    if bank_only is not None:
        _write_bank(bank_only, seed)
        return
    remember_run(run)
    fetch_encoder_if_missing(mm.Recipe().encoder)
    with Stages(quiet=quiet) as stages:
        result = mm.run_demo(seed=seed, workers=workers, run=run, report=stages)
    data = {
        "seed": seed,
        "bank": result.model.origin.bank_fingerprint,
        "version": mm.__version__,
        "agreement": result.agreement,
        "clusters": [list(tasks) for tasks in result.model.clusters],
        **result.evaluation.as_dict(),
    }
    write_result(data, _text(result), as_json=as_json)
    stages.sum_up()


def _write_bank(folder: Path, seed: int) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise mm.InputError(f"{folder} already exists and is not empty. Give a new folder.")
    bank = mm.sample_bank(seed)
    mm.write_bank(bank, folder)
    say(f"Wrote {len(bank)} tasks. Learn from them with: manymetrics learn {folder} --out model")
    write_path(folder)


def _text(result: mm.Demo) -> Iterator[str | Table]:
    origin = result.model.origin
    yield from describe_evaluation(result.evaluation)
    yield f"clusters against planted families: adjusted Rand index {result.agreement:.2f}"
    yield f"bank {origin.bank_fingerprint[:12]}, seed {origin.recipe.seed}, manymetrics {mm.__version__}"
