"""Text -> its phrases: runs of one or two tokens, hashed and weighted, for linear classifiers over a bank's labels."""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import sparse

from manymetrics.encode.kernels import count_texts
from manymetrics.encode.tokens import Tokens
from manymetrics.values import Floats, Ints

LONGEST_PHRASE = 2  # tokens
BUCKETS = 2**18
FEWEST_TEXTS = 3  # a phrase must occur in, or it says nothing
TEXTS_AT_ONCE = 16_384


@dataclass(frozen=True, eq=False)
class PhraseEncoder:
    """Runs of tokens, hashed, damped by the logarithm and weighted by rarity."""

    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank; 0 for phrases hardly ever seen

    @classmethod
    def from_bank(cls, tokens: Tokens) -> "PhraseEncoder":
        """Learn from a bank's texts which phrases are rare and therefore telling."""
        found = np.zeros(BUCKETS, dtype=np.int64)
        runs, bounds = hash_runs(tokens.ids, tokens.starts, LONGEST_PHRASE, BUCKETS)
        count_texts(runs, bounds, found)
        rarity = 1 + np.log((1 + len(tokens)) / (1 + found))
        return cls(np.where(found < FEWEST_TEXTS, 0, rarity).astype(np.float32))

    def encode(self, tokens: Tokens) -> sparse.csr_array:
        """Each text's weighted phrases, scaled to length one: (texts, buckets) sparse float32."""
        parts = [
            self._weigh(tokens.take(np.arange(at, min(at + TEXTS_AT_ONCE, len(tokens)))))
            for at in range(0, len(tokens), TEXTS_AT_ONCE)
        ]
        empty = sparse.csr_array((0, len(self.rarity)), dtype=np.float32)
        return sparse.vstack(parts, format="csr") if parts else empty

    def responses(self, tokens: Tokens) -> sparse.csr_array:
        """What a head sees of each text: its row."""
        return self.encode(tokens)

    def _weigh(self, tokens: Tokens) -> sparse.csr_array:
        runs, bounds = hash_runs(tokens.ids, tokens.starts, LONGEST_PHRASE, len(self.rarity))
        shape = (len(tokens), len(self.rarity))
        counts = sparse.csr_array((np.ones(len(runs), dtype=np.float32), runs, bounds), shape=shape)
        counts.sum_duplicates()
        counts.data = (1 + np.log(counts.data)) * self.rarity[counts.indices]
        owners = np.repeat(np.arange(len(tokens)), np.diff(counts.indptr))
        lengths = np.sqrt(np.bincount(owners, weights=counts.data**2, minlength=len(tokens)))
        counts.data = (counts.data / np.maximum(lengths, 1e-9)[owners]).astype(np.float32)
        counts.eliminate_zeros()
        return counts


@numba.njit(cache=True, nogil=True)
def hash_runs(ids: Ints, starts: Ints, longest: int, buckets: int) -> Any:  # pragma: no cover - compiled
    """The hash of every run of 1 to `longest` tokens: buckets (runs,), and the texts' boundaries (texts + 1,)."""
    texts = len(starts) - 1
    runs = np.empty(len(ids) * longest, dtype=np.int32)
    bounds = np.zeros(texts + 1, dtype=np.int64)
    count = 0
    for text in range(texts):
        end = starts[text + 1]
        for first in range(starts[text], end):
            code = np.uint64(14695981039346656037)
            for at in range(first, min(first + longest, end)):
                code = (code ^ np.uint64(ids[at])) * np.uint64(1099511628211)
                mixed = code ^ (code >> np.uint64(29))
                runs[count] = np.int32((mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) % np.uint64(buckets))
                count += 1
        bounds[text + 1] = count
    return runs[:count], bounds
