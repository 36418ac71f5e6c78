"""A SentencePiece model of the unigram kind -> the tokenizer.json of the tokenizers library.

Field numbers are those of sentencepiece_model.proto.
"""

import struct
from typing import Any

from manymetrics.encode.messages import fields, text

PIECES, LETTERS = 1, 3  # fields of a model: its pieces, and how letters are written before a text is cut
PIECE, SCORE, KIND = 1, 2, 3  # of a piece
CHARACTERS = 2  # of the letters: which are written as which
UNKNOWN = 2  # the kind of the piece that stands for what no piece is
SPACE = "▁"
BEGIN, END = "<s>", "</s>"


def unigram_tokenizer(model: bytes) -> str:
    """The tokenizer.json that cuts a text as the model does, between the piece of its begin and that of its end."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    told = list(fields(memoryview(model)))
    pieces = [dict(fields(content)) for number, content in told if number == PIECES]
    scores = [(text(piece[PIECE]), _number(piece.get(SCORE))) for piece in pieces]
    unknown = next(place for place, piece in enumerate(pieces) if piece.get(KIND) == UNKNOWN)
    letters = dict(fields(next(content for number, content in told if number == LETTERS)))
    places = {piece: place for place, (piece, _) in enumerate(scores)}
    tokenizer = Tokenizer(models.Unigram(scores, unknown, byte_fallback=False))
    spaces = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    rules = bytes(letters.get(CHARACTERS, b""))  # none: every letter stays as it is
    written = [normalizers.Precompiled(rules)] if rules else []
    tokenizer.normalizer = normalizers.Sequence([*written, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{BEGIN} $A {END}", special_tokens=[(piece, places[piece]) for piece in (BEGIN, END)]
    )
    return tokenizer.to_str()


def _number(content: Any) -> float:
    return 0.0 if content is None else float(struct.unpack("<f", content)[0])
