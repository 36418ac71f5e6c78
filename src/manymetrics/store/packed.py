"""Frozen dataclasses <-> bytes: arrays as safetensors, everything else as JSON in the metadata of the same file.

Equal values give equal bytes. Types are checked on reading; a dataclass checks its ranges when it is made. Nothing in a
file is executed. Objects of other types are written and read by hooks of the caller.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from manymetrics.errors import DataError

Value = TypeVar("Value")
Encode = Mapping[type, Callable[[Any], Any]]  # type of an object -> what JSON can hold of it
Decode = Callable[[Any, Any], Any]  # (expected type, what JSON can hold) -> object
KEY = "value"  # of the metadata
TENSOR = "$tensor"  # key of a JSON object that stands for an array
NO_HOOKS: Encode = MappingProxyType({})
MAX_INTEGER = 2**63
MAX_JSON_BYTES = 90_000_000  # safetensors reads headers up to 100 MB


def dump(value: Any, encode: Encode = NO_HOOKS, *, with_gaps: Collection[str] = ()) -> bytes:
    """A dataclass as bytes; `with_gaps` are the paths of arrays where NaN marks a missing value."""
    tensors: dict[str, np.ndarray] = {}

    def to_json(item: Any, path: str) -> Any:
        for kind, hook in encode.items():
            if isinstance(item, kind):
                return hook(item)
        if isinstance(item, np.ndarray):
            _check_finite(item, path, with_gaps)
            tensors[path] = np.ascontiguousarray(item)
            return {TENSOR: path}
        if is_dataclass(item) and not isinstance(item, type):
            children = {field.name: getattr(item, field.name) for field in fields(item)}
            infinite = {field.name for field in fields(item) if field.default == math.inf == children[field.name]}
            return {name: child for name, child in children.items() if name not in infinite}  # JSON has no infinity
        if item is not None and not isinstance(item, str | int | float | Mapping | list | tuple):
            raise DataError(f"{path} is of type {type(item).__name__}, which cannot be stored")
        return item

    text = json.dumps(_convert_tree(value, to_json), sort_keys=True)
    if len(text) > MAX_JSON_BYTES:
        raise DataError(f"Found {len(text):,} bytes beside the arrays. At most {MAX_JSON_BYTES:,} can be stored.")
    return save(tensors, {KEY: text})


def parse(payload: bytes, expected: type[Value], *, with_gaps: Collection[str] = ()) -> Value:
    """The dataclass that `dump` wrote; anything else is refused with a `DataError`."""
    return convert(read(payload, with_gaps=with_gaps), expected)


def read(payload: bytes, *, with_gaps: Collection[str] = ()) -> Any:
    """The content of a file as JSON values and finite arrays, to be converted."""
    try:
        header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
        tree, tensors = json.loads(header["__metadata__"][KEY]), load(payload)
    except (ValueError, KeyError, TypeError, RecursionError, SafetensorError) as problem:
        raise DataError(f"the file has another format ({type(problem).__name__})") from problem
    for path, tensor in tensors.items():
        _check_finite(tensor, path, with_gaps)

    def from_json(item: Any, path: str) -> Any:
        if not isinstance(item, dict) or item.keys() != {TENSOR}:
            return item
        if item[TENSOR] != path or path not in tensors:
            raise DataError(f"the array {path} is missing")
        return tensors[path]

    try:
        return _convert_tree(tree, from_json)
    except RecursionError as problem:
        raise DataError("the file is nested too deeply") from problem


def convert(tree: Any, expected: type[Value], decode: Decode | None = None) -> Value:
    """A part of what `read` gave, as a value of the expected type."""

    def hook(kind: Any, item: Any) -> Any:
        if np.ndarray in (kind, get_origin(kind)):
            return _check_array(kind, item)
        if decode is None:
            raise DataError(f"a value of type {kind.__name__} cannot be read here")
        return decode(kind, item)

    try:
        return msgspec.convert(tree, expected, dec_hook=hook)
    except msgspec.ValidationError as problem:
        raise DataError(str(problem)) from problem


def _convert_tree(item: Any, convert_item: Callable[[Any, str], Any], path: str = "") -> Any:
    """A tree in which each item is converted, then the children of what it became; numbers must be usable."""
    item = convert_item(item, path)
    if isinstance(item, Mapping | list | tuple):
        pairs = item.items() if isinstance(item, Mapping) else enumerate(item)
        children = {
            key: _convert_tree(child, convert_item, f"{path}/{key}" if path else str(key)) for key, child in pairs
        }
        return children if isinstance(item, Mapping) else list(children.values())
    if isinstance(item, float) and not math.isfinite(item):
        raise DataError(f"{path} is not finite")
    if isinstance(item, int) and abs(item) >= MAX_INTEGER:
        raise DataError(f"{path} is an integer of more than 64 bits")
    return item


def _check_finite(tensor: np.ndarray, path: str, with_gaps: Collection[str]) -> None:
    if tensor.dtype.kind == "f":
        allowed = np.isfinite(tensor) | (np.isnan(tensor) if path in with_gaps else False)
        if not allowed.all():
            raise DataError(f"the array {path} holds values that are not finite")


def _check_array(expected: Any, item: Any) -> np.ndarray:
    """The array, if it has the type of numbers of the annotation, such as `NDArray[np.floating]`."""
    wanted = get_args(get_args(expected)[1])[0] if get_args(expected) else np.generic
    if not isinstance(item, np.ndarray) or not np.issubdtype(item.dtype, get_origin(wanted) or wanted):
        kind = item.dtype if isinstance(item, np.ndarray) else type(item).__name__
        raise DataError(f"expected an array of {wanted.__name__}, got {kind}")
    return item
