"""`import`, `export`: tasks of other programs -> a bank, a bank -> JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.output import examples_of_use, json_option, make_table, on_one_line, say, write_json, write_table

FORMAT = 1


@click.command(
    "import",
    short_help="Bring tasks of other programs into a bank.",
    epilog=examples_of_use(
        "manymetrics import tickets.csv bank --text-column body --label-column queue",
        "manymetrics import all-clients.jsonl bank --task-column client",
        "manymetrics import excel.csv bank --delimiter ';' --encoding cp1252",
        "manymetrics import my-rasa-bot bank --name pizza-bot",
    ),
)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("bank", type=click.Path(path_type=Path))
@click.option(
    "--format", "format_", metavar="FORMAT",
    help="csv, tsv, jsonl, parquet, arrow, huggingface, rasa, clu, luis, watson or dialogflow.  [default: told from "
         "SOURCE]",
)  # fmt: skip
@click.option("--name", help="What to call the task, or what the names of several begin with.  [default: as SOURCE]")
@click.option("--text-column", metavar="NAME", help="Column of the texts.  [default: text, sentence or utterance]")
@click.option("--label-column", metavar="NAME", help="Column of the labels.  [default: label, intent or category]")
@click.option("--task-column", metavar="NAME", help="Column of the tasks' names, if a table holds several tasks.")
@click.option("--delimiter", metavar="CHAR", help="What separates the columns: , ; | or tab.  [default: found]")
@click.option("--encoding", metavar="NAME", help="Encoding of a table, such as cp1252.  [default: UTF-8, or as marked]")
@click.option("--no-split", is_flag=True, help="Put all in train, where nothing says what is train, valid and test.")
@click.option("--strict", is_flag=True, help="Refuse what has blank rows or a bad task, instead of leaving them out.")
@json_option
def import_(*, source: Path, bank: Path, format_: str | None, no_split: bool, as_json: bool, **options: Any) -> None:
    """Bring the tasks of SOURCE into the folder BANK, which may have tasks already, as JSONL files.

    SOURCE is a CSV, TSV, JSONL or Parquet table, the folder of a Hugging Face data set, a Rasa NLU file or folder, an
    Azure CLU project or LUIS app (JSON), the intents of a Watson assistant (CSV) or its skill (JSON), or the folder of
    a Dialogflow agent (ES or CX). What has no splits is split 64 / 16 / 20, copies of a text on one side. Rows with a
    blank text or label are left out. Texts that belong to no label go into <task>.counter.jsonl.
    """
    found = mm.import_tasks(source, format=format_, split=not no_split, **options)
    files = mm.add_to_bank(found.bank, bank, counter_examples=found.counter_examples)
    say(f"Read {source} as {found.format}; wrote {len(files)} files to {bank}.")
    for note in found.notes:
        say(note)
    if as_json:
        _write_import(source, found)
        return
    table = make_table("task", numbers=["labels", "train", "valid", "test"])
    for task in found.bank:
        table.add_row(on_one_line(task.name), *map(str, _sizes(task).values()))
    write_table(table)


def _sizes(task: mm.Task) -> dict[str, int]:
    return {"labels": len(task.labels), "train": len(task.train), "valid": len(task.valid), "test": len(task.test)}


def _write_import(source: Path, found: mm.Imported) -> None:
    tasks = [
        {
            "name": task.name,
            **_sizes(task),
            "duplicates": found.duplicates.get(task.name, 0),
            "counter_examples": len(found.counter_examples.get(task.name, ())),
        }
        for task in found.bank
    ]
    about = {"format": FORMAT, "source": str(source), "read_as": found.format, "rows_left_out": found.rows_left_out}
    write_json({**about, "tasks": tasks, "notes": list(found.notes)})


@click.command(
    short_help="Write all examples of a bank as JSON lines.",
    epilog=examples_of_use(
        "manymetrics export bank > bank.jsonl", "manymetrics import bank.jsonl copy --task-column task"
    ),
)
@click.argument("bank", type=click.Path(path_type=Path))
def export(*, bank: Path) -> None:
    """Write every example of the folder BANK to stdout: one JSON object a line, with text, label, task and split."""
    for line in mm.export_lines(mm.load_tasks(bank)):
        click.echo(line, nl=False)
