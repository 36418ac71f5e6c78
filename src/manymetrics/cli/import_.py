"""`import`: tasks of other programs -> a bank. `export`: a bank -> JSON lines."""

from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import Table, say, write_result

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "huggingface", "rasa", "clu", "luis",
           "dialogflow")  # fmt: skip


@options.command(
    "manymetrics import tickets.csv bank --text-column body --label-column queue",
    "manymetrics import all-clients.jsonl bank --task-column client",
    "manymetrics import excel.csv bank --delimiter ';' --encoding cp1252",
    "manymetrics import my-rasa-bot bank --name pizza-bot",
    name="import",
)
@click.argument("source", type=options.PATH)
@options.bank
@options.group(
    "Source",
    options.option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}.  [default: detected]"),
    options.text_column,
    options.name("--label-column",
                 help="Column of labels, or its number without a header.  [default: label, intent or category]"),
    options.name("--task-column", help="Column of the task names, if a table has several tasks."),
    options.option("--delimiter", metavar="CHAR", help="Column separator: , ; | or tab.  [default: detected]"),
    options.name("--encoding", help="Encoding of a table, such as cp1252.  [default: UTF-8, or by its mark]"),
)  # fmt: skip
@options.group(
    "Tasks",
    options.name("--name", help="Name of the task, or prefix of the names of several.  [default: from SOURCE]"),
    options.flag("--no-split", help="Use all examples for training, if SOURCE has no splits."),
    options.flag("--fold-labels", help="Join labels that differ only in case or white space."),
    options.flag("--strict", help="Fail if a row or a task would be skipped."),
)
@options.group("Output", options.flag("--replace", help="Replace tasks of the same name in BANK."), options.json_option)
def import_(*, source: Path, bank: Path, no_split: bool, replace: bool, as_json: bool, **settings: Any) -> None:
    """Import tasks from other programs into a bank.

    SOURCE is a CSV, TSV, JSONL, JSON or Parquet table; the folder of a Hugging Face data set; a Rasa NLU file or
    folder; an Azure CLU project or LUIS app (JSON); or the folder of a Dialogflow agent (ES or CX).

    Tasks are added to the folder BANK as JSONL files. If SOURCE has no splits, examples are split 64 / 16 / 20 into
    train, valid and test; duplicates of a text stay together. Rows with a blank text or label are skipped. Texts
    without a label are written to <task>.counter.jsonl.
    """
    imported = mm.import_tasks(source, split=not no_split, **settings)
    files = mm.add_to_bank(imported.bank, bank, counter_examples=imported.counter_examples, replace=replace)
    say(f"Read {source} as {imported.format}; wrote {len(files)} files to {bank}.")
    for note in imported.notes:
        say(note)
    tasks = [
        {
            "name": task.name,
            "labels": len(task.labels),
            **{split: len(getattr(task, split)) for split in ("train", "valid", "test")},
            "counter_examples": len(imported.counter_examples.get(task.name, ())),
        }
        for task in imported.bank
    ]
    data = {"source": str(source), "read_as": imported.format, "rows_left_out": imported.rows_left_out, "tasks": tasks,
            "notes": imported.notes}  # fmt: skip
    numbers = ["labels", "train", "valid", "test"]
    rows = [(task["name"], *(task[name] for name in numbers)) for task in tasks]
    write_result(data, [Table("task", numbers=numbers, rows=rows)], as_json=as_json)


@options.command("manymetrics export bank > bank.jsonl", "manymetrics import bank.jsonl copy --task-column task")
@options.bank
def export(*, bank: Path) -> None:
    """Print the examples of a bank as JSON lines.

    Each line has text, label, task and split.
    """
    for line in mm.export_lines(mm.load_tasks(bank)):
        click.echo(line, nl=False)
