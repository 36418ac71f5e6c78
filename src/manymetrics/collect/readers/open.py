"""Open files safely: regular files within a size limit, no link that leaves its folder, text in the right encoding.

All files of this package are opened here. Text is UTF-8 unless another encoding is given; a byte order mark takes
precedence over both.
"""

import codecs
import io
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from manymetrics.errors import InputError, TaskFormatError

MAX_TABLE_BYTES = 300_000_000
MAX_DOCUMENT_BYTES = 50_000_000  # of a JSON, YAML or Markdown file, which is read at once
MAX_LINE = 50_000_000  # characters of one line
TAKE_LESS = "Take a sample, or split it into several."
SAVE_AS_UTF8, OTHER_ENCODING = "Save the file as UTF-8.", "Give another --encoding."
FIND_ENCODING = "Save the file as UTF-8, or import it with its encoding, such as --encoding cp1252 (Windows)."
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
MARKS = {  # byte order marks; that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# bytes that are not of the encoding, as Python's "surrogateescape" gives them
_UNDECODED = re.compile("[\udc80-\udcff]")


def open_regular(path: Path, *, max_bytes: int | None = MAX_TABLE_BYTES) -> BinaryIO:
    """Open a regular file of limited size; a pipe or a device is refused without waiting for it."""
    with _os_errors(path):
        status = os.stat(path)  # before it is opened, which may affect a device
        if not stat.S_ISREG(status.st_mode):
            raise TaskFormatError(f"{path}: this is not a regular file. Save its content as a file, and give that.")
        if max_bytes is not None:
            require_at_most(max_bytes, status.st_size, "bytes", path)
        return open(path, "rb")


def require_at_most(limit: int, count: int, unit: str, where: object, cure: str = TAKE_LESS) -> None:
    """Refuse data that exceed a limit."""
    if count > limit:
        raise TaskFormatError(f"{where}: found more than {limit:,} {unit}. {cure}")


def refuse_spreadsheet(path: Path) -> None:
    """Refuse a file of a spreadsheet program, with advice."""
    if path.suffix.casefold() in SPREADSHEETS:
        raise TaskFormatError(f"{path}: spreadsheets are not opened. Save the sheet as CSV (UTF-8), and give that.")


def read_document(path: Path) -> str:
    """The text of a JSON, YAML or Markdown file."""
    return "".join(read_lines(path, document=True))


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    text = read_document(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise TaskFormatError(f"{path}{line}: this is not JSON ({json_problem(error)}). Correct the file.") from None


def json_problem(error: Exception) -> str:
    """Why a text is not JSON."""
    return error.msg if isinstance(error, json.JSONDecodeError) else "too large or too deep"


def lookup(content: Any, *keys: str) -> Any:
    """A value of nested objects by its keys; None where an object or a key is missing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def read_lines(path: Path, encoding: str | None = None, *, document: bool = False) -> Iterator[str]:
    """The lines of a text file with their ends; a `document` has the smaller limit of size and must be UTF-8."""
    number = 0
    with _os_errors(path), open_regular(path, max_bytes=MAX_DOCUMENT_BYTES if document else MAX_TABLE_BYTES) as file:
        used = _encoding_of(path, file, encoding)
        text = io.TextIOWrapper(file, used, errors="surrogateescape", newline="\n")
        try:
            for number, line in enumerate(iter(partial(text.readline, MAX_LINE + 1), ""), start=1):
                where = f"{path}, line {number}"
                require_at_most(MAX_LINE, len(line), "characters in one line", where, "Check the line ends.")
                if wrong := not line.isascii() and _UNDECODED.search(line):
                    cure = SAVE_AS_UTF8 if document else OTHER_ENCODING if encoding else FIND_ENCODING
                    name, byte = "UTF-8" if used.startswith("utf-8") else used, ord(wrong[0]) - 0xDC00
                    raise TaskFormatError(f"{where}: the byte 0x{byte:02x} is not {name}. {cure}")
                yield line
        except UnicodeError:
            raise TaskFormatError(f"{path}, after line {number}: this is not {used}. {SAVE_AS_UTF8}") from None


def require_encoding(name: str) -> str:
    """The name of a text encoding that Python knows."""
    try:
        "a".encode(name)  # any name encodes the empty string
    except (LookupError, ValueError):
        raise InputError(f"There is no encoding {name!r}. Try utf-8, utf-16, cp1252 or latin-1.") from None
    return name


def files_below(folder: Path) -> list[Path]:
    """The regular files below a folder, sorted, without hidden ones; links to folders are not followed."""

    def fail(error: OSError) -> None:
        raise error

    paths: list[Path] = []
    with _os_errors(folder):
        for parent, folders, names in os.walk(folder, onerror=fail):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths += (Path(parent, name) for name in names if not name.startswith("."))
    return sorted(path for path in paths if path.is_file())


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path inside a folder is a link to something outside it."""
    root = Path(os.path.realpath(folder))
    if root.parent.name == "snapshots" and (root.parents[1] / "blobs").is_dir():
        root = root.parents[1]  # a download of Hugging Face is a folder of links to its neighbour `blobs`
    return not Path(os.path.realpath(path)).is_relative_to(root)


def require_inside(path: Path, folder: Path) -> Path:
    """The path, unless it is a link to something outside the folder."""
    if leads_out(path, folder):
        raise TaskFormatError(f"{path}: this link leads out of {folder} and is not followed. Copy the file there.")
    return path


def _encoding_of(path: Path, file: BinaryIO, given: str | None) -> str:
    """The encoding by the byte order mark, else the given one, else UTF-8."""
    head = file.read(1000)
    file.seek(0)
    if known := next((name for mark, name in MARKS.items() if head.startswith(mark)), given):
        return known
    for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if len(zeros) > 1 and zeros.count(0) > 0.6 * len(zeros):
            raise TaskFormatError(f"{path}: this seems to be {name}. Save it as UTF-8, or give --encoding {name}.")
    return "utf-8"


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        cure = "Check the path." if missing else "Check that it may be read."
        where = getattr(error, "filename", None) or path
        raise TaskFormatError(f"{where}: cannot be opened ({reason}). {cure}") from None
