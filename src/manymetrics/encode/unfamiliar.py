"""Which share of the words a sentence encoder hardly knows, as in a language that it was not trained on.

WordPiece and the like: a word that is cut in many pieces, or not at all. SentencePiece (unigram): a word that is cut in
many short pieces, or has letters for which there is no piece; where letters are syllables or words, or no spaces stand
between words, as in Chinese, Japanese, Korean and Thai, unknown pieces alone are counted.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from manymetrics.encode.sentence import LETTERS_A_TOKEN, SentenceEncoder

MANY_PIECES = 3  # of a word: the encoder has hardly seen it
SHORT_PIECE = 2.5  # letters a piece on average, in a word that is hardly known
UNFAMILIAR = 0.18  # share of the words; English tasks have at most 0.17, texts in French, Spanish, German more
MULTILINGUAL = "intfloat/multilingual-e5-small"
WORD = re.compile(r"[^\W\d_]+")
# Thai, Lao, Burmese, Khmer; Kana and Han; Hangul
DENSE_SCRIPT = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
Count = tuple[int, int]  # words, and how many of them are unfamiliar


def describe_unfamiliar(encoder: SentenceEncoder, texts: Sequence[str]) -> str | None:
    """One or two sentences where many words are unfamiliar to the encoder; None where few are."""
    share = unfamiliar_share(encoder, texts)
    if share < UNFAMILIAR:
        return None
    message = (
        f"{share:.0%} of the words are unfamiliar to the encoder {encoder.name!r}, as in a language that it does not "
        "know."
    )
    if encoder.name == MULTILINGUAL:
        return message
    return f"{message} {MULTILINGUAL} knows 100 languages: manymetrics encoders get {MULTILINGUAL}"


def unfamiliar_share(encoder: SentenceEncoder, texts: Sequence[str]) -> float:
    """The share of the words of these texts that the encoder hardly knows."""
    tokenizer = encoder.fast_tokenizer
    model = json.loads(encoder.tokenizer)["model"]
    count: Callable[[Any, int | None, str], Count]
    if "unk_id" in model:
        unknown, count = model["unk_id"], _count_unigram
    else:
        unknown, count = tokenizer.token_to_id(model.get("unk_token") or ""), _count_word_pieces
    n_words = n_unfamiliar = 0
    for text in texts:
        letters = text[: encoder.longest * LETTERS_A_TOKEN].encode("utf-8", "replace").decode()
        words, unfamiliar = count(tokenizer, unknown, letters)
        n_words, n_unfamiliar = n_words + words, n_unfamiliar + unfamiliar
    return n_unfamiliar / max(1, n_words)


def _count_word_pieces(tokenizer: Any, unknown: int | None, text: str) -> Count:
    encoding = tokenizer.encode(text)
    pieces = Counter(word for word in encoding.word_ids if word is not None)
    unread = {word for word, token in zip(encoding.word_ids, encoding.ids, strict=True) if token == unknown}
    return len(pieces), sum(count >= MANY_PIECES or word in unread for word, count in pieces.items())


def _count_unigram(tokenizer: Any, unknown: int | None, text: str) -> Count:
    n_words = n_unfamiliar = 0
    for word in WORD.findall(text):
        encoding = tokenizer.encode(word)
        pieces = [piece for piece, added in zip(encoding.ids, encoding.special_tokens_mask, strict=True) if not added]
        n_unknown = pieces.count(unknown)
        if DENSE_SCRIPT.search(word):
            n_words, n_unfamiliar = n_words + len(pieces), n_unfamiliar + n_unknown
        else:
            short = len(pieces) >= MANY_PIECES and len(word) < SHORT_PIECE * len(pieces)
            n_words, n_unfamiliar = n_words + 1, n_unfamiliar + (n_unknown > 0 or short)
    return n_words, n_unfamiliar
