"""Numbers -> colours that the eye takes for as far apart as the numbers are.

The ramp goes from deep violet over teal to pale yellow. Its lightness (L of OKLab) rises by equal steps, so it reads
the same in grey and to people who see fewer hues; hue and chroma only help.
"""

import math
from functools import cache

import numpy as np

from manymetrics.values import Floats, Ints

STEPS = 253  # colours of the ramp
HATCHED, WHITE, MISSING = 253, 254, 255  # the places in the palette after them: two for drawing, and what is not known
DARKEST, LIGHTEST = 0.27, 0.94  # lightness of the ends
HUES = (292.0, 262.0, 205.0, 160.0, 105.0)  # degrees, along the ramp
CHROMA = (0.10, 0.11, 0.09, 0.12, 0.11)
KINDS_OF_HUE, KIND_STEP, FIRST_HUE = 12, 150.0, 250.0  # hues of kinds of things: so many, and degrees between them
KIND_LIGHTNESS, KIND_CHROMA = (0.48, 0.60), 0.15
DARK_GREY, PURE_WHITE, GREY = (150, 150, 146), (255, 255, 255), (222, 222, 218)


@cache
def ramp() -> tuple[tuple[int, int, int], ...]:
    """The colours from low to high, as bytes of red, green and blue."""
    along = np.linspace(0, 1, STEPS)
    stops = np.linspace(0, 1, len(HUES))
    hues, chroma = np.interp(along, stops, HUES), np.interp(along, stops, CHROMA)
    lightness = DARKEST + (LIGHTEST - DARKEST) * along
    return tuple(_in_gamut(*each) for each in zip(lightness.tolist(), chroma.tolist(), hues.tolist(), strict=True))


def distinct(count: int) -> list[str]:
    """Colours for kinds of things, as markup says them; white can be read on each, and neighbours are far apart."""
    turns = [(place * KIND_STEP + (place // KINDS_OF_HUE) * KIND_STEP / 2 + FIRST_HUE) % 360 for place in range(count)]
    depths = [KIND_LIGHTNESS[(place + place // KINDS_OF_HUE) % 2] for place in range(count)]
    return [as_hex(_in_gamut(depth, KIND_CHROMA, hue)) for depth, hue in zip(depths, turns, strict=True)]


def places(values: Floats, low: float, high: float) -> Ints:
    """The place of each value in the palette; what lies beyond the ends takes the colour of the end."""
    spread = high - low
    shares = np.clip((values - low) / spread, 0, 1) if spread > 0 else np.where(np.isnan(values), np.nan, 0.5)
    return np.where(np.isnan(shares), MISSING, np.rint(np.nan_to_num(shares) * (STEPS - 1))).astype(np.uint8)


def as_hex(colour: tuple[int, int, int]) -> str:
    """A colour as markup says it."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"


def palette() -> list[tuple[int, int, int]]:
    """The ramp, then the colours of `HATCHED`, `WHITE` and `MISSING`."""
    return [*ramp(), DARK_GREY, PURE_WHITE, GREY]


def _in_gamut(lightness: float, chroma: float, hue: float) -> tuple[int, int, int]:
    """The colour, its chroma lowered until a screen can show it."""
    while True:
        red, green, blue = _linear(lightness, chroma, hue)
        if chroma <= 0 or all(-1e-4 <= part <= 1.0001 for part in (red, green, blue)):
            return _byte(red), _byte(green), _byte(blue)
        chroma -= 0.002


def _linear(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """OKLab in polar form -> linear light of red, green and blue."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _byte(light: float) -> int:
    light = min(max(light, 0.0), 1.0)
    return round(255 * (12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055))
