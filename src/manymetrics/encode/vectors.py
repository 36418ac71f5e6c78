"""Words -> vectors: the fixed tables everything else stands on.

    wordllama    32,000 sub-words, 256 dimensions; nothing is out of vocabulary (the default)
    glove-100d   341,479 words, 100 dimensions; what the paper used
    random       hashed words, random directions; needs nothing but a seed
    a path       a local text file, one word and its numbers a line (GloVe or word2vec text format)

The first two are fetched once into the user's cache (`sources.py`) and checked against their checksums on every load.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from manymetrics.encode.tokens import Tokenizer, Tokens
from manymetrics.errors import DataError, TaskFormatError
from manymetrics.values import Floats

RANDOM = "random"
TABLE_FILE, TOKENIZER_FILE = "vectors.safetensors", "tokenizer.json"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A table of word vectors and the tokenizer that says which rows a text is made of."""

    name: str
    table: Floats  # (vocabulary, dimensions) float32
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        table = self.table if _is_ours(self.table) else np.array(self.table, dtype=np.float32, order="C")
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

    @cached_property
    def fingerprint(self) -> str:
        """A hash of table and tokenizer."""
        digest = hashlib.sha256(self.table.tobytes())
        digest.update(json.dumps(self.tokenizer.as_dict(), sort_keys=True).encode())
        return digest.hexdigest()

    def read(self, texts: Iterable[str]) -> Tokens:
        """Cut texts into rows of the table."""
        return self.tokenizer.read(texts)

    def as_files(self) -> dict[str, bytes]:
        """The vectors as two files, in half precision where that loses nothing."""
        with np.errstate(over="ignore"):
            half = self.table.astype(np.float16)
        table = half if np.array_equal(half.astype(np.float32), self.table) else self.table
        saved = {"name": self.name, **self.tokenizer.as_dict()}
        return {
            TABLE_FILE: save_tensors({"table": table}),
            TOKENIZER_FILE: json.dumps(saved, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        }

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> "WordVectors":
        """The vectors that `as_files` wrote."""
        saved = json.loads(files[TOKENIZER_FILE].decode("utf-8", "surrogatepass"))
        table = load_tensors(files[TABLE_FILE])["table"].astype(np.float32)
        table.flags.writeable = False
        return cls(saved["name"], table, Tokenizer.from_dict(saved))


def _is_ours(table: Floats) -> bool:
    """Whether nobody can change the table, so that it need not be copied."""
    frozen = isinstance(table, np.ndarray) and table.flags.owndata and not table.flags.writeable
    return frozen and table.dtype == np.float32 and table.flags.c_contiguous


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
