"""`data`: the paper's public data, fetched and checked; texts that occur twice in a bank, counted."""

import time
from pathlib import Path

import click

import manymetrics as mm
from experiments.amazon import ADDRESS, check_amazon, get_amazon
from experiments.repeated import held_out_told, repeated_texts
from manymetrics.cli.options import examples_of_use, json_option
from manymetrics.cli.output import Table, write_result
from manymetrics.cli.progress import Stages


@click.group(short_help="The paper's public data: fetching and checking it; repeated texts.")
def data() -> None:
    """The paper's public data: fetching and checking it, and how many texts are repeated in a bank."""


@data.command(
    short_help="Fetch the paper's data from its authors' repository.",
    epilog=examples_of_use("python -m experiments data get amazon --out amazon"),
)
@click.argument("name", type=click.Choice(["amazon"]))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to keep the files in.")
@click.option("--from", "source", metavar="URL", help="Address of a folder that has them.  [default: the authors' own]")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
def get(*, name: str, out: Path, source: str | None, quiet: bool) -> None:
    """Fetch the data NAME into a folder, file by file, and print the folder.

    amazon: the reviews of the paper, 197 files. Files that are there and whole are not fetched again.
    """
    began = time.monotonic()
    with Stages(quiet=quiet) as stages:

        def report(done: int, kept: int, total: int) -> None:
            seconds = time.monotonic() - began if done > kept else 0.0
            stages(mm.Progress("fetch", done, total, seconds, kept))

        get_amazon(out, source=source or ADDRESS, report=report)
    click.echo(str(out))


@data.command(
    short_help="Say which files of the paper's data are missing or damaged.",
    epilog=examples_of_use("python -m experiments data check amazon", "python -m experiments data check amazon --json"),
)
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def check(*, folder: Path, as_json: bool) -> None:
    """Check the Amazon data in FOLDER: what is missing, what is damaged, what is not the known content.

    Exits with 0 if nothing is wrong, else with 2.
    """
    report = check_amazon(folder)
    about = report.as_dict()
    tables = [Table("state", numbers=["files"], rows=about["counts"].items())]
    if report.wrong:
        rows = [(file.name, file.state, file.note) for file in report.wrong]
        tables.append(Table("file", "state", "what is known", rows=rows))
    write_result(about, tables, as_json=as_json)
    if report.wrong:
        raise mm.InputError(
            f"{len(report.wrong)} of {len(report.files)} files are missing or not as they should be. "
            f"Fetch them with: python -m experiments data get amazon --out {folder}"
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
