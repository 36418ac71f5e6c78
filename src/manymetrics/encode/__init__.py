"""Room 2, text -> vectors: tokens, word vectors, encoders, and the only code that knows neural networks.

What prediction and adaptation need is numpy and compiled loops; torch is loaded by `fitting` alone, for training.
"""

from manymetrics.encode.encoders import ConvolutionEncoder, LexicalEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled, ReadBank, ReadTask, read_bank
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.sources import get_vectors, list_vectors, load_vectors
from manymetrics.encode.tokens import Tokenizer, Tokens
from manymetrics.encode.vectors import WordVectors, random_vectors

__all__ = [
    "Convolution",
    "ConvolutionEncoder",
    "Labelled",
    "LexicalEncoder",
    "MeanEncoder",
    "ReadBank",
    "ReadTask",
    "Tokenizer",
    "Tokens",
    "Training",
    "WordVectors",
    "get_vectors",
    "list_vectors",
    "load_vectors",
    "random_vectors",
    "read_bank",
]
