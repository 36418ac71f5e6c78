"""Sentence encoders that cut texts by SentencePiece, in pieces of any script and without a list of words.

Most of these know many languages. Whether they know the words of a text is told by the pieces: a word that they have
hardly seen is cut in many short ones, or holds letters for which there is none. Where letters are syllables or words,
or no spaces stand between words, as in Chinese, Japanese, Korean and Thai, unknown pieces alone are counted.
"""

import json
import re

from manymetrics.encode.sentence import LETTERS_A_TOKEN, MANY_PIECES, SentenceEncoder
from manymetrics.values import Texts

SHORT = 2.5  # letters a piece on average, in a word that is hardly known
WORD = re.compile(r"[^\W\d_]+")
# Thai, Lao, Burmese, Khmer; Kana and Han; Hangul
DENSE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class PieceEncoder(SentenceEncoder, kind="pieces"):
    """A sentence encoder whose tokenizer is a unigram model of pieces."""

    def foreign_share(self, texts: Texts) -> float:
        """The share of words that the encoder hardly knows: cut in many short pieces, or with letters unknown to it."""
        unknown = json.loads(self.tokenizer)["model"]["unk_id"]
        words = foreign = 0
        for word in (word for text in texts for word in WORD.findall(text[: self.longest * LETTERS_A_TOKEN])):
            read = self._read(word)
            pieces = [piece for piece, added in zip(read.ids, read.special_tokens_mask, strict=True) if not added]
            strange = pieces.count(unknown)
            if DENSE.search(word):
                words, foreign = words + len(pieces), foreign + strange
            else:
                short = len(pieces) >= MANY_PIECES and len(word) < SHORT * len(pieces)
                words, foreign = words + 1, foreign + (strange > 0 or short)
        return foreign / max(1, words)


def encoder_class(tokenizer: str) -> type[SentenceEncoder]:
    """The class of an encoder with that tokenizer.json; what is wrong with the file is told by its encoder."""
    try:
        return PieceEncoder if "unk_id" in json.loads(tokenizer)["model"] else SentenceEncoder
    except (ValueError, KeyError, TypeError):
        return SentenceEncoder
