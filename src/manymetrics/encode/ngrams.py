"""Texts -> their character n-grams, hashed, damped by the logarithm and weighted by inverse document frequency."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manymetrics.encode.encoder import Encoder, State
from manymetrics.encode.tokens import MAX_LETTERS
from manymetrics.errors import DataError
from manymetrics.values import Bools, Floats, Ints

SHORTEST_RUN, LONGEST_RUN = 2, 5  # letters
LETTER_BUCKETS = 2**18
LETTER_TEXTS_AT_ONCE = 4096
SPACE = 32
BASIS, PRIME = 14695981039346656037, 1099511628211  # of the hash FNV-1a


@dataclass(frozen=True, eq=False, repr=False)
class CharNgramEncoder(Encoder, kind="letters"):
    """Runs of two to five letters within words."""

    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank

    def __post_init__(self) -> None:
        _check_rarity(self.rarity)

    @classmethod
    def from_texts(cls, texts: Sequence[str], *, buckets: int = LETTER_BUCKETS) -> "CharNgramEncoder":
        """Learn from a bank's texts which letter runs are rare and therefore telling."""
        counts = _count_texts(_letter_runs(texts, buckets), buckets)
        return cls((1 + np.log((1 + len(texts)) / (1 + counts))).astype(np.float32))

    def encode(self, texts: Sequence[str]) -> sparse.csr_array:
        """Each text's weighted letter runs: (texts, buckets) sparse float32."""
        return _weighted_rows(_letter_runs(texts, len(self.rarity)), self.rarity)

    def state(self) -> State:
        """The rarity of each run."""
        return State({"rarity": self.rarity})

    @classmethod
    def from_state(cls, state: State) -> "CharNgramEncoder":
        """The encoder that `state` described."""
        return cls(state.tensors["rarity"])


def _check_rarity(rarity: Floats) -> None:
    if rarity.ndim != 1 or not len(rarity) or rarity.dtype.kind != "f" or (rarity < 0).any():
        raise DataError(f"The rarity of hashed runs has shape {rarity.shape}; expected one number from 0 up a bucket.")


def _weighted_rows(runs: Iterable[tuple[Ints, Ints]], rarity: Floats) -> sparse.csr_array:
    """Hashed runs -> how often each text has them, damped, times their rarity.

    Each part of `runs` gives buckets and the boundaries of its texts. Rows are (texts, buckets) sparse float32; what
    has no rarity is left out.
    """
    parts = [sparse.csr_array((0, len(rarity)), dtype=np.float32)]
    for buckets, bounds in runs:
        ones = np.ones(len(buckets), dtype=np.float32)
        counts = sparse.csr_array((ones, buckets, bounds), shape=(len(bounds) - 1, len(rarity)))
        counts.sum_duplicates()
        counts.data = (1 + np.log(counts.data)) * rarity[counts.indices]
        counts.eliminate_zeros()
        parts.append(counts)
    return sparse.vstack(parts, format="csr")


def _letter_runs(texts: Sequence[str], buckets: int) -> Iterator[tuple[Ints, Ints]]:
    """Hashed letter runs and the boundaries of their texts, some thousand texts at a time."""
    for at in range(0, len(texts), LETTER_TEXTS_AT_ONCE):
        some = texts[at : at + LETTER_TEXTS_AT_ONCE]
        spaced = [f" {' '.join(text[:MAX_LETTERS].lower().split())} " for text in some]
        starts = np.cumsum([0, *(len(text) for text in spaced)]).astype(np.int64)
        letters = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        codes, inside = _hash_from_each(letters, starts, LONGEST_RUN)  # (letters, LONGEST_RUN) each
        letter = _from_each(letters != SPACE, LONGEST_RUN)
        for length in range(2, LONGEST_RUN):  # a run holds a space only at its ends
            inside[:, length] &= inside[:, length - 1] & letter[length - 1]
        inside[:, : SHORTEST_RUN - 1] = False
        bounds = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])[starts].astype(np.int64)  # (texts + 1,)
        yield (codes[inside] % np.uint64(buckets)).astype(np.int32), bounds


def _hash_from_each(items: Ints, starts: Ints, longest: int) -> tuple[Ints, Bools]:
    """The hash of the runs of every length from every place, and which of them lie within a text."""
    left = np.repeat(starts[1:], np.diff(starts)) - np.arange(len(items))  # (items,): from here to the text's end
    codes = np.empty((len(items), longest), dtype=np.uint64)
    code = np.full(len(items), BASIS, dtype=np.uint64)
    for length, item in enumerate(_from_each(items.astype(np.uint64), longest)):
        code = (code ^ item) * np.uint64(PRIME)
        codes[:, length] = code ^ (code >> np.uint64(29))
    return codes, np.arange(longest) < left[:, None]


def _from_each(items: Any, longest: int) -> list[Any]:
    """The items, the items one position further on, and so forth: `longest` arrays (items,); zeros at the end."""
    padded = np.concatenate([items, np.zeros(longest, dtype=items.dtype)])
    return [padded[ahead : ahead + len(items)] for ahead in range(longest)]


def _count_texts(runs: Iterable[tuple[Ints, Ints]], buckets: int) -> Ints:
    """In how many texts each bucket occurs: (buckets,)."""
    counts = np.zeros(buckets, dtype=np.int64)
    for run, bounds in runs:
        text = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        counts += np.bincount(np.unique(text * buckets + run) % buckets, minlength=buckets)
    return counts
