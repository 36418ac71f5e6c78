"""The paper's public data: fetched from its authors' repository, and checked against what is known of it.

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
    how_to = f"python -m experiments data get amazon --out {folder}"
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Fetch the data with: {how_to}")
    report = DataReport(str(folder), tuple(_check(folder, name, known) for name in _names(known)))
    if all(file.state == MISSING for file in report.files):
        raise InputError(
            f"{folder}: holds no file of the Amazon data. Fetch it with: {how_to}; "
            "a bank of your own is inspected by: manymetrics inspect"
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
        except urllib.error.HTTPError as problem:
            if problem.code == http.HTTPStatus.NOT_FOUND:
                raise EnvironmentProblem(
                    f"{address} is not there (404). Check the address; its owners may have moved the file."
                ) from problem
            if problem.code < 500 or wait is None:
                raise EnvironmentProblem(
                    f"{address} could not be fetched (the server answered {problem.code}). Try again later, or from "
                    "another address."
                ) from problem
        except (OSError, ValueError, http.client.HTTPException) as problem:  # ValueError: hosts, chunks
            if wait is None:
                raise EnvironmentProblem(
                    f"{address} could not be fetched ({_reason(problem)}). Check the network and {RESUME}"
                ) from problem
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _reason(problem: Exception) -> str:
    if isinstance(problem, http.client.IncompleteRead):
        return f"the connection ended after {len(problem.partial):,} bytes, {problem.expected:,} are missing"
    inner = getattr(problem, "reason", problem)
    return str(getattr(inner, "strerror", None) or inner) or type(inner).__name__
