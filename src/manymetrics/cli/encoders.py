"""`encoders`, `vectors`: the known sentence encoders and word vectors, and fetching them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import FORMAT, say, write_json, write_tsv


@click.group(cls=options.Group)
def vectors() -> None:
    """List and fetch word vectors."""


@vectors.command("list")
@options.json_option
def list_vectors(*, as_json: bool) -> None:
    """List the known word vectors, and whether each is on this machine."""
    _write_list("vectors", ({"name": name, "here": here} for name, here in mm.list_vectors().items()), as_json=as_json)


@vectors.command("get", epilog=options.examples_of_use("manymetrics vectors get wordllama"))
@click.argument("name")
def get_vectors(*, name: str) -> None:
    """Fetch word vectors, unless they are on this machine, and print their folder."""
    write_tsv(str(_fetch("word vectors", name, mm.list_vectors(), mm.get_vectors)))


@click.group(cls=options.Group)
def encoders() -> None:
    """List and fetch sentence encoders."""


@encoders.command("list")
@options.json_option
def list_encoders(*, as_json: bool) -> None:
    """List the known sentence encoders, whether each is on this machine, its licence and its training data."""
    known = mm.list_encoders().items()
    rows = ({"name": name, "here": here, "card": mm.describe_encoder(name)} for name, here in known)
    _write_list("encoders", rows, as_json=as_json)


@encoders.command(
    "get",
    epilog=options.examples_of_use(
        "manymetrics encoders get bge-small",
        "manymetrics encoders get intfloat/multilingual-e5-small    # any name of the Hugging Face hub",
    ),
)
@click.argument("name")
def get_encoder(*, name: str) -> None:
    """Fetch a sentence encoder, unless it is on this machine, and print its folder."""
    path = fetch_encoder_if_missing(name)
    say(mm.describe_encoder(name))
    write_tsv(str(path))


def fetch_encoder_if_missing(name: str) -> Path:
    """The folder of a sentence encoder; it is fetched, with progress, if it is known and not on this machine."""
    return _fetch("sentence encoder", name, mm.list_encoders(), mm.get_encoder)


def _fetch(kind: str, name: str, known: Mapping[str, bool], get: Callable[[str], Path]) -> Path:
    if known.get(name) is not False:
        return get(name)
    say(f"Fetching the {kind} {name} ...")
    with mm.engine.ProgressDisplay() as display:
        display(mm.Progress("fetch", 0, 1, 0.0, running=(name,)))
        return get(name)


def _write_list(command: str, rows: Iterable[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        write_json({"format": FORMAT, command: [*rows]})
        return
    for row in rows:
        state = "here" if row["here"] else f"fetch with: manymetrics {command} get {row['name']}"
        write_tsv(str(row["name"]), state, *([str(row["card"])] if "card" in row else []))
