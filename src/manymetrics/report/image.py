"""Numbers -> perceptually uniform colours, and pixels -> PNG."""

import struct
import zlib
from functools import cache

import numpy as np

from manymetrics.values import Floats, Ints

Colour = tuple[int, int, int]  # bytes of red, green and blue

STEPS = 253  # colours of the colormap
HATCH, WHITE, MISSING = 253, 254, 255  # indices of the palette's further colours; MISSING: no value
FURTHER_COLOURS: tuple[Colour, ...] = ((150, 150, 146), (255, 255, 255), (222, 222, 218))
INDEXED_COLOUR = 3  # colour type of a PNG file
# From deep violet over teal to pale yellow. The lightness (L of OKLab) rises from 0.27 to 0.94 by equal steps, so the
# colormap can be read in greyscale and with a colour vision deficiency.
STOPS = [
    "291852", "2c205b", "2d2764", "2f2f6d", "303775", "303f7e", "304786", "2f4f8e", "285a92", "226496", "1b6d99",
    "18779a", "1a809b", "22899b", "2d919b", "2e9a9e", "32a3a0", "38aca0", "41b4a0", "4cbd9f", "59c59d", "68cd9a",
    "7fd397", "94d894", "a9de92", "bde391", "d1e791", "e4ec93", "f6f097",
]  # fmt: skip
# 12 hues of OKLab in two lightnesses; neighbours are distant in hue, and white text is readable on each.
CATEGORY_COLOURS = [
    "#0060a6", "#c85b32", "#046c68", "#b9579c", "#456b02", "#7173d7", "#825100", "#078ead", "#9f2d4a", "#099864",
    "#773f9b", "#928103", "#ac5db1", "#5c6402", "#537bd9", "#8f4802", "#03919d", "#9a2f62", "#3a9742", "#6646a8",
    "#a17904", "#06658e", "#ca5551", "#026e5b",
]  # fmt: skip


@cache
def palette() -> tuple[Colour, ...]:
    """The colormap from low to high, followed by the colours of `HATCH`, `WHITE` and `MISSING`."""
    stops = np.array([list(bytes.fromhex(stop)) for stop in STOPS])  # (stops, 3)
    along = np.linspace(0, len(stops) - 1, STEPS)
    channels = [np.interp(along, np.arange(len(stops)), channel) for channel in stops.T]
    colours = [(int(red), int(green), int(blue)) for red, green, blue in np.rint(np.stack(channels, axis=1))]
    return (*colours, *FURTHER_COLOURS)


def colour_indices(values: Floats, low: float, high: float) -> Ints:
    """The index of each value in the palette; values outside the range get the colour of its end."""
    spread = high - low
    shares = np.clip((values - low) / spread, 0, 1) if spread > 0 else np.where(np.isnan(values), np.nan, 0.5)
    return np.where(np.isnan(shares), MISSING, np.rint(np.nan_to_num(shares) * (STEPS - 1))).astype(np.uint8)


def hex_colour(colour: Colour) -> str:
    """A colour in hexadecimal notation, such as #ffffff."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


def png_bytes(pixels: Ints, *, transparent: int | None = None) -> bytes:
    """A PNG file of palette indices, pixels (height, width); the index `transparent` is not painted."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # the first byte of a row is its filter: none
    rows[:, 1:] = pixels
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, INDEXED_COLOUR, 0, 0, 0)),
        (b"PLTE", bytes(channel for colour in palette() for channel in colour)),
        (b"tRNS", b"" if transparent is None else bytes([255] * transparent + [0])),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    written = (_chunk(kind, content) for kind, content in chunks if content or kind == b"IEND")
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
