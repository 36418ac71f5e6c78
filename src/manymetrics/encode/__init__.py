"""Stage 2, texts -> rows: encoders of several kinds, and the only code that knows neural networks.

What prediction and adaptation need is numpy and compiled loops; torch is loaded by `fitting` alone, for training, and
onnxruntime by a sentence encoder when it first encodes.
"""

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import Encoder, Features, State, centre, open_encoders, pack_encoders, unit_rows
from manymetrics.encode.ngrams import LetterEncoder, PhraseEncoder
from manymetrics.encode.projection import ProjectionEncoder
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sentence_sources import (
    describe_encoder,
    get_encoder,
    list_encoders,
    load_encoder,
    tell_foreign,
)
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.sources import get_vectors, list_vectors, load_vectors
from manymetrics.encode.tokens import Tokenizer
from manymetrics.encode.vectors import TunedWords, WordVectors, random_vectors

__all__ = [
    "Convolution",
    "ConvolutionEncoder",
    "Encoder",
    "Features",
    "LetterEncoder",
    "PhraseEncoder",
    "ProjectionEncoder",
    "SentenceEncoder",
    "State",
    "Tokenizer",
    "Training",
    "TunedWords",
    "WordVectors",
    "centre",
    "describe_encoder",
    "get_encoder",
    "get_vectors",
    "list_encoders",
    "list_vectors",
    "load_encoder",
    "load_vectors",
    "open_encoders",
    "pack_encoders",
    "random_vectors",
    "tell_foreign",
    "unit_rows",
]
