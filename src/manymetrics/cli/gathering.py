"""`import`, `export`: tasks of other programs -> a bank, a bank -> JSON lines."""

from __future__ import annotations

from pathlib import Path

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
        "manymetrics import my-rasa-bot bank --name pizza-bot",
    ),
)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("bank", type=click.Path(path_type=Path))
@click.option(
    "--format", "format_", metavar="FORMAT",
    help="csv, tsv, jsonl, parquet, huggingface, rasa, clu, watson or dialogflow.  [default: told from SOURCE]",
)  # fmt: skip
@click.option("--name", help="What to call the task.  [default: as SOURCE]")
@click.option("--text-column", metavar="NAME", help="Column of the texts.  [default: text, sentence or utterance]")
@click.option("--label-column", metavar="NAME", help="Column of the labels.  [default: label, intent or category]")
@click.option("--task-column", metavar="NAME", help="Column of the tasks' names, if a table holds several tasks.")
@click.option("--no-split", is_flag=True, help="Put all in train, where nothing says what is train, valid and test.")
@json_option
def import_(*, source: Path, bank: Path, format_: str | None, name: str | None, text_column: str | None,
            label_column: str | None, task_column: str | None, no_split: bool, as_json: bool) -> None:  # fmt: skip
    """Bring the tasks of SOURCE into the folder BANK, which may have tasks already, as JSONL files.

    SOURCE is a CSV, TSV, JSONL or Parquet table, the folder of a Hugging Face data set, a Rasa NLU file or folder, an
    Azure CLU project (JSON), the intents of a Watson assistant (CSV), or the folder of a Dialogflow agent. What has no
    splits is split 64 / 16 / 20.
    """
    columns = {"text_column": text_column, "label_column": label_column, "task_column": task_column}
    found = mm.import_tasks(source, format=format_, name=name, **columns, split=not no_split)
    files = mm.add_to_bank(found.bank, bank)
    say(f"Read {source} as {found.format}; wrote {len(files)} files to {bank}.")
    sizes = [(task.name, len(task.labels), len(task.train), len(task.valid), len(task.test)) for task in found.bank]
    if as_json:
        tasks = [dict(zip(("name", "labels", "train", "valid", "test"), size, strict=True)) for size in sizes]
        write_json({"format": FORMAT, "source": str(source), "read_as": found.format, "tasks": tasks})
        return
    table = make_table("task", numbers=["labels", "train", "valid", "test"])
    for task, *counts in sizes:
        table.add_row(on_one_line(task), *map(str, counts))
    write_table(table)


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
