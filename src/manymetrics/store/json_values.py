"""Values out of JSON, each of the type that was expected of it: a file may hold anything."""

import math
from collections.abc import Mapping
from typing import Any

from manymetrics.errors import DataError


def text_of(about: Mapping[str, Any], name: str) -> str:
    """The text under a name."""
    value = about[name]
    if not isinstance(value, str):
        raise _unexpected(name, value, "a text")
    return value


def texts_of(about: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The list of texts under a name."""
    value = about[name]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _unexpected(name, value, "a list of texts")
    return tuple(value)


def number_of(about: Mapping[str, Any], name: str) -> float:
    """The finite number under a name."""
    value = about[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _unexpected(name, value, "a finite number")
    return float(value)


def whole_number_of(about: Mapping[str, Any], name: str) -> int:
    """The whole number under a name."""
    value = about[name]
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise _unexpected(name, value, "a whole number")
    return value


def truth_of(about: Mapping[str, Any], name: str) -> bool:
    """Whether the value under a name is true."""
    value = about[name]
    if not isinstance(value, bool):
        raise _unexpected(name, value, "true or false")
    return value


def numbers_of(about: Mapping[str, Any], name: str) -> dict[str, float]:
    """The numbers, by name, under a name."""
    return {one: number_of(named_of(about, name), one) for one in named_of(about, name)}


def pair_of(about: Mapping[str, Any], name: str) -> tuple[float, float]:
    """The two numbers under a name."""
    value = about[name]
    if not isinstance(value, list) or len(value) != 2:
        raise _unexpected(name, value, "a list of two numbers")
    first, second = (number_of({name: one}, name) for one in value)
    return first, second


def named_of(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The named values under a name."""
    value = about[name]
    if not isinstance(value, dict):
        raise _unexpected(name, value, "named values")
    return value


def _unexpected(name: str, value: object, expected: str) -> DataError:
    return DataError(f"{name!r} is a value of type {type(value).__name__} where {expected} was expected")
