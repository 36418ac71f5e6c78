"""Paths -> lines: regular files only, none too large, no link that leads out of its folder, in the right encoding.

A file beside the tasks may be anything: a pipe that never ends, a device, a link to somebody's letters, 60 GB of video.
Every file of this stage is opened here and nowhere else. Text is UTF-8 unless another encoding is given; a byte order
mark says by itself what the file is.
"""

import codecs
import io
import json
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from manymetrics.errors import InputError, TaskFormatError

MAX_BYTES = 300_000_000  # of a table
MAX_WHOLE_BYTES = 50_000_000  # of what is taken in at once: a JSON, YAML or Markdown file, or one line of a table
HEAD_BYTES = 1_000_000  # that tell what a file is
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def open_regular(path: Path, *, most: int | None = MAX_BYTES) -> BinaryIO:
    """Open a regular file of at most so many bytes; a pipe or a device is refused and never waited for."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            file = os.fdopen(os.open(path, flags), "rb")
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and (most is None or about.st_size <= most):
                return file
            file.close()
            if stat.S_ISREG(about.st_mode):
                raise TaskFormatError(
                    f"{path}: the file has {about.st_size:,} bytes, {most:,} are the most that is read. "
                    "Take a sample of it, or split it in several."
                )
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _cannot_open(path, error) from None
    raise TaskFormatError(f"{path}: this is not a regular file. Save what it gives as a file, and give that.")


def read_head(path: Path) -> bytes:
    """The first bytes of a file, whatever its size."""
    try:
        with open_regular(path, most=None) as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise _cannot_open(path, error) from None


def read_text(path: Path) -> str:
    """A text file as a whole, as JSON, YAML and Markdown are read."""
    return "".join(read_lines(path, whole=True))


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "too large or too deep"
        raise TaskFormatError(f"{path}{place}: this is not JSON ({reason}). Export the file again.") from None


def read_lines(path: Path, encoding: str | None = None, *, whole: bool = False) -> Iterator[str]:
    """The lines of a text file, their ends kept, a byte order mark taken off; `whole` says that all are taken in."""
    with open_regular(path, most=MAX_WHOLE_BYTES if whole else MAX_BYTES) as file:
        try:
            head = file.read(1000)
            file.seek(0)
            marked = next((name for mark, name in MARKS if head.startswith(mark)), None)
            found = marked or encoding or _require_bytes_of_one(path, head)
            wide = codecs.lookup(found).name.startswith(("utf-16", "utf-32"))
            cure = "Save the file as UTF-8." if whole else "Give another --encoding." if encoding else ""
            yield from _wide_lines(path, file, found) if wide else _lines(path, file, found, cure)
        except OSError as error:
            raise _cannot_open(path, error) from None


def require_encoding(name: str) -> str:
    """The name of a text encoding that Python knows."""
    try:
        "a".encode(name)  # the empty text would be encoded by anything
    except (LookupError, ValueError):
        raise InputError(f"There is no encoding {name!r}. Try utf-8, utf-16, cp1252 or latin-1.") from None
    return name


def files_below(folder: Path) -> list[Path]:
    """The regular files below a folder in order, hidden ones left out; links to folders are not followed."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_cannot_list):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += (Path(place, name) for name in names if not name.startswith("."))
    return sorted(path for path in found if path.is_file())


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path inside a folder is a link that ends elsewhere."""
    root = Path(os.path.realpath(folder))
    if root.parent.name == "snapshots" and (root.parents[1] / "blobs").is_dir():
        root = root.parents[1]  # a download of Hugging Face is a folder of links to the one beside it
    return not Path(os.path.realpath(path)).is_relative_to(root)


def require_inside(path: Path, folder: Path) -> Path:
    """The path, unless it is a link that leads out of the folder."""
    if leads_out(path, folder):
        raise TaskFormatError(
            f"{path}: this link leads out of {folder} and is not followed. Copy the file there, or remove the link."
        )
    return path


def file_in(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, if there is one."""
    path = folder / name
    return require_inside(path, folder) if path.is_file() else None


def _lines(path: Path, file: BinaryIO, encoding: str, cure: str) -> Iterator[str]:
    """Lines are cut before they are decoded, so that a wrong byte has a line; for encodings where LF is one byte."""
    plain = "utf-8" if encoding == "utf-8-sig" else encoding
    wide_characters = False
    for number, raw in enumerate(iter(partial(file.readline, MAX_WHOLE_BYTES + 1), b""), start=1):
        _require_line(path, number, len(raw))
        try:
            line = raw.decode(encoding if number == 1 else plain)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            wrong = f"{path}, line {number}: the byte 0x{byte:02x} is not {'UTF-8' if plain == 'utf-8' else encoding}"
            raise TaskFormatError(wrong + (f". {cure}" if cure else _guess(raw, so_far=wide_characters))) from None
        wide_characters = wide_characters or not line.isascii()
        yield line


def _wide_lines(path: Path, file: BinaryIO, encoding: str) -> Iterator[str]:
    number = 0
    try:
        text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
        for number, line in enumerate(iter(partial(text.readline, MAX_WHOLE_BYTES + 1), ""), start=1):
            _require_line(path, number, len(line))
            yield line
    except UnicodeError as error:
        if isinstance(error, InputError):
            raise
        raise TaskFormatError(
            f"{path}, after line {number}: this is not {encoding}. Save the file as UTF-8, or name its --encoding."
        ) from None


def _require_line(path: Path, number: int, length: int) -> None:
    if length > MAX_WHOLE_BYTES:
        raise TaskFormatError(
            f"{path}, line {number}: the line is longer than {MAX_WHOLE_BYTES:,} bytes. "
            "Check the line ends, and shorten the text."
        )


def _guess(raw: bytes, *, so_far: bool) -> str:
    """How a sentence about a byte that is not UTF-8 goes on; `so_far` says that other letters were."""
    if so_far:
        return ", though the lines before it are. Mend the line, or save the file as UTF-8."
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return ". Save the file as UTF-8, or import it with its --encoding."
    return "; it may be cp1252 (Windows). Save the file as UTF-8, or import it with --encoding cp1252."


def _require_bytes_of_one(path: Path, head: bytes) -> str:
    """UTF-8, unless every other byte is 0, as in UTF-16."""
    for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if len(zeros) > 1 and zeros.count(0) > 0.6 * len(zeros):
            raise TaskFormatError(
                f"{path}: this looks like {name} without a byte order mark. "
                f"Save the file as UTF-8, or import it with --encoding {name}."
            )
    return "utf-8"


def _cannot_list(error: OSError) -> None:
    raise TaskFormatError(f"{error.filename}: cannot be listed ({error.strerror}). Check that it may be read.")


def _cannot_open(path: Path, error: Exception) -> TaskFormatError:
    reason = getattr(error, "strerror", None) or str(error)
    return TaskFormatError(f"{path}: cannot be opened ({reason}). Check that it may be read.")
