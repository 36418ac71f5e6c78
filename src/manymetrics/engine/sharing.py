"""What all units share -> worker processes, packed once: its arrays are views of one memory that all of them map."""

import io
import mmap
import os
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

ALIGNED = 64  # bytes

Span = tuple[int, int]


class Shared:
    """A value that arrives in a process started with it as the value itself.

    Where the system has files without a name (Linux), it is packed into one of these when it is made, and nothing of it
    is left behind when the last process is gone. Elsewhere every process gets a copy.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._spans: tuple[Span, ...] = ()
        if hasattr(os, "memfd_create"):
            self._handle = os.memfd_create("manymetrics")
            self._spans = _pack(value, self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._spans:
            return _same, (self._value,)
        return _unpack, (reduction.DupFd(self._handle), self._spans)

    def close(self) -> None:
        """Give the memory back once no process maps it."""
        if self._spans:
            os.close(self._handle)


def _pack(value: Any, handle: int) -> tuple[Span, ...]:
    stream, arrays = io.BytesIO(), []  # type: ignore[var-annotated]
    ForkingPickler(stream, 5, True, arrays.append).dump(value)
    spans = []
    with os.fdopen(os.dup(handle), "wb") as file:
        for part in (stream.getbuffer(), *(array.raw() for array in arrays)):
            file.seek(-file.tell() % ALIGNED, os.SEEK_CUR)
            spans.append((file.tell(), file.tell() + part.nbytes))
            file.write(part)
        file.truncate(file.tell() + 1)  # an empty file cannot be mapped
    return tuple(spans)


def _unpack(handle: Any, spans: Sequence[Span]) -> Any:
    number = handle.detach()
    view = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_COPY))
    os.close(number)
    stream, *arrays = (view[start:end] for start, end in spans)
    return ForkingPickler.loads(stream, buffers=arrays)


def _same(value: Any) -> Any:
    return value
