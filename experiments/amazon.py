"""`data`: the paper's public data, fetched from its authors' repository, and checked against what is known of it.

The Amazon reviews of the paper are 23 domains with three tasks each. Of the 197 files that learning and trying take,
the checksums of 191 are in `amazon.sha256`, in the form that `sha256sum -c` reads; of the other six only the names are
known, so they are checked as task files are. The dev files of the four target domains are not wanted: no protocol uses
them.
"""

import hashlib
import http.client
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.options import examples_of_use, json_option
from manymetrics.cli.output import Table, write_result
from manymetrics.cli.progress import Stages
from manymetrics.collect import read_examples
from manymetrics.encode.sources.download import require_content
from manymetrics.errors import EnvironmentProblem, InputError

ADDRESS = "https://raw.githubusercontent.com/Gorov/DiverseFewShot_Amazon/HEAD/Amazon_few_shot"
WITHOUT_CHECKSUM = tuple(f"{domain}.t{stars}.train" for domain in ("music", "video") for stars in (2, 4, 5))
FINE, READABLE, MISSING, OTHER, DAMAGED = STATES = ("fine", "readable", "missing", "other content", "damaged")
GOOD = (FINE, READABLE)
PATIENCE = 30.0  # seconds without a byte
WAITS = (1.0, 4.0)  # seconds before the second and the third try
RESUME = "give the same command again; what was fetched before is kept."


@dataclass(frozen=True)
class DataFile:
    """One file of the data: whether it is there, and as it should be."""

    name: str
    state: str
    note: str = ""


@dataclass(frozen=True)
class DataReport:
    """All files that the data should have."""

    path: str
    files: tuple[DataFile, ...]

    @property
    def wrong(self) -> tuple[DataFile, ...]:
        """The files that are missing, damaged, or not those of the authors."""
        return tuple(file for file in self.files if file.state not in GOOD)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain lists and dictionaries, ready for JSON; `format` is the version of its shape."""
        states = [file.state for file in self.files]
        counts = {state: states.count(state) for state in STATES}
        return {"format": 1, "complete": not self.wrong, "counts": counts, **asdict(self)}


def get_amazon(folder: str | Path, *, source: str = ADDRESS,
               report: Callable[[int, int, int], None] = lambda done, kept, total: None) -> DataReport:  # fmt: skip
    """Fetch the files of the data that the folder does not have yet.

    `source` is the address of a folder that has the files. `report` is called with how many files are there, how many
    of them were there before, and how many there will be.
    """
    folder, known = Path(folder), known_checksums()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder}: no folder can be made there ({problem.strerror}). Give another.") from problem
    names = _names(known)
    wanted = [name for name in names if _check(folder, name, known).state not in GOOD]
    kept = len(names) - len(wanted)
    report(kept, kept, len(names))
    for done, name in enumerate(wanted, start=kept + 1):
        _fetch(f"{source.rstrip('/')}/{name}", folder / name, known.get(name))
        report(done, kept, len(names))
    return check_amazon(folder)


def check_amazon(folder: str | Path) -> DataReport:
    """Say of each file that the data should have whether it is in the folder, whole, and the known one."""
    folder, known = Path(folder), known_checksums()
    report = DataReport(str(folder), tuple(_check(folder, name, known) for name in _names(known)))
    if all(file.state == MISSING for file in report.files):
        raise InputError(
            f"{folder}: holds no file of the Amazon data. Fetch it with: python -m experiments data get amazon --out "
            f"{folder}; a bank of your own is inspected by: manymetrics inspect"
        )
    return report


def known_checksums() -> Mapping[str, str]:
    """Name -> SHA-256, of all files whose content is known."""
    lines = Path(__file__).with_name("amazon.sha256").read_text(encoding="ascii").splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


def _names(known: Mapping[str, str]) -> list[str]:
    """All files wanted; those that copies of the data may lack come last, so that they hold up no other."""
    return [*sorted(known), *WITHOUT_CHECKSUM]


def _check(folder: Path, name: str, known: Mapping[str, str]) -> DataFile:
    path = folder / name
    if not path.is_file():
        return DataFile(name, MISSING)
    if name in known and hashlib.sha256(path.read_bytes()).hexdigest() == known[name]:
        return DataFile(name, FINE)
    try:
        _require_readable(path)
    except InputError as problem:
        return DataFile(name, DAMAGED, str(problem))
    if name in known:
        return DataFile(name, OTHER, "It can be read, but its checksum is not the known one.")
    return DataFile(name, READABLE, "It can be read; no checksum of it is known.")


def _require_readable(path: Path) -> None:
    """Refuse what is neither a list of domains nor a file of texts with two labels."""
    if path.name.endswith(".list"):
        if not path.read_bytes().strip():
            raise InputError(f"{path}: the list is empty.")
    elif len(set(read_examples(path).labels)) != 2:
        raise InputError(f"{path}: the texts have not two labels.")


def _fetch(address: str, path: Path, sha256: str | None) -> None:
    """Fetch a file, check it beside its place, and only then move it there."""
    content = _download(address)
    if sha256 is not None:
        require_content(content, sha256, what=f"The file fetched as {path.name}")
    try:
        with tempfile.TemporaryDirectory(prefix=".fetched-", dir=path.parent) as folder:
            beside = Path(folder) / path.name
            beside.write_bytes(content)
            if sha256 is None:
                _require_readable(beside)
            beside.replace(path)
    except InputError as problem:
        raise EnvironmentProblem(f"What was fetched as {path.name} is not a file of the data. {problem}") from problem
    except OSError as problem:
        message = f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder, and "
        raise EnvironmentProblem(message + RESUME) from problem


def _download(address: str) -> bytes:
    """The content at an address; after a passing problem it is tried twice more."""
    if not address.startswith(("http://", "https://")):
        raise InputError(f"{address!r} is not a web address. Give one that begins with https:// or http://.")
    for wait in (*WAITS, None):
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310 - http and https alone
                content: bytes = answer.read()
                return content
        except (OSError, ValueError, http.client.HTTPException) as problem:  # ValueError: hosts, chunks
            refused = isinstance(problem, urllib.error.HTTPError) and problem.code < 500
            if refused or wait is None:
                told = str(problem) or type(problem).__name__
                raise EnvironmentProblem(
                    f"{address} could not be fetched ({told}). Check the address and the network, and {RESUME}"
                ) from problem
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


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
        raise InputError(
            f"{len(report.wrong)} of {len(report.files)} files are missing or not as they should be. "
            f"Fetch them with: python -m experiments data get amazon --out {folder}"
        )
