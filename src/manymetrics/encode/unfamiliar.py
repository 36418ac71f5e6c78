"""Which share of the words a sentence encoder hardly knows, as in a language that it was not trained on.

A word is unfamiliar where it is cut in three pieces or more, or has letters for which there is no piece. SentencePiece
(unigram) cuts long words of languages that it knows, so there pieces must be short as well; and where no spaces stand
between words, as in Chinese, Japanese, Korean and Thai, it is asked for unknown pieces alone.
"""

import json
import re
from collections.abc import Sequence
from typing import cast

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.sentence import LETTERS_A_TOKEN, SentenceEncoder

MANY_PIECES = 3  # of a word: the encoder has hardly seen it
SHORT_PIECE = 2.5  # letters a piece on average, in a word that is hardly known
UNFAMILIAR = 0.18  # share of the words; English tasks have at most 0.17, texts in French, Spanish, German more
MULTILINGUAL = "intfloat/multilingual-e5-small"
WORDS, WORDS_AND_SIGNS = re.compile(r"[^\W\d_]+"), re.compile(r"\w+|[^\w\s]")
# Thai, Lao, Burmese, Khmer; Kana and Han; Hangul
DENSE_SCRIPT = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def describe_unfamiliar(encoder: Encoder, texts: Sequence[str]) -> str | None:
    """One or two sentences where many words are unfamiliar to a sentence encoder; None where few are."""
    if encoder.kind != SentenceEncoder.kind:
        return None
    encoder = cast(SentenceEncoder, encoder)
    share = unfamiliar_share(encoder, texts)
    if share < UNFAMILIAR:
        return None
    of_words = f"{share:.0%} of the words are unfamiliar to the encoder {encoder.name!r}"
    advice = f" {MULTILINGUAL} knows 100 languages: manymetrics encoders get {MULTILINGUAL}"
    return f"{of_words}, as in a language that it does not know.{'' if encoder.name == MULTILINGUAL else advice}"


def unfamiliar_share(encoder: SentenceEncoder, texts: Sequence[str]) -> float:
    """The share of the words of these texts that the encoder hardly knows."""
    model = json.loads(encoder.tokenizer)["model"]
    is_unigram = "unk_id" in model
    unknown = model["unk_id"] if is_unigram else encoder.fast_tokenizer.token_to_id(model.get("unk_token") or "")
    read = [text[: encoder.longest * LETTERS_A_TOKEN].encode("utf-8", "replace").decode() for text in texts]
    words = [word for text in read for word in (WORDS if is_unigram else WORDS_AND_SIGNS).findall(text)]
    pieces = [encoding.ids for encoding in encoder.fast_tokenizer.encode_batch(words, add_special_tokens=False)]
    n_unfamiliar = sum(
        unknown in ids
        or (
            len(ids) >= MANY_PIECES
            and not (is_unigram and (DENSE_SCRIPT.search(word) or len(word) >= SHORT_PIECE * len(ids)))
        )
        for word, ids in zip(words, pieces, strict=True)
    )
    return n_unfamiliar / max(1, len(words))
