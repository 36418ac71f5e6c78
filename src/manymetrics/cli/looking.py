"""`inspect`: what is in a folder of tasks, before anything is learned. `vectors`, `encoders`: which are at hand."""

from __future__ import annotations

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli.output import (
    examples_of_use,
    json_option,
    make_table,
    on_one_line,
    say,
    write_json,
    write_table,
    write_tsv,
)

FORMAT = 1


@click.command(
    short_help="Look a folder of tasks over before learning.",
    epilog=examples_of_use("manymetrics inspect bank", "manymetrics inspect bank --json"),
)
@click.argument("bank", type=click.Path(path_type=Path))
@json_option
def inspect(*, bank: Path, as_json: bool) -> None:
    """Look over the tasks in the folder BANK: sizes, balance, duplicates, and what cannot be used and why.

    commonest: the share of the commonest label in train. twice: rows of train whose text came before. shared: texts
    found in more than one of train, valid and test. unclear: texts found under more than one label. Texts that are the
    same but for case, spaces and punctuation at the ends count as the same.

    The last line says how far the tasks to learn from fall into groups by what their labels are called, and whether
    several metrics can therefore be expected to pay. It is an expectation; `evaluate` measures.
    """
    report = mm.inspect_bank(bank)
    if as_json:
        write_json(report.as_dict())
    else:
        _show(report)
    if not report.tasks:
        raise mm.InputError(f"{bank}: none of it can be used as a task. See what is said of each.")


@click.group(short_help="Word vectors: what is at hand, and fetching more.")
def vectors() -> None:
    """Word vectors: what is at hand, and fetching more."""


@vectors.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the known word vectors and whether each is on this machine."""
    known = mm.list_vectors()
    if as_json:
        write_json({"format": FORMAT, "vectors": [{"name": name, "here": here} for name, here in known.items()]})
        return
    for name, here in known.items():
        write_tsv([name, "here" if here else f"to be fetched with: manymetrics vectors get {name}"])


@vectors.command(short_help="Fetch word vectors, once.", epilog=examples_of_use("manymetrics vectors get wordllama"))
@click.argument("name")
def get(*, name: str) -> None:
    """Fetch the word vectors NAME once, and print the folder they are kept in."""
    fetch_if_missing(name)
    click.echo(str(mm.get_vectors(name)))


def fetch_if_missing(name: str) -> None:
    """Fetch word vectors unless they are there, and say so, as it takes a while."""
    if mm.list_vectors().get(name) is False:
        say(f"Fetching the word vectors {name}, once ...")
        mm.get_vectors(name)


@click.group(short_help="Sentence encoders: what is at hand, and fetching more.")
def encoders() -> None:
    """Sentence encoders: what is at hand, and fetching more."""


@encoders.command("list")
@json_option
def list_encoders(*, as_json: bool) -> None:
    """List the known sentence encoders, whether each is on this machine, its licence and what it was trained on."""
    known = [(name, here, mm.describe_encoder(name)) for name, here in mm.list_encoders().items()]
    if as_json:
        rows = [{"name": name, "here": here, "card": card} for name, here, card in known]
        write_json({"format": FORMAT, "encoders": rows})
        return
    for name, here, card in known:
        write_tsv([name, "here" if here else f"to be fetched with: manymetrics encoders get {name}", card])


@encoders.command(
    "get",
    short_help="Fetch a sentence encoder, once.",
    epilog=examples_of_use(
        "manymetrics encoders get bge-small",
        "manymetrics encoders get use-multilingual    # for other languages",
        "manymetrics encoders get minilm --from all-MiniLM",
    ),
)
@click.argument("name")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    help="Keep a copy of this folder from the encoder's own hub instead of fetching it: tokenizer.json, model.onnx.",
)
def get_encoder(*, name: str, folder: Path | None) -> None:
    """Fetch the sentence encoder NAME once, and print the folder it is kept in."""
    if folder is None:
        fetch_encoder_if_missing(name)
    kept = mm.get_encoder(name, folder=folder)
    say(mm.describe_encoder(name))
    click.echo(str(kept))


def fetch_encoder_if_missing(name: str) -> None:
    """Fetch a sentence encoder unless it is there, and say so, as it takes a while."""
    if mm.list_encoders().get(name) is False:
        say(f"Fetching the sentence encoder {name}, once ...")
        mm.get_encoder(name)


def _show(report: mm.BankReport) -> None:
    counts = ("labels", "train", "valid", "test", "commonest", "twice", "shared", "unclear")
    table = make_table("task", "role", numbers=counts)
    for task in report.tasks:
        sizes = [str(size) for size in (task.labels, task.train, task.valid, task.test)]
        oddities = [str(size) for size in (task.duplicates, task.shared, task.contradictions)]
        table.add_row(on_one_line(task.name), task.role, *sizes, f"{task.largest_share:.0%}", *oddities)
    if report.tasks:
        write_table(table)
    for left in report.left_out:
        click.echo(on_one_line(f"left out: {left.name}: {left.reason}"))
    for name in report.not_tasks:
        click.echo(on_one_line(f"not a task file: {name}"))
    if report.diversity is not None:
        click.echo(str(report.diversity))
