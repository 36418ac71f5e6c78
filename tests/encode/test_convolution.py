import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import ConvolutionEncoder, Tokenizer, WordVectors, kernels, random_vectors
from manymetrics.encode.convolution import largest_responses
from manymetrics.values import Texts

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
    pooled = pooled_by_hand(encoder.words.rows(np.arange(64)), encoder.filters, tokens.ids, tokens.starts)
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
    encoder, texts = random_encoder(window, width, seed), Texts(texts)
    np.testing.assert_allclose(encoder.encode(texts), ramp_by_hand(encoder, texts), atol=1e-5)


def test_filters_that_have_no_room_together_are_applied_one_part_after_the_other(monkeypatch):
    encoder, texts = random_encoder(5, 50), Texts(["one two three", "four", "", "five " * 30])
    monkeypatch.setattr("manymetrics.encode.convolution.PROJECTED_AT_ONCE", 1)
    np.testing.assert_allclose(encoder.encode(texts), ramp_by_hand(encoder, texts), atol=1e-5)


def test_a_response_below_zero_everywhere_is_not_lifted_by_what_is_outside_a_text():
    words = WordVectors("one", np.ones((2, 1), np.float32), Tokenizer("words", vocabulary={"a": 1}))
    encoder = ConvolutionEncoder(words, np.full((3, 1, 2), -1, np.float32), np.full(2, 3, np.float32))
    # the window at either end sees two words, so the largest response is -2, and the bias 3 makes it 1
    assert encoder.encode(Texts(["a a a"])).tolist() == [[1, 1]]


def test_a_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match=r"Filters of shape \(2, 6, 3\).*Load the encoder with the vectors"):
        ConvolutionEncoder(WORDS, np.zeros((2, 6, 3), "f4"), np.zeros(3, "f4"))


def test_filters_of_other_vectors_are_refused():
    with pytest.raises(ValueError, match="do not fit word vectors of 6 dimensions"):
        ConvolutionEncoder(WORDS, np.zeros((3, 5, 3), "f4"), np.zeros(3, "f4"))
    with pytest.raises(ValueError, match=r"with bias \(4,\)"):
        ConvolutionEncoder(WORDS, np.zeros((3, 6, 3), "f4"), np.zeros(4, "f4"))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 7, 16, 40]),
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_the_compiled_loop_gives_the_bits_of_the_one_in_numpy(window, filters, lengths, seed):
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    words = rng.integers(12, size=starts[-1]).astype(np.int32)
    projected = rng.standard_normal((13, window, filters)).astype(np.float32)
    projected[-1] = 0
    numpys = rng.standard_normal((len(lengths), filters + 9)).astype(np.float32)
    compiled = numpys.copy()
    largest_responses(projected, words, starts, numpys, 5)
    kernels.largest_responses(projected, words, starts, compiled, 5)
    np.testing.assert_array_equal(numpys, compiled, strict=True)


def test_a_process_loads_the_compiled_loop_only_once_there_is_much_to_do():
    code = """if True:
        import sys
        import numpy as np
        from manymetrics.encode import ConvolutionEncoder, LetterEncoder, PhraseEncoder, random_vectors
        from manymetrics.values import Texts
        words, rng = random_vectors(rows=64, dimensions=6), np.random.default_rng(0)
        encoder = ConvolutionEncoder(words, rng.standard_normal((5, 6, 3)).astype("f4"), np.zeros(3, "f4"))
        few = encoder.encode(Texts(["turn on the lamp", "off"]))
        assert few.any() and "numba" not in sys.modules
        many = encoder.encode(Texts(["turn on the lamp", "off"] * 30_000))
        assert "numba" in sys.modules
        assert (many[:2] == few).all()
    """
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
