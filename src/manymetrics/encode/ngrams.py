"""Texts -> their runs of letters or of tokens, hashed, damped by the logarithm and weighted by rarity in the bank.

LetterEncoder   runs of two to five letters within words; needs no vocabulary
PhraseEncoder   runs of one or two tokens, for linear classifiers over a bank's shared labels
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from manymetrics.encode.encoder import Encoder, State, unit_rows
from manymetrics.encode.tokens import LONGEST_TEXT, Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import DataError
from manymetrics.values import Bools, Floats, Ints, Texts

SHORTEST_RUN, LONGEST_RUN = 2, 5  # letters
LETTER_BUCKETS = 2**18
LETTER_TEXTS_AT_ONCE = 4096
LONGEST_PHRASE = 2  # tokens
PHRASE_BUCKETS = 2**20  # more than the phrases that a large bank repeats, so that few share one
FEWEST_TEXTS = 3  # a phrase must occur in, or it says nothing
PHRASE_TEXTS_AT_ONCE = 16_384
WORD = re.compile(r"\w+|[^\w\s]")
SPACE = 32
BASIS, PRIME, SPREAD = 14695981039346656037, 1099511628211, 0x9E3779B97F4A7C15  # of hashes: FNV-1a, the golden ratio


@dataclass(frozen=True, eq=False)
class LetterEncoder(Encoder, kind="letters"):
    """Runs of two to five letters within words."""

    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank

    def __post_init__(self) -> None:
        _check_rarity(self.rarity)

    @classmethod
    def from_texts(cls, texts: Texts, *, buckets: int = LETTER_BUCKETS) -> "LetterEncoder":
        """Learn from a bank's texts which letter runs are rare and therefore telling."""
        found = _count_texts(_letter_runs(texts, buckets), buckets)
        return cls((1 + np.log((1 + len(texts)) / (1 + found))).astype(np.float32))

    def encode(self, texts: Texts) -> sparse.csr_array:
        """Each text's weighted letter runs: (texts, buckets) sparse float32."""
        return _weighted_rows(_letter_runs(texts, len(self.rarity)), self.rarity)

    def state(self) -> State:
        """The rarity of each run."""
        return State({"rarity": self.rarity})

    @classmethod
    def from_state(cls, state: State) -> "LetterEncoder":
        """The encoder that `state` described."""
        return cls(state.tensors["rarity"])


@dataclass(frozen=True, eq=False)
class PhraseEncoder(Encoder, kind="phrases"):
    """Runs of one or two tokens; phrases hardly ever seen in the bank are left out."""

    words: WordVectors | None  # whose tokenizer cuts the texts; None: words and signs, as they stand
    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank; 0 for phrases hardly ever seen

    def __post_init__(self) -> None:
        _check_rarity(self.rarity)

    @classmethod
    def from_texts(cls, words: WordVectors | None, texts: Texts) -> "PhraseEncoder":
        """Learn from a bank's texts which phrases are rare and therefore telling."""
        parts = _cut(words, texts).portions(PHRASE_TEXTS_AT_ONCE)
        found = _count_texts((_phrase_runs(part, PHRASE_BUCKETS) for part in parts), PHRASE_BUCKETS)
        rarity = 1 + np.log((1 + len(texts)) / (1 + found))
        return cls(words, np.where(found < FEWEST_TEXTS, 0, rarity).astype(np.float32))

    def encode(self, texts: Texts) -> sparse.csr_array:
        """Each text's weighted phrases, scaled to length one: (texts, known phrases) sparse float32."""
        tokens = _cut(self.words, texts)
        runs = (_phrase_runs(part, len(self.rarity)) for part in tokens.portions(PHRASE_TEXTS_AT_ONCE))
        rows = unit_rows(_weighted_rows(runs, self.rarity))
        return sparse.csr_array((rows.data, self._columns[rows.indices], rows.indptr), shape=(len(texts), self.width))

    def lengths(self, texts: Texts) -> Ints:
        """How many tokens of each text are read: (texts,)."""
        return np.diff(_cut(self.words, texts).starts) if self.words is None else self.words.lengths(texts)

    @cached_property
    def width(self) -> int:
        """How many phrases are known: the columns of a text's row."""
        return int(np.count_nonzero(self.rarity))

    @cached_property
    def _columns(self) -> Ints:
        """Where a known phrase stands in a text's row, by its bucket: (buckets,)."""
        return (np.cumsum(self.rarity > 0) - 1).astype(np.int32)

    def state(self) -> State:
        """The rarity of each phrase, and the words that phrases are made of."""
        return State({"rarity": self.rarity}, {}, {} if self.words is None else {"words": self.words})

    @classmethod
    def from_state(cls, state: State) -> "PhraseEncoder":
        """The encoder that `state` described."""
        words = state.parts.get("words")
        if words is not None and not isinstance(words, WordVectors):
            raise DataError("phrases stand on something else than word vectors")
        return cls(words, state.tensors["rarity"])


