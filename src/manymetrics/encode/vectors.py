"""Texts -> the mean of their word vectors: a static encoder. Nothing in it is learned.

Tables by name, fetched once into the user's cache (`sources.py`): `wordllama` (32,000 sub-words, 256 dimensions;
nothing is out of vocabulary), `glove-100d` (what the paper used); `random` (hashed words, random directions); or the
path of a text file, one word and its numbers a line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from manymetrics.encode.encoder import Encoder, State
from manymetrics.encode.tokens import Tokenizer, Tokens
from manymetrics.errors import DataError, TaskFormatError
from manymetrics.values import Floats, as_texts

RANDOM = "random"


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors(Encoder, kind="word-vectors"):
    """A table of word vectors and its tokenizer; a text's row is the mean of its words' vectors."""

    name: str
    table: Floats  # (vocabulary, dimensions) float32
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        is_frozen = isinstance(self.table, np.ndarray) and self.table.flags.owndata and not self.table.flags.writeable
        table = np.array(self.table, dtype=np.float32, order="C", copy=None if is_frozen else True)
        if table.ndim != 2 or len(table) < self.tokenizer.rows:
            raise DataError(
                f"Word vectors {self.name!r} have shape {table.shape}, but the tokenizer names "
                f"{self.tokenizer.rows} rows. Keep table and tokenizer of the same release together."
            )
        if table.size and not np.isfinite([table.min(), table.max()]).all():  # neither loses sight of a NaN
            raise DataError(f"Word vectors {self.name!r} hold values that are not finite. Fetch them again.")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self.table.shape[1])

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Texts cut into rows of the table."""
        return self.tokenizer.cut(as_texts(texts))

    def encode(self, texts: Sequence[str]) -> Floats:
        """The mean vector of each text: (texts, dimensions) float32."""
        tokens = self.tokens(texts)
        ones, shape = np.ones(len(tokens.ids), np.float32), (len(tokens), len(self.table))
        counts = sparse.csr_array((ones, tokens.ids, tokens.starts), shape=shape)
        shares = (1 / np.maximum(1, np.diff(tokens.starts))).astype(np.float32)  # (texts,)
        return (counts @ self.table) * shares[:, None]  # type: ignore[no-any-return]

    def state(self) -> State:
        """The table, in half precision where that loses nothing, and the tokenizer."""
        with np.errstate(over="ignore"):
            half = self.table.astype(np.float16)
        table = half if np.array_equal(half.astype(np.float32), self.table) else self.table
        return State({"table": table}, {"name": self.name, "tokenizer": self.tokenizer.as_dict()})

    @classmethod
    def from_state(cls, state: State) -> "WordVectors":
        """The vectors that `state` described."""
        table = state.tensors["table"].astype(np.float32)
        table.flags.writeable = False
        return cls(str(state.settings["name"]), table, Tokenizer.from_dict(state.settings["tokenizer"]))


def random_vectors(*, rows: int = 2**15, dimensions: int = 100, seed: int = 0) -> WordVectors:
    """Random directions for hashed words: nothing known about any word beforehand."""
    table = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float16).astype(np.float32)
    table[0] = 0
    return WordVectors(RANDOM, table, Tokenizer("hashed", rows=rows))


def read_vectors_file(path: Path) -> WordVectors:
    """Word vectors from a text file: a word and its numbers on each line, an optional first line with two counts."""
    words: list[str] = []
    rows: list[Floats] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            parts = line.rstrip("\n").rstrip(" ").split(" ")
            if number == 1 and len(parts) == 2:
                continue
            try:
                row = np.array(parts[1:], dtype=np.float32)
            except ValueError:
                row = np.zeros(0, dtype=np.float32)
            if not len(row) or (rows and len(row) != len(rows[0])):
                expected = f"{len(rows[0])} numbers" if rows else "numbers"
                raise TaskFormatError(
                    f"{path}, line {number}: found {len(parts) - 1} fields after the first that are not {expected}. "
                    "Expected a word and its vector, parted by single spaces."
                )
            words.append(parts[0])
            rows.append(row)
    if not rows:
        raise TaskFormatError(f"{path} holds no vectors. Expected a word and its numbers on each line.")
    return from_words(path.stem, words, np.stack(rows))


def from_words(name: str, words: list[str], vectors: Floats) -> WordVectors:
    """A table for whole words, with a row of zeros for the unknown one; of equal words the first counts."""
    vocabulary: dict[str, int] = {}
    for row, word in enumerate(words, start=1):
        vocabulary.setdefault(word.lower(), row)
    table = np.vstack([np.zeros((1, vectors.shape[1]), np.float32), vectors])
    return WordVectors(name, table, Tokenizer("words", vocabulary=vocabulary))
