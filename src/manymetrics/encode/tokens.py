"""Text -> numbers of words: the one way in which texts are cut before anything is learned from them.

Three kinds of tokenizer, one rule each:

    pieces   words parted at white space, each word cut into sub-words by ranked merges (byte-pair encoding);
             a character the vocabulary lacks becomes its bytes, so nothing is out of vocabulary
    words    words and punctuation marks looked up in a vocabulary; the rest is one unknown word
    hashed   the same words, each sent to a row by its hash; needs no vocabulary

Texts are lower-cased and only their first `MAX_TOKENS` tokens are read, in training and in prediction. A text
without any token is one unknown word, so that every text has a vector.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import Ints

MAX_TOKENS = 400  # tokens of a text that are read
MAX_WORD_LETTERS = 48  # characters; a longer run without white space is cut there, which keeps the merges linear
MAX_LETTERS = MAX_TOKENS * MAX_WORD_LETTERS  # letters of a text that any encoder reads
UNKNOWN = 0  # the row of the unknown word
KINDS, FIELDS = ("pieces", "words", "hashed"), ("kind", "vocabulary", "merges", "rows")

_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts cut into tokens: text i holds `ids[starts[i]:starts[i + 1]]`."""

    ids: Ints  # (all tokens,) int32: rows of the table of vectors
    starts: Ints  # (texts + 1,) int64

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def distinct(self) -> tuple[Ints, Ints]:
        """The distinct tokens (words,), and the index of each token's among them (all tokens,)."""
        return np.unique(self.ids, return_inverse=True)

    def take(self, rows: Sequence[int] | Ints) -> "Tokens":
        """The texts at the given places, in that order."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.starts[rows + 1] - self.starts[rows]  # (rows,)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)  # (rows + 1,)
        inside = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)  # (taken tokens,): place within its text
        return Tokens(self.ids[np.repeat(self.starts[rows], lengths) + inside], starts)


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Cuts texts into the rows of a table of word vectors."""

    kind: str
    vocabulary: Mapping[str, int] = field(default_factory=dict)
    merges: Sequence[str] = ()
    rows: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"Found a tokenizer of the kind {self.kind!r}, expected pieces, words or hashed.")
        if not _are_rows(self.vocabulary.values()):
            raise DataError("Found a tokenizer whose words are not numbered from 0 up.")
        if self.kind != "hashed":
            object.__setattr__(self, "rows", 1 + max(self.vocabulary.values(), default=0))
        elif not _are_rows([self.rows]) or self.rows < 2:
            raise DataError(f"Found a tokenizer that hashes words to {self.rows!r} rows, expected two at least.")

    def __getstate__(self) -> dict[str, Any]:
        return self.as_dict()

    def as_dict(self) -> dict[str, Any]:
        """All it takes to make this tokenizer again."""
        return {name: getattr(self, name) for name in FIELDS} | {"merges": list(self.merges)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Tokenizer":
        """The tokenizer that `as_dict` described."""
        return cls(*(saved[name] for name in FIELDS))

    def cut(self, texts: Sequence[str]) -> Tokens:
        """Cut each text into tokens; a word is read once for all texts of a call."""
        lowered = [text[: 2 * MAX_LETTERS].lstrip()[:MAX_LETTERS].lower() for text in texts]
        words = [(text.split() if self.kind == "pieces" else _WORDS.findall(text))[:MAX_TOKENS] for text in lowered]
        known = {word: self._read(word) for word in set(chain.from_iterable(words))}
        each = [[token for word in some for token in known[word]][:MAX_TOKENS] or [UNKNOWN] for some in words]
        starts = np.cumsum([0, *map(len, each)], dtype=np.int64)
        return Tokens(np.fromiter(chain.from_iterable(each), np.int32, count=int(starts[-1])), starts)

    def _read(self, word: str) -> list[int]:
        if self.kind == "words":
            return [self.vocabulary.get(word, UNKNOWN)]
        if self.kind == "hashed":
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            return [1 + int.from_bytes(digest, "big") % (self.rows - 1)]
        marked = "▁" + word.encode("utf-8", "replace").decode()
        chunks = (marked[at : at + MAX_WORD_LETTERS] for at in range(0, len(marked), MAX_WORD_LETTERS))
        return [token.id for chunk in chunks for token in self._byte_pairs.tokenize(chunk)]

    @cached_property
    def _byte_pairs(self) -> Any:
        """The merges in the order in which they were learned; a character that the vocabulary lacks becomes bytes.

        Nothing is cached, so that the time of an answer tells nothing about the texts of other owners.
        """
        from tokenizers.models import BPE

        unknown = next((word for word, row in self.vocabulary.items() if row == UNKNOWN), None)
        merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in self.merges)]
        try:
            return BPE(dict(self.vocabulary), merges, byte_fallback=True, unk_token=unknown, cache_capacity=0)
        except Exception as problem:  # the library has no error of its own
            raise DataError(f"Found a tokenizer whose merges do not fit its vocabulary: {problem}.") from problem


def _are_rows(values: Collection[Any]) -> bool:
    """Whether all values are whole numbers from 0 up; True and False are none."""
    return set(map(type, values)) <= {int} and min(values, default=0) >= 0
