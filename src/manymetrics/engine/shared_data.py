"""Data that all jobs share, packed once for all worker processes: its arrays are views of one memory-mapped file."""

import io
import mmap
import os
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

ALIGNMENT = 64  # bytes

Span = tuple[int, int]


class SharedValue:
    """A value that a process started with it receives as the value itself.

    On Linux it is packed into an anonymous file, which disappears with the last process that maps it. Other systems
    give every process a copy.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._spans: tuple[Span, ...] = ()
        if hasattr(os, "memfd_create"):
            self._handle = os.memfd_create("manymetrics")
            self._spans = _pack(value, self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._spans:
            return _identity, (self._value,)
        return _unpack, (reduction.DupFd(self._handle), self._spans)

    def close(self) -> None:
        """Free the memory once no process maps it."""
        if self._spans:
            os.close(self._handle)


def _pack(value: Any, handle: int) -> tuple[Span, ...]:
    stream, arrays = io.BytesIO(), []  # type: ignore[var-annotated]
    ForkingPickler(stream, 5, True, arrays.append).dump(value)
    spans = []
    with os.fdopen(os.dup(handle), "wb") as file:
        for part in (stream.getbuffer(), *(array.raw() for array in arrays)):
            file.seek(-file.tell() % ALIGNMENT, os.SEEK_CUR)
            spans.append((file.tell(), file.tell() + part.nbytes))
            file.write(part)
        file.truncate(file.tell() + 1)  # an empty file cannot be mapped
    return tuple(spans)


def _unpack(duplicate: Any, spans: Sequence[Span]) -> Any:
    handle = duplicate.detach()
    view = memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_COPY))
    os.close(handle)
    stream, *arrays = (view[start:end] for start, end in spans)
    return ForkingPickler.loads(stream, buffers=arrays)


def _identity(value: Any) -> Any:
    return value
