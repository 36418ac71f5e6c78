"""Numbers -> perceptually uniform colours, and pixels -> PNG."""

import struct
import zlib
from functools import cache

import numpy as np

from manymetrics.values import Floats, Ints

STEPS = 255  # colours of the colormap
MISSING = 255  # index of a cell without a value, which is transparent
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
def palette() -> Ints:
    """Red, green and blue of the colormap from low to high, then of `MISSING`: (256, 3) bytes."""
    stops = np.array([list(bytes.fromhex(stop)) for stop in STOPS])  # (stops, 3)
    along = np.linspace(0, len(stops) - 1, STEPS)
    channels = [np.interp(along, np.arange(len(stops)), channel) for channel in stops.T]
    colours = np.rint(np.stack(channels, axis=1)).astype(np.uint8)  # (STEPS, 3)
    return np.concatenate([colours, np.full((1, 3), 255, dtype=np.uint8)])


def colour_indices(values: Floats, low: float, high: float) -> Ints:
    """The index of each value in the palette; values outside the range get the colour of its end."""
    spread = high - low
    shares = np.clip((values - low) / spread, 0, 1) if spread > 0 else np.where(np.isnan(values), np.nan, 0.5)
    return np.where(np.isnan(shares), MISSING, np.rint(np.nan_to_num(shares) * (STEPS - 1))).astype(np.uint8)


def hex_colour(colour: Ints) -> str:
    """A colour of the palette in hexadecimal notation, such as #ffffff."""
    return f"#{colour.tobytes().hex()}"


def png_bytes(pixels: Ints) -> bytes:
    """A PNG file of palette indices, pixels (height, width); `MISSING` is not painted."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # the first byte of a row is its filter: none
    rows[:, 1:] = pixels
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, INDEXED_COLOUR, 0, 0, 0),
        b"PLTE": palette().tobytes(),
        b"tRNS": bytes([255] * MISSING + [0]),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    file = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks.items():
        file += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return file
