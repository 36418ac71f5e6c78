"""Texts -> their character n-grams, hashed, damped by the logarithm and weighted by inverse document frequency."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manymetrics.encode.encoder import Encoder, State
from manymetrics.encode.tokens import MAX_LETTERS
from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints

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
        rarity = self.rarity
        if rarity.ndim != 1 or not len(rarity) or rarity.dtype.kind != "f" or (rarity < 0).any():
            raise DataError(
                f"The rarity of hashed runs has shape {rarity.shape}; expected one number from 0 up a bucket."
            )

    @classmethod
    def from_texts(cls, texts: Sequence[str], *, buckets: int = LETTER_BUCKETS) -> "CharNgramEncoder":
        """Learn from a bank's texts which letter runs are rare and therefore telling."""
        counts = np.zeros(buckets, dtype=np.int64)  # of the texts that have each run
        for runs, bounds in _letter_runs(texts, buckets):
            text = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            counts += np.bincount(np.unique(text * buckets + runs) % buckets, minlength=buckets)
        return cls((1 + np.log((1 + len(texts)) / (1 + counts))).astype(np.float32))

    def encode(self, texts: Sequence[str]) -> sparse.csr_array:
        """How often each text has each run, damped, times the rarity of the run: (texts, buckets) sparse float32."""
        parts = [sparse.csr_array((0, len(self.rarity)), dtype=np.float32)]
        for runs, bounds in _letter_runs(texts, len(self.rarity)):
            ones = np.ones(len(runs), dtype=np.float32)
            counts = sparse.csr_array((ones, runs, bounds), shape=(len(bounds) - 1, len(self.rarity)))
            counts.sum_duplicates()
            counts.data = (1 + np.log(counts.data)) * self.rarity[counts.indices]
            counts.eliminate_zeros()
            parts.append(counts)
        return sparse.vstack(parts, format="csr")

    def state(self) -> State:
        """The rarity of each run."""
        return State({"rarity": self.rarity})

    @classmethod
    def from_state(cls, state: State) -> "CharNgramEncoder":
        """The encoder that `state` described."""
        return cls(state.tensors["rarity"])


def _letter_runs(texts: Sequence[str], buckets: int) -> Iterator[tuple[Ints, Ints]]:
    """The buckets of letter runs and the boundaries of their texts, some thousand texts at a time."""
    for at in range(0, len(texts), LETTER_TEXTS_AT_ONCE):
        some = texts[at : at + LETTER_TEXTS_AT_ONCE]
        spaced = [f" {' '.join(text[:MAX_LETTERS].lower().split())} " for text in some]
        starts = np.cumsum([0, *(len(text) for text in spaced)]).astype(np.int64)
        encoded = "".join(spaced).encode("utf-32-le", "surrogatepass")
        count = len(encoded) // 4
        letters = np.zeros(count + LONGEST_RUN, dtype=np.uint64)
        letters[:count] = np.frombuffer(encoded, dtype=np.uint32)
        left = np.repeat(starts[1:], np.diff(starts)) - np.arange(count)  # from each letter to its text's end
        codes = np.empty((count, LONGEST_RUN), dtype=np.uint64)  # of the runs of each length from each letter
        inside = np.arange(LONGEST_RUN) < left[:, None]  # whether a run lies within its text, spaces only at its ends
        code = np.full(count, BASIS, dtype=np.uint64)
        for length in range(LONGEST_RUN):
            code = (code ^ letters[length : length + count]) * np.uint64(PRIME)
            codes[:, length] = code ^ (code >> np.uint64(29))
            if length >= 2:
                inside[:, length] &= inside[:, length - 1] & (letters[length - 1 : length - 1 + count] != SPACE)
        inside[:, : SHORTEST_RUN - 1] = False
        bounds = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])[starts].astype(np.int64)  # (texts + 1,)
        yield (codes[inside] % np.uint64(buckets)).astype(np.int32), bounds
