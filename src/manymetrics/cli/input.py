"""Texts that are given to a command: its arguments, or the lines of a file or of stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import manymetrics as mm


def read_lines(source: str) -> Iterator[str]:
    """The lines of a UTF-8 file, one by one; an empty line is a text too. `-` is stdin."""
    where = "stdin" if source == "-" else source
    if source == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise mm.InputError("There are no texts to answer. Give them as arguments, with --input FILE, or on stdin.")
    try:
        file = click.open_file(source, "rb")
    except OSError as problem:
        raise mm.InputError(f"{source}: cannot be opened ({problem.strerror}). Give a file of texts.") from problem
    return _decode(file, where)


def read_counter_examples(path: Path) -> list[str]:
    """The lines of a file, blank ones left out."""
    texts = [text for text in read_lines(str(path)) if text.strip()]
    if not texts:
        raise mm.InputError(f"{path}: found no counter-examples. Write one text a line.")
    return texts


def require_utf8(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments of the command line, which may be bytes that are no text."""
    for number, text in enumerate(texts, start=1):
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            raise mm.InputError(f"Text {number} of the command line is not UTF-8. Give it with --input, as UTF-8.")
    return texts


def _decode(lines: Iterable[bytes], where: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as problem:
            found = f"the byte 0x{problem.object[problem.start]:02x} is not UTF-8"
            raise mm.InputError(f"{where}, line {number}: {found}. Save the texts as UTF-8.") from None
