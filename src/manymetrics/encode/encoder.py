"""Texts -> rows: what an encoder is, how it is kept, and the registry of kinds that can be made again from a file.

    Encoder     texts in, one row of features for each out; a fingerprint; its state as tensors and JSON, and back
    State       all it takes to make an encoder again, the encoders it stands on among it
    Features    what encoders make of some texts, each asked once

A kind of encoder is registered by defining its class: `class Mine(Encoder, kind="mine")`. A model with such an encoder
can be loaded wherever the class is defined.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from manymetrics.errors import DataError, ModelError
from manymetrics.values import Floats, Ints, Texts

LARGEST = 1e9  # value of an encoder's tensor; sums and squares of such values stay finite
Rows = Any  # (texts, width): a float32 array or a scipy CSR array


@dataclass(frozen=True, eq=False)
class State:
    """All it takes to make an encoder again."""

    tensors: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what JSON can hold
    parts: Mapping[str, "Encoder"] = field(default_factory=dict)  # encoders that it stands on


class Encoder(ABC):
    """Texts in, rows of features out. A text's row must not depend on the texts beside it."""

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type["Encoder"]]] = {}

    def __init_subclass__(cls, *, kind: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.kind = kind
        if kind:
            Encoder.kinds[kind] = cls

    @abstractmethod
    def encode(self, texts: Texts) -> Rows:
        """One row for each text: (texts, width), a float32 array or a CSR array. Rows need not have length one."""

    @abstractmethod
    def state(self) -> State:
        """All it takes to make this encoder again."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The encoder that `state` described."""

    def lengths(self, texts: Texts) -> Ints:
        """How many tokens of each text are read: (texts,)."""
        return np.array([max(1, len(text.split())) for text in texts], dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the kind and the state: equal encoders have equal fingerprints, in every process."""
        state = self.state()
        digest = hashlib.sha256(json.dumps([self.kind, state.settings], sort_keys=True).encode())
        for name, tensor in sorted(state.tensors.items()):
            digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode() + np.ascontiguousarray(tensor).tobytes())
        for name, part in sorted(state.parts.items()):
            digest.update(f"{name} {part.fingerprint}".encode())
        return digest.hexdigest()


def unit_rows(rows: Rows) -> Rows:
    """Rows scaled to length one, so that an inner product of two is a cosine; a row of zeros stays."""
    if not sparse.issparse(rows):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)  # (n, 1)
        return rows / np.where(lengths > 0, lengths, 1)
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(owners, weights=rows.data**2, minlength=rows.shape[0]))
    data = (rows.data / np.maximum(lengths, 1e-9)[owners]).astype(np.float32)
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def centre(encoder: Encoder, texts: Texts) -> Floats:
    """The middle of some texts among an encoder's rows: their mean direction, (width,), of length one."""
    rows = unit_rows(encoder.encode(texts))  # (texts, width)
    return unit_rows(np.asarray(rows.mean(axis=0)).reshape(1, -1))[0]  # type: ignore[no-any-return]


class Features:
    """What encoders make of some texts; each encoder is asked once, whoever needs its rows.

    Of rows that were asked for scaled nothing else is kept, because in a large batch they are most of the memory.
    Whoever needs both asks for the rows first.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._rows: dict[Encoder, Rows] = {}
        self._directions: dict[Encoder, Rows] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, encoder: Encoder) -> Rows:
        """The features as they are: (texts, width)."""
        if encoder not in self._rows:
            self._rows[encoder] = encoder.encode(self.texts)
        return self._rows[encoder]

    def directions(self, encoder: Encoder) -> Rows:
        """The features scaled to length one: (texts, width)."""
        if encoder not in self._directions:
            rows = self._rows[encoder] if encoder in self._rows else encoder.encode(self.texts)
            self._directions[encoder] = unit_rows(rows)
        return self._directions[encoder]


def pack_encoders(encoders: Iterable[Encoder]) -> tuple[dict[str, Any], list[dict[str, Any]], dict[Encoder, int]]:
    """Encoders, and those they stand on, as tensors, as descriptions for JSON, and the place of each among these.

    Equal encoders are kept once. An encoder that could not be made again from what is kept is refused.
    """
    tensors: dict[str, Any] = {}
    about: list[dict[str, Any]] = []
    by_print: dict[str, int] = {}
    places: dict[Encoder, int] = {}

    def pack(encoder: Encoder) -> int:
        require_registered(encoder)
        if encoder.fingerprint not in by_print:
            state = encoder.state()
            parts = {name: pack(part) for name, part in state.parts.items()}
            place = by_print[encoder.fingerprint] = len(about)
            about.append({"kind": encoder.kind, "settings": dict(state.settings), "parts": parts})
            tensors.update({f"{place}/{name}": np.ascontiguousarray(one) for name, one in state.tensors.items()})
        places[encoder] = by_print[encoder.fingerprint]
        return places[encoder]

    for encoder in encoders:
        pack(encoder)
    return tensors, about, places


def open_encoders(tensors: Mapping[str, Any], about: Iterable[Mapping[str, Any]]) -> list[Encoder]:
    """The encoders that `pack_encoders` described, each after those it stands on."""
    opened: list[Encoder] = []
    for place, one in enumerate(about):
        kind = Encoder.kinds.get(one["kind"])
        if kind is None:
            raise ModelError(
                f"There is no encoder of the kind {one['kind']!r} here. "
                "Import the module that defines it, then load again."
            )
        own = {name.partition("/")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{place}/")}
        for name, tensor in own.items():
            if tensor.dtype.kind == "f" and not _usable(tensor):
                raise DataError(f"the tensor {name!r} of a {one['kind']} encoder holds values that are not finite")
        parts = {name: _earlier(opened, part) for name, part in one["parts"].items()}
        made = kind.from_state(State(own, one["settings"], parts))
        if not isinstance(made, kind):
            raise DataError(f"from_state of a {one['kind']} encoder gave a value of type {type(made).__name__}")
        opened.append(made)
    return opened


def _usable(tensor: Floats) -> bool:
    """Whether all values are finite and within bounds; neither extreme loses sight of a NaN."""
    if tensor.dtype == np.float16:  # has no finite value out of bounds, and numpy is slow to find its extremes
        return bool(np.isfinite(tensor).all())
    return float(tensor.min(initial=0)) >= -LARGEST and float(tensor.max(initial=0)) <= LARGEST


def _earlier(opened: list[Encoder], place: Any) -> Encoder:
    if not isinstance(place, int) or not 0 <= place < len(opened):
        raise DataError(f"an encoder stands on number {place!r}, which does not come before it")
    return opened[place]


def require_registered(encoder: Any) -> None:
    """Refuse an encoder that could not be made again from what is kept of it."""
    if not isinstance(encoder, Encoder) or Encoder.kinds.get(encoder.kind) is not type(encoder):
        raise ModelError(
            f"An encoder of type {type(encoder).__name__} cannot be loaded again: it is not a registered kind. "
            f'Define it as class {type(encoder).__name__}(Encoder, kind="...") with state and from_state.'
        )
