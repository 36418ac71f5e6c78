"""Texts -> rows: what an encoder is, how it is stored, and the registry of kinds that can be made again from a file.

    Encoder         texts in, one embedding for each out; a fingerprint; its state as tensors and JSON, and back
    State           all it takes to make an encoder again, the encoders it uses among it
    EmbeddedTexts   some texts and their embeddings, computed once by each encoder

A kind of encoder is registered by defining its class: `class Mine(Encoder, kind="mine")`. A model with such an encoder
can be loaded wherever the class is defined.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from manymetrics.errors import DataError, ModelError
from manymetrics.values import Floats, Ints, as_texts

MAX_VALUE = 1e9  # value of an encoder's tensor; sums and squares of such values stay finite
BY_NAME = "by-name"  # in place of the kind of an encoder that is stored by its name
Rows = Any  # (texts, width): a float32 array or a scipy CSR array


@dataclass(frozen=True, eq=False)
class State:
    """All it takes to make an encoder again."""

    tensors: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what JSON can hold
    parts: Mapping[str, "Encoder"] = field(default_factory=dict)  # encoders that it uses


class Encoder(ABC):
    """Texts in, rows of features out. A text's row must not depend on the texts beside it."""

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type["Encoder"]]] = {}
    takes_embedded: ClassVar[bool] = False  # `encode` takes `EmbeddedTexts` too, and uses the embeddings they have
    takes_table: ClassVar[bool] = False  # encoding takes so long that a bank's texts are encoded once, into a table

    def __init_subclass__(cls, *, kind: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.kind = kind
        if kind:
            Encoder.kinds[kind] = cls

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Rows:
        """One row for each text: (texts, width), a float32 array or a CSR array. Rows need not have length one."""

    @abstractmethod
    def state(self) -> State:
        """All it takes to make this encoder again."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The encoder that `state` described."""

    @property
    def is_bert(self) -> bool:
        """Whether it is a transformer whose weights are known by name, so that factors of them can be trained."""
        return False

    def with_table(self, table: Any) -> "Encoder":
        """The same encoder, which reads the embeddings of some texts from a table, where it `takes_table`."""
        return self

    def clear_table(self) -> None:
        """Forget the embeddings that `with_table` gave, so that a learned model does not carry its bank's texts."""
        return

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.name!r}' if hasattr(self, 'name') else ''}>"

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


def normalize(rows: Rows) -> Rows:
    """Rows scaled to length one, so that an inner product of two is a cosine; a row of zeros stays."""
    if not sparse.issparse(rows):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)  # (n, 1)
        return rows / np.where(lengths > 0, lengths, 1)
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(owners, weights=rows.data**2, minlength=rows.shape[0]))
    data = (rows.data / np.maximum(lengths, 1e-9)[owners]).astype(np.float32)
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def row_products(rows: Floats, matrix: Floats) -> Floats:
    """The matrix product in float32, the same for a row in any batch.

    Matrix products in float32 round by the shape of the batch on some processors. In double precision the difference is
    lost when the result is rounded.
    """
    return (rows.astype(np.float64) @ matrix.astype(np.float64)).astype(np.float32)


def dense(product: Any) -> Floats:
    """A product of rows as an array, whether these were sparse or not."""
    return product.toarray() if sparse.issparse(product) else product  # type: ignore[no-any-return]


class EmbeddedTexts:
    """Some texts and their embeddings; each encoder is asked once, whoever needs its rows.

    Texts that are taken from others, or joined, use the embeddings of these. Of rows that were asked for scaled nothing
    else is stored, because in a large batch they are most of the memory. Whoever needs both asks for the rows first.
    """

    def __init__(self, texts: Iterable[str], parts: "tuple[EmbeddedTexts, ...]" = (), taken: Any = slice(None)) -> None:
        self.texts = as_texts(texts)
        self._parts, self._taken = parts, taken  # the texts that these come from, and which rows of them
        self._rows: dict[Encoder, Rows] = {}
        self._unit: dict[Encoder, Rows] = {}

    @classmethod
    def of(cls, texts: "Iterable[str] | EmbeddedTexts") -> "EmbeddedTexts":
        """Texts with their embeddings as they are, or texts without any."""
        return texts if isinstance(texts, EmbeddedTexts) else cls(texts)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | Ints) -> "EmbeddedTexts":
        """The texts with these indices."""
        return EmbeddedTexts([self.texts[row] for row in rows], (self,), np.asarray(rows, dtype=np.int64))

    @classmethod
    def join(cls, parts: Sequence["EmbeddedTexts"]) -> "EmbeddedTexts":
        """Several collections as one, in order."""
        return cls([text for part in parts for text in part.texts], tuple(parts))

    def rows(self, encoder: Encoder, *, unit: bool = False) -> Rows:
        """The embeddings, as they are or (`unit`) scaled to length one: (texts, width)."""
        stored = self._unit if unit else self._rows
        if encoder not in stored and self._parts:
            parts = [part.rows(encoder, unit=unit) for part in self._parts]
            join = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
            stored[encoder] = (join(parts) if len(parts) > 1 else parts[0])[self._taken]
        elif encoder not in stored:
            texts: Any = self if encoder.takes_embedded else self.texts
            rows = self._rows[encoder] if encoder in self._rows else encoder.encode(texts)
            rows = require_finite(rows, f"the rows of a {encoder.kind} encoder")
            stored[encoder] = normalize(rows) if unit else rows
        return stored[encoder]


