"""`import`, `export`: tasks of other programs -> a bank, a bank -> JSON lines. `data`: the paper's data, fetched."""

from __future__ import annotations

import time
from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli.output import examples_of_use, json_option, make_table, on_one_line, say, write_json, write_table
from manymetrics.cli.progress import Stages

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
    splits is parted 64 / 16 / 20.
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


@click.group(short_help="The paper's public data: fetching and checking it.")
def data() -> None:
    """The paper's public data: fetching and checking it."""


@data.command(
    short_help="Fetch the paper's data from its authors' repository.",
    epilog=examples_of_use("manymetrics data get amazon --out amazon"),
)
@click.argument("name", type=click.Choice(["amazon"]))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to keep the files in.")
@click.option("--from", "source", metavar="URL", help="Address of a folder that has them.  [default: the authors' own]")
@click.option("--any-content", is_flag=True, help="Take files with other checksums too, if they can be read.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
def get(*, name: str, out: Path, source: str | None, any_content: bool, quiet: bool) -> None:
    """Fetch the data NAME into a folder, file by file, and print the folder.

    amazon: the reviews of the paper, 197 files. The same command goes on where it was stopped: files that are there
    and whole are not fetched again.
    """
    began = time.monotonic()
    with Stages(quiet=quiet) as stages:

        def report(done: int, kept: int, total: int) -> None:
            seconds = time.monotonic() - began if done > kept else 0.0
            stages(mm.Progress("fetch", done, total, seconds, kept))

        where = {"source": source} if source else {}
        mm.get_amazon(out, **where, checksums=not any_content, report=report)
    click.echo(str(out))


@data.command(
    short_help="Say which files of the paper's data are missing or damaged.",
    epilog=examples_of_use("manymetrics data check amazon", "manymetrics data check amazon --json"),
)
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def check(*, folder: Path, as_json: bool) -> None:
    """Check the Amazon data in FOLDER: what is missing, what is damaged, what is not the known content.

    Exits with 0 if nothing is wrong, else with 2.
    """
    report = mm.check_amazon(folder)
    if as_json:
        write_json(report.as_dict())
    else:
        _show(report)
    if report.wrong:
        raise mm.InputError(
            f"{len(report.wrong)} of {len(report.files)} files are missing or not as they should be. "
            f"Fetch them with: manymetrics data get amazon --out {folder}"
        )


def _show(report: mm.DataReport) -> None:
    counts = make_table("state", numbers=["files"])
    for state, count in report.as_dict()["counts"].items():
        counts.add_row(state, str(count))
    write_table(counts)
    if report.wrong:
        table = make_table("file", "state", "what is known")
        for file in report.wrong:
            table.add_row(on_one_line(file.name), file.state, on_one_line(file.note))
        click.echo()
        write_table(table)
