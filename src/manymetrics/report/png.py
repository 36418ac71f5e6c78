"""Places in a palette -> the bytes of a PNG file."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np

from manymetrics.values import Ints

SIGNATURE = b"\x89PNG\r\n\x1a\n"
BY_PALETTE = 3


def png_bytes(pixels: Ints, palette: Sequence[tuple[int, int, int]], *, clear: int | None = None) -> bytes:
    """A picture of at most 256 colours, pixels (height, width); the colour at the place `clear` is see-through."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row is led by its filter: none
    rows[:, 1:] = pixels
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, BY_PALETTE, 0, 0, 0)),
        _chunk(b"PLTE", bytes(part for colour in palette for part in colour)),
    ]
    if clear is not None:
        chunks.append(_chunk(b"tRNS", bytes([255] * clear + [0])))
    return b"".join([SIGNATURE, *chunks, _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), _chunk(b"IEND", b"")])


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
