"""Texts, with what encoders remember of them; the same with labels; and few-shot problems made of these."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, overload

import numpy as np

from manymetrics.values.arrays import Ints


class Remembered(Protocol):
    """What an encoder made of some texts, one part for each."""

    def take(self, rows: Ints) -> Self:
        """The parts of the texts at the given places."""

    @classmethod
    def join(cls, parts: Sequence[Any]) -> Self:
        """Several of these as one, in order."""


class Texts(Sequence[str]):
    """Some texts, and beside them what encoders remember of them.

    An encoder that keeps what it makes of a text, such as its tokens, does so under a key of its own (`remember`). Some
    of the texts (`take`), and several collections together (`join`), find there what was made before.
    """

    __slots__ = ("_made", "_origin", "_strings")

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._strings: tuple[str, ...] = strings._strings if isinstance(strings, Texts) else tuple(strings)
        self._made: dict[Hashable, Any] = dict(strings._made) if isinstance(strings, Texts) else {}
        self._origin: tuple[tuple[Texts, ...], Ints | None] = ((), None)

    def remember(self, key: Hashable, make: Callable[[tuple[str, ...]], Any]) -> Any:
        """What was made of these texts under this key; made now where it was not."""
        found = self._find(key)
        if found is None:
            found = self._made[key] = make(self._strings)
        return found

    def put(self, key: Hashable, made: Remembered) -> None:
        """Remember what was made of these texts elsewhere."""
        self._made[key] = made

    def take(self, rows: Sequence[int] | Ints) -> "Texts":
        """The texts at the given places, in that order."""
        places = np.asarray(rows, dtype=np.int64)
        taken = Texts(self._strings[row] for row in places.tolist())
        taken._origin = ((self,), places)
        return taken

    @classmethod
    def join(cls, parts: Sequence["Texts"]) -> "Texts":
        """Several collections as one, in order."""
        joined = cls(text for part in parts for text in part._strings)
        joined._origin = (tuple(parts), None)
        return joined

    def _find(self, key: Hashable) -> Any:
        if key in self._made:
            return self._made[key]
        parts, rows = self._origin
        made = [part._find(key) for part in parts if len(part)]
        if not made or any(one is None for one in made):
            return None
        self._made[key] = type(made[0]).join(made) if rows is None else made[0].take(rows)
        return self._made[key]

    def __len__(self) -> int:
        return len(self._strings)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> "Texts": ...

    def __getitem__(self, place: int | slice) -> "str | Texts":
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        return self._strings[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)

    def __eq__(self, other: object) -> bool:
        return self._strings == (other._strings if isinstance(other, Texts) else other)

    def __hash__(self) -> int:
        return hash(self._strings)

    def __repr__(self) -> str:
        return f"<{len(self):,} texts>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _texts_again, (self._strings, self._made)


def _texts_again(strings: tuple[str, ...], made: dict[Hashable, Any]) -> Texts:
    texts = Texts(strings)
    texts._made.update(made)
    return texts


NO_TEXTS = Texts()


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts with the numbers of their labels."""

    texts: Texts
    labels: Ints  # (texts,)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Sequence[int] | Ints) -> "LabelledTexts":
        """The examples at the given places."""
        return LabelledTexts(self.texts.take(rows), self.labels[np.asarray(rows, dtype=np.int64)])

    @classmethod
    def join(cls, parts: Sequence["LabelledTexts"]) -> "LabelledTexts":
        """Several collections as one, in order."""
        labels = np.concatenate([np.zeros(0, np.int64), *(part.labels for part in parts)])
        return cls(Texts.join([part.texts for part in parts]), labels)


@dataclass(frozen=True, eq=False)
class Episode:
    """A few-shot problem: labelled texts to learn from, and others to be answered."""

    task: str
    classes: tuple[str, ...]  # what the label numbers stand for
    support: LabelledTexts
    query: LabelledTexts
    names: Texts = NO_TEXTS  # of the classes, in words
