"""Numbers, paragraphs and tables as the page of results and the commands write them."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def percent(share: float | None) -> str:
    """A share in per cent; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f}"


def signed(difference: float) -> str:
    """A difference of shares in points."""
    return f"{100 * difference:+.1f}"


def both(row: Mapping[str, Any]) -> str:
    """Accuracy, and in brackets balanced accuracy."""
    return f"{percent(row['accuracy']['value'])} ({percent(row['balanced_accuracy']['value'])})"


def share(estimate: Mapping[str, float] | None) -> str:
    """A share in per cent, with its interval where that is known; a dash where it was not measured."""
    if not estimate:
        return "-"
    value = percent(estimate["value"])
    return f"{value} [{percent(estimate['low'])}, {percent(estimate['high'])}]" if "low" in estimate else value


def points(gain: Mapping[str, float] | None) -> str:
    """A difference with its interval, in points; nothing where there is none."""
    if gain is None:
        return ""
    return f"{signed(gain['value'])} [{signed(gain['low'])}, {signed(gain['high'])}]"


def listed(names: Sequence[str]) -> str:
    """Several names in a sentence."""
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])


def capitalized(text: str) -> str:
    """The text with a capital first letter, the others unchanged."""
    return text[:1].upper() + text[1:]


def fold(text: str, width: int = 120) -> str:
    """A paragraph in lines of at most so many characters."""
    return textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False) + "\n"


def item(text: str) -> str:
    """An item of a list."""
    return "- " + fold(text, 118).strip().replace("\n", "\n  ")


def table(texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: columns of text, then right-aligned columns of numbers."""
    lines = [_line([*texts, *numbers]), "|" + "---|" * len(texts) + "---:|" * len(numbers)]
    return "\n".join([*lines, *map(_line, rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
