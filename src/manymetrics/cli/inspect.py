"""`inspect`: what is in a bank, and what cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import Table, say, write_result

COUNTS = ("labels", "train", "valid", "test", "largest", "duplicates", "overlap", "ambiguous")
LEGEND = """
labels: number of labels. train, valid, test: number of examples. largest: share of the most frequent label in train.
duplicates: rows of train that repeat a text. overlap: texts in more than one of train, valid and test.
ambiguous: texts with more than one label.
"""


@options.command("manymetrics inspect bank", "manymetrics inspect bank --json")
@options.bank
@options.group("Output", options.json_option)
def inspect(*, bank: Path, as_json: bool) -> None:
    """Check a folder of tasks before learning.

    Prints the size, the balance and the duplicates of each task, and what cannot be used and why. Two texts are the
    same if they differ only in case, spaces, and punctuation at the ends.
    """
    report = mm.inspect_bank(bank)
    write_result(report.as_dict(), _text(report), as_json=as_json)
    if len(report.tasks) > 1 and not as_json:
        say(f"Is the bank large enough? manymetrics evaluate --leave-one-out --bank {bank} --against starter")
    if not report.tasks:
        raise mm.InputError(f"{bank}: no usable task. The lines above give the reasons.")


def _text(report: mm.collect.BankReport) -> Iterator[str | Table]:
    if report.tasks:
        rows = [
            (task.name, task.role, task.labels, task.train, task.valid, task.test, f"{task.largest_share:.0%}",
             task.duplicates, task.shared, task.contradictions)
            for task in report.tasks
        ]  # fmt: skip
        yield Table("task", "role", numbers=COUNTS, rows=rows)
        yield from LEGEND.split("\n")
    if report.label_problems:
        yield report.label_problems
    yield from (f"skipped: {skipped.name}: {skipped.reason}" for skipped in report.left_out)
    yield from (f"not a task file: {name}" for name in report.not_tasks)
    yield from (f"counter-examples, not used for learning: {name}" for name in report.counter_files)
