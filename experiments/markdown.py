"""Numbers and paragraphs as the page of results writes them."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any


def both(row: Mapping[str, Any]) -> str:
    """Accuracy, and in brackets balanced accuracy."""
    return f"{100 * row['accuracy']['value']:.1f} ({100 * row['balanced_accuracy']['value']:.1f})"


def share(estimate: Mapping[str, float]) -> str:
    """A share in per cent, with its interval where that is known."""
    value = f"{100 * estimate['value']:.1f}"
    return f"{value} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]" if "low" in estimate else value


def points(gain: Mapping[str, float]) -> str:
    """A difference with its interval, in points."""
    return f"{100 * gain['value']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"


def listed(names: Sequence[str]) -> str:
    """Several names in a sentence."""
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])


def fold(text: str, width: int = 120) -> str:
    """A paragraph in lines of at most so many characters."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) + "\n"
