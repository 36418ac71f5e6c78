"""Stage 2, texts -> rows: encoders of several kinds, and the only code that knows neural networks.

Prediction and adaptation need numpy; torch is loaded by `training` alone, and onnxruntime by a sentence
encoder when it first encodes.
"""

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import (
    EmbeddedTexts,
    Encoder,
    ProjectionEncoder,
    State,
    centroid_of,
    normalize,
    open_encoders,
    pack_encoders,
)
from manymetrics.encode.low_rank import LowRankRepresentation
from manymetrics.encode.ngrams import CharNgramEncoder
from manymetrics.encode.projection import ProjectionRepresentation
from manymetrics.encode.representation import Fitted, Phases, Representation
from manymetrics.encode.runtime.bert import LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder, text_cache_of
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.sources.encoders import describe_encoder, get_encoder, list_encoders, load_encoder
from manymetrics.encode.sources.vectors import get_vectors, list_vectors, load_vectors
from manymetrics.encode.tokens import Tokenizer
from manymetrics.encode.unfamiliar import describe_unfamiliar
from manymetrics.encode.vectors import WordVectors, random_vectors