def centroid_of(encoder: Encoder, texts: Sequence[str] | EmbeddedTexts) -> Floats:
    """The middle of some texts among an encoder's rows: their mean direction, (width,), of length one."""
    rows = EmbeddedTexts.of(texts).rows(encoder, unit=True)  # (texts, width)
    return normalize(np.asarray(rows.mean(axis=0)).reshape(1, -1))[0]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionEncoder(Encoder, kind="projection"):
    """Unit embeddings of another encoder, and what a matrix adds to them."""

    takes_embedded = True
    base: Encoder
    matrix: Floats  # (width, width) float32

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise DataError(f"a projection has a matrix of shape {self.matrix.shape}, which is not square")
        require_finite(self.matrix, "the matrix of a projection")

    def encode(self, texts: Sequence[str] | EmbeddedTexts) -> Floats:
        """One row for each text: (texts, width) float32."""
        rows = EmbeddedTexts.of(texts).rows(self.base, unit=True)
        return rows + row_products(rows, self.matrix)  # type: ignore[no-any-return]

    def state(self) -> State:
        """The matrix, and the encoder it projects."""
        return State({"matrix": self.matrix}, {}, {"base": self.base})

    @classmethod
    def from_state(cls, state: State) -> "ProjectionEncoder":
        """The encoder that `state` described."""
        return cls(state.parts["base"], state.tensors["matrix"])


def pack_encoders(encoders: Iterable[Encoder], by_name: Collection[str] = (),
                  ) -> tuple[dict[str, Any], list[dict[str, Any]], dict[Encoder, int]]:  # fmt: skip
    """Encoders, and those they use, as tensors, as descriptions for JSON, and the number of each among these.

    Equal encoders are stored once. An encoder that could not be made again from what is stored is refused. Of the
    encoders whose names are in `by_name`, name and fingerprint are stored and no tensors.
    """
    tensors: dict[str, Any] = {}
    about: list[dict[str, Any]] = []
    by_print: dict[str, int] = {}
    numbers: dict[Encoder, int] = {}

    def pack(encoder: Encoder) -> int:
        require_registered(encoder)
        if encoder.fingerprint not in by_print:
            state, kind, name = encoder.state(), encoder.kind, getattr(encoder, "name", None)
            if name in by_name and not state.parts:
                state, kind = State({}, {"name": name, "fingerprint": encoder.fingerprint}), BY_NAME
            parts = {name: pack(part) for name, part in state.parts.items()}
            number = by_print[encoder.fingerprint] = len(about)
            about.append({"kind": kind, "settings": dict(state.settings), "parts": parts})
            tensors.update({f"{number}/{name}": np.ascontiguousarray(tensor) for name, tensor in state.tensors.items()})
        numbers[encoder] = by_print[encoder.fingerprint]
        return numbers[encoder]

    for encoder in encoders:
        pack(encoder)
    return tensors, about, numbers


def open_encoders(tensors: Mapping[str, Any], about: Iterable[Mapping[str, Any]],
                  load: Callable[[str], Encoder] | None = None) -> list[Encoder]:  # fmt: skip
    """The encoders that `pack_encoders` described, each after those it uses; `load` gives one by its name."""
    opened: list[Encoder] = []
    for number, stored in enumerate(about):
        kind, settings, prefix = stored["kind"], stored["settings"], f"{number}/"
        if kind == BY_NAME and load is not None:
            opened.append(load(str(settings["name"])))
            if opened[-1].fingerprint != settings["fingerprint"]:
                raise ModelError(
                    f"The encoder {settings['name']!r} on this machine is not the one that the model was learned with. "
                    "Fetch the version that the model names, or learn the model again."
                )
            continue
        for part in stored["parts"].values():
            if not isinstance(part, int) or not 0 <= part < number:
                raise DataError(f"an encoder uses number {part!r}, which does not come before it")
        parts = {name: opened[part] for name, part in stored["parts"].items()}
        of_it = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        opened.append(_from_state(kind, State(of_it, settings, parts)))
    return opened


def _from_state(kind: str, state: State) -> Encoder:
    if kind not in Encoder.kinds:
        raise ModelError(
            f"There is no encoder of the kind {kind!r} here. Import the module that defines it, then load again."
        )
    for name, tensor in state.tensors.items():
        if tensor.dtype.kind == "f":
            require_finite(tensor, f"the tensor {name!r} of a {kind} encoder")
    encoder = Encoder.kinds[kind].from_state(state)
    if not isinstance(encoder, Encoder.kinds[kind]):
        raise DataError(f"from_state of a {kind} encoder gave a value of type {type(encoder).__name__}")
    return encoder


def require_finite(rows: Rows, what: str) -> Rows:
    """The same rows; refused where they hold numbers that no stage can use: NaN, infinite, or huge."""
    values = rows.data if sparse.issparse(rows) else rows
    if values.dtype == np.float16:  # has no finite value out of bounds, and numpy is slow to find its extremes
        usable = np.isfinite(values).all()
    else:  # neither extreme loses sight of a NaN
        usable = values.min(initial=0) >= -MAX_VALUE and values.max(initial=0) <= MAX_VALUE
    if not usable:
        raise DataError(f"Found values that are not finite in {what}.")
    return rows


def require_registered(encoder: Any) -> None:
    """Refuse an encoder that could not be made again from what is stored of it."""
    if not isinstance(encoder, Encoder) or Encoder.kinds.get(encoder.kind) is not type(encoder):
        raise ModelError(
            f"An encoder of type {type(encoder).__name__} cannot be loaded again: it is not a registered kind. "
            f'Define it as class {type(encoder).__name__}(Encoder, kind="...") with state and from_state.'
        )