def _cut(words: WordVectors | None, texts: Texts) -> Tokens:
    """The tokens of texts: those of word vectors, or the hashes of words and of single signs, in small letters."""
    if words is not None:
        return words.tokens(texts)
    found: Tokens = texts.remember(("hashed words",), _hash_words)
    return found


def _hash_words(texts: Sequence[str]) -> Tokens:
    known: dict[str, int] = {}
    ids: list[int] = []
    starts = [0]
    for text in texts:
        for word in WORD.findall(text[:LONGEST_TEXT].lower()):
            if word not in known:
                known[word] = zlib.crc32(word.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
            ids.append(known[word])
        starts.append(len(ids))
    return Tokens(np.array(ids, dtype=np.int32), np.array(starts, dtype=np.int64))


def _check_rarity(rarity: Floats) -> None:
    if rarity.ndim != 1 or not len(rarity) or rarity.dtype.kind != "f" or (rarity < 0).any():
        raise DataError(f"The rarity of hashed runs has shape {rarity.shape}; expected one number from 0 up a bucket.")


def _weighted_rows(runs: Iterable[tuple[Ints, Ints]], rarity: Floats) -> sparse.csr_array:
    """Hashed runs -> how often each text has them, damped, times their rarity.

    Each part of `runs` gives buckets and the boundaries of its texts. Rows are (texts, buckets) sparse float32; what
    has no rarity is left out.
    """
    parts = [_weigh(buckets, bounds, rarity) for buckets, bounds in runs]
    return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, len(rarity)), dtype=np.float32)


def _weigh(buckets: Ints, bounds: Ints, rarity: Floats) -> sparse.csr_array:
    ones = np.ones(len(buckets), dtype=np.float32)
    counts = sparse.csr_array((ones, buckets, bounds), shape=(len(bounds) - 1, len(rarity)))
    counts.sum_duplicates()
    counts.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    counts.eliminate_zeros()
    return counts


def _letter_runs(texts: Texts, buckets: int) -> Iterator[tuple[Ints, Ints]]:
    """Hashed letter runs and the boundaries of their texts, some thousand texts at a time."""
    every = tuple(texts)
    for at in range(0, len(every), LETTER_TEXTS_AT_ONCE):
        some = every[at : at + LETTER_TEXTS_AT_ONCE]
        spaced = [f" {' '.join(text[:LONGEST_TEXT].lower().split())} " for text in some]
        starts = np.cumsum([0, *(len(text) for text in spaced)]).astype(np.int64)
        letters = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        codes, inside = _hash_from_each(letters, starts, LONGEST_RUN)  # (letters, LONGEST_RUN) each
        letter = _from_each(letters != SPACE, LONGEST_RUN)
        for length in range(2, LONGEST_RUN):  # a run holds a space only at its ends
            inside[:, length] &= inside[:, length - 1] & letter[length - 1]
        inside[:, : SHORTEST_RUN - 1] = False
        yield (codes[inside] % np.uint64(buckets)).astype(np.int32), _bounds(inside, starts)


def _phrase_runs(tokens: Tokens, buckets: int) -> tuple[Ints, Ints]:
    """The hashes of runs of one or two tokens, and the boundaries of their texts."""
    codes, inside = _hash_from_each(tokens.ids, tokens.starts, LONGEST_PHRASE)  # (tokens, LONGEST_PHRASE) each
    spread = codes[inside] * np.uint64(SPREAD) >> np.uint64(20)
    return (spread % np.uint64(buckets)).astype(np.int32), _bounds(inside, tokens.starts)


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
    """What stands at every place, one place further on, and so forth: `longest` arrays (items,); zeros at the end."""
    padded = np.concatenate([items, np.zeros(longest, dtype=items.dtype)])
    return [padded[ahead : ahead + len(items)] for ahead in range(longest)]


def _bounds(inside: Bools, starts: Ints) -> Ints:
    """Where the runs of each text begin and end: (texts + 1,)."""
    return np.concatenate([[0], np.cumsum(inside.sum(axis=1))])[starts].astype(np.int64)


def _count_texts(runs: Iterable[tuple[Ints, Ints]], buckets: int) -> Ints:
    """In how many texts each bucket occurs: (buckets,)."""
    found = np.zeros(buckets, dtype=np.int64)
    for run, bounds in runs:
        text = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        found += np.bincount(np.unique(text * buckets + run) % buckets, minlength=buckets)
    return found
