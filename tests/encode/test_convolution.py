import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import ConvolutionEncoder, Tokenizer, WordVectors, random_vectors

WORDS = random_vectors(rows=64, dimensions=6)


def pooled_by_hand(table, filters, ids, starts):
    """The masked convolution as it is written on paper: zeros around each text, windows centred on its tokens only."""
    window, dimensions, _ = filters.shape
    around = np.zeros((window // 2, dimensions))
    rows = []
    for start, end in itertools.pairwise(starts):
        padded = np.vstack([around, table[ids[start:end]], around]).astype(np.float64)
        responses = [np.einsum("td,tdw->w", padded[at : at + window], filters) for at in range(end - start)]
        rows.append(np.max(responses, axis=0))
    return np.array(rows)


def ramp_by_hand(encoder, texts):
    tokens = encoder.words.tokens(texts)
    pooled = pooled_by_hand(encoder.words.table, encoder.filters, tokens.ids, tokens.starts)
    return np.maximum(pooled + encoder.bias, 0)


def random_encoder(window, width, seed=0):
    rng = np.random.default_rng(seed)
    filters = rng.standard_normal((window, WORDS.dimensions, width)).astype(np.float32)
    return ConvolutionEncoder(WORDS, filters, rng.standard_normal(width).astype(np.float32))


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 5, 15, 16, 17, 40]),
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=30).map(" ".join), min_size=1, max_size=5),
    st.integers(0, 99),
)
def test_an_encoder_is_the_ramp_of_the_masked_convolution_written_by_hand(window, width, texts, seed):
    encoder = random_encoder(window, width, seed)
    np.testing.assert_allclose(encoder.encode(texts), ramp_by_hand(encoder, texts), atol=1e-5)


def test_a_response_below_zero_everywhere_is_not_lifted_by_what_is_outside_a_text():
    words = WordVectors("one", np.ones((2, 1), np.float32), Tokenizer("words", vocabulary={"a": 1}))
    encoder = ConvolutionEncoder(words, np.full((3, 1, 2), -1, np.float32), np.full(2, 3, np.float32))
    # the window at either end sees two words, so the largest response is -2, and the bias 3 makes it 1
    assert encoder.encode(["a a a"]).tolist() == [[1, 1]]


def test_a_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match=r"Filters of shape \(2, 6, 3\).*Load the encoder with the vectors"):
        ConvolutionEncoder(WORDS, np.zeros((2, 6, 3), "f4"), np.zeros(3, "f4"))
