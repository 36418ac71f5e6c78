"""Protocol-buffer messages, read and written: the form of ONNX graphs and of SentencePiece models.

A message is a row of fields, each with a number: a whole number, or bytes of a length that stands before them.
"""

from collections.abc import Iterator
from typing import Any

Message = bytes | memoryview


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: its number, then a whole number, or the length of something and that."""
    if isinstance(value, int):
        return _written(number << 3) + _written(value % 2**64)
    content = value.encode() if isinstance(value, str) else value
    return _written(number << 3 | 2) + _written(len(content)) + content


def fields(message: Message) -> Iterator[tuple[int, Any]]:
    """The fields of a message: a number and what it holds."""
    place = 0
    while place < len(message):
        key, place = _read(message, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _read(message, place)
            yield number, value
        else:
            size, place = _read(message, place) if wire == 2 else ({1: 8, 5: 4}[wire], place)
            yield number, message[place : place + size]
            place += size


def numbers(message: Message) -> Iterator[int]:
    """The whole numbers that a field holds one behind the other."""
    place = 0
    while place < len(message):
        value, place = _read(message, place)
        yield value


def text(value: "int | Message") -> str:
    """What a field holds, as a string."""
    return bytes(value).decode() if not isinstance(value, int) else str(value)


def _written(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says whether more follow."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _written(rest) if rest else bytes([low])


def _read(message: Message, place: int) -> tuple[int, int]:
    """The whole number at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
