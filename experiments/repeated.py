"""`data repeated`: texts that are asked and also occur in what was learned from, word for word, counted."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.amazon import data
from experiments.held_out import draw_folds
from experiments.markdown import listed
from manymetrics.cli.options import examples_of_use, json_option
from manymetrics.cli.output import Table, write_result
from manymetrics.collect import load_tasks
from manymetrics.learn import past_tasks
from manymetrics.values import Task

WORTH_NAMING = 0.01  # a share of a target's texts
FOLDS, SEED = 5, 0  # as the results that are kept were held out


def count_repeated(past: Iterable[Task], asked: Iterable[Task]) -> list[dict[str, Any]]:
    """For each task that is asked: how many test texts it has, and how many of them past tasks have to learn from."""
    known = {text for task in past for text in (*task.train.texts, *task.valid.texts)}
    return [
        {"task": task.name, "texts": len(task.test), "repeated": sum(text in known for text in task.test.texts)}
        for task in asked
    ]


def repeated_texts(folder: Path) -> dict[str, Any]:
    """Repeated texts of a bank's targets, and of its tasks where every source is held out once."""
    past, targets = load_tasks(folder).split_off()
    bank = past_tasks(folder)
    bank = bank.only(sorted(bank.names)).without_tests()
    held_out = [one for fold in draw_folds(bank, FOLDS, seed=SEED) for one in count_repeated(fold.past, fold.problems)]
    return {
        "format": 1,
        "command": f"python -m experiments data repeated {folder.name} --json",
        "bank": folder.name,
        "data": past.fingerprint,
        "rows": [one for one in count_repeated(past, targets) if one["texts"]],
        "held_out": {
            "folds": FOLDS,
            "texts": sum(one["texts"] for one in held_out),
            "repeated": sum(one["repeated"] for one in held_out),
            "mean_share": float(np.mean([one["repeated"] / one["texts"] for one in held_out])),
        },
    }


def targets_told(results: Mapping[str, Any]) -> str:
    """A sentence on targets with repeated texts."""
    shares = {row["task"]: row["repeated"] / row["texts"] for row in results["rows"]}
    many = [f"{share:.1%} of {task}" for task, share in shares.items() if share >= WORTH_NAMING]
    if not many:
        return "Hardly any test text of the targets occurs in past tasks."
    rest = f"; of each other target fewer than {WORTH_NAMING:.0%}" if len(many) < len(shares) else ""
    return f"Test texts that occur word for word among the texts of past tasks: {listed(many)}{rest}."


def held_out_told(results: Mapping[str, Any]) -> str:
    """A sentence on repeated texts where every source is held out once."""
    found = results["held_out"]
    return (
        f"{found['repeated']:,} of the {found['texts']:,} texts asked occur word for word in tasks that were learned "
        f"from, {found['mean_share']:.1%} as the mean over tasks."
    )


@data.command(
    short_help="Count texts that are asked and were learned from.",
    epilog=examples_of_use("python -m experiments data repeated intent --json > repeated-intent.json"),
)
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def repeated(*, folder: Path, as_json: bool) -> None:
    """Count the test texts of the targets in FOLDER that occur word for word in its past tasks.

    Below the table stands the same for `held-out`: texts of a source that occur in tasks of the other folds. `page
    --repeated FILE` keeps what --json writes.
    """
    found = repeated_texts(folder)
    rows = [(row["task"], row["texts"], row["repeated"], f"{row['repeated'] / row['texts']:.1%}")
            for row in found["rows"]]  # fmt: skip
    table = Table("target", numbers=["test texts", "in past tasks", "share"], rows=rows)
    write_result(found, (table, f"held out: {held_out_told(found)}"), as_json=as_json)
