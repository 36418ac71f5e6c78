"""Text -> its phrases: runs of one or two tokens, hashed and weighted, for linear classifiers over a bank's labels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from manymetrics.encode.encoders import portions, weighted_rows
from manymetrics.encode.loops import loops_for
from manymetrics.encode.tokens import Tokens
from manymetrics.values import Floats, Ints

LONGEST_PHRASE = 2  # tokens
BUCKETS = 2**20  # more than the phrases that a large bank repeats, so that few share one
FEWEST_TEXTS = 3  # a phrase must occur in, or it says nothing
TEXTS_AT_ONCE = 16_384


@dataclass(frozen=True, eq=False)
class PhraseEncoder:
    """Runs of tokens, hashed, damped by the logarithm and weighted by rarity."""

    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank; 0 for phrases hardly ever seen

    @classmethod
    def from_bank(cls, tokens: Tokens) -> "PhraseEncoder":
        """Learn from a bank's texts which phrases are rare and therefore telling."""
        from manymetrics.encode.kernels import count_texts, hash_runs

        found = np.zeros(BUCKETS, dtype=np.int64)
        runs, bounds = hash_runs(tokens.ids, tokens.starts, LONGEST_PHRASE, BUCKETS)
        count_texts(runs, bounds, found)
        rarity = 1 + np.log((1 + len(tokens)) / (1 + found))
        return cls(np.where(found < FEWEST_TEXTS, 0, rarity).astype(np.float32))

    def encode(self, tokens: Tokens) -> sparse.csr_array:
        """Each text's weighted phrases, scaled to length one: (texts, known phrases) sparse float32."""
        parts = portions(tokens, TEXTS_AT_ONCE)
        rows = weighted_rows((self._runs(part) for part in parts), self.rarity)
        columns = self._columns[rows.indices]
        return sparse.csr_array((rows.data, columns, rows.indptr), shape=(len(tokens), self.width))

    @cached_property
    def width(self) -> int:
        """How many phrases are known: the columns of a text's row."""
        return int(np.count_nonzero(self.rarity))

    @cached_property
    def _columns(self) -> Ints:
        """Where a known phrase stands in a text's row, by its bucket: (buckets,)."""
        return (np.cumsum(self.rarity > 0) - 1).astype(np.int32)

    def responses(self, tokens: Tokens) -> sparse.csr_array:
        """What a head sees of each text: its row."""
        return self.encode(tokens)

    def _runs(self, tokens: Tokens) -> tuple[Ints, Ints]:
        loops = loops_for(len(tokens.ids))
        return loops.hash_runs(tokens.ids, tokens.starts, LONGEST_PHRASE, len(self.rarity))  # type: ignore[no-any-return]
