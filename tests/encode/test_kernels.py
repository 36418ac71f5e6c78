import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import ConvolutionEncoder, Tokenizer, random_vectors
from manymetrics.encode.kernels import (
    LANES,
    average_rows,
    hash_grams,
    largest_responses,
    pool_windows,
    spread_to_windows,
)

WORDS = random_vectors(rows=64, dimensions=6)


def pooled_by_hand(table, filters, ids, starts):
    """The masked convolution as it is written on paper: zeros around each text, windows centred on its tokens only."""
    window, dimensions, _ = filters.shape
    half = window // 2
    rows = []
    for start, end in itertools.pairwise(starts):
        around = np.zeros((half, dimensions))
        padded = np.vstack([around, table[ids[start:end]], around]).astype(np.float64)
        responses = [np.einsum("td,tdw->w", padded[at : at + window], filters) for at in range(end - start)]
        rows.append(np.max(responses, axis=0))
    return np.array(rows)


def responses(projected, words, starts, bias):
    """What `largest_responses` writes; filters in whole groups, the last tap first, a row for what is outside."""
    vocabulary, window, width = projected.shape
    groups = -(-width // LANES)
    wide = np.zeros((vocabulary + 1, window, groups * LANES), dtype=np.float32)
    wide[:-1, :, :width] = projected[:, ::-1]
    grouped = wide.reshape(vocabulary + 1, window, groups, LANES).swapaxes(1, 2).copy()
    best = np.full((len(starts) - 1, groups * LANES + 2), 7, dtype=np.float32)
    best[:, 1 : 1 + width] = bias
    largest_responses(grouped, words, starts, best, 1)
    assert (best[:, [0, -1]] == 7).all()
    return best[:, 1 : 1 + width]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([1, 3, 5, 7]), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_both_kernels_are_the_masked_convolution_written_by_hand(window, lengths, seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((12, 4)).astype(np.float32)
    filters = rng.standard_normal((window, 4, 5)).astype(np.float32)
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    ids = rng.integers(12, size=starts[-1]).astype(np.int32)
    projected = np.einsum("vd,tdw->vtw", table, filters).astype(np.float32)
    best, where = pool_windows(projected, ids, starts)
    by_hand = pooled_by_hand(table, filters, ids, starts)
    np.testing.assert_allclose(best, by_hand, atol=1e-5)
    bias = rng.standard_normal(5).astype(np.float32)
    ramp = responses(projected, ids, starts, bias)
    np.testing.assert_allclose(ramp, np.maximum(by_hand + bias, 0), atol=1e-5)
    assert (where >= starts[:-1, None]).all()
    assert (where < starts[1:, None]).all()


def test_a_response_below_zero_everywhere_is_not_lifted_by_padding():
    projected = np.full((1, 3, 2), -1.0, dtype=np.float32)
    words, starts = np.zeros(3, np.int32), np.array([0, 3])
    expected = [[-2.0, -2.0]]  # the window at either end sees two tokens, none sees fewer
    assert pool_windows(projected, words, starts)[0].tolist() == expected
    assert responses(projected, words, starts, np.full(2, 3, np.float32)).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("width", [1, 15, 16, 17, 200])
def test_every_width_is_summed_to_its_last_filter(width):
    rng = np.random.default_rng(width)
    projected = rng.standard_normal((9, 5, width)).astype(np.float32)
    words, starts = rng.integers(9, size=30).astype(np.int32), np.array([0, 1, 3, 10, 30])
    best, _ = pool_windows(projected, words, starts)
    found = responses(projected, words, starts, np.zeros(width, np.float32))
    np.testing.assert_allclose(found, np.maximum(best, 0), atol=1e-5)


def test_the_gradient_goes_to_the_winning_window_and_nowhere_else():
    projected = np.array([[[0.0]], [[3.0]], [[1.0]]], dtype=np.float32)  # (words, window 1, width 1)
    ids, starts = np.array([0, 1, 2, 1], np.int32), np.array([0, 4])
    _, where = pool_windows(projected, ids, starts)
    gradient = spread_to_windows(np.array([[2.5]], np.float32), where, ids, starts, projected.shape)
    assert gradient.ravel().tolist() == [0.0, 2.5, 0.0]


def test_means_are_of_each_text_alone():
    table = np.array([[0, 0], [2, 0], [0, 4]], dtype=np.float32)
    means = average_rows(table, np.array([1, 2, 0, 2], np.int32), np.array([0, 2, 4]))
    assert means.tolist() == [[1, 2], [0, 2]]


def runs(*texts):
    """The letter runs of each text, through hashes too wide to collide."""
    spaced = [f" {text} " for text in texts]
    letters = np.array([ord(letter) for text in spaced for letter in text], dtype=np.int64)
    starts = np.cumsum([0, *map(len, spaced)]).astype(np.int64)
    grams, bounds = hash_grams(letters, starts, 2, 5, 2**30)
    return [grams[a:b].tolist() for a, b in itertools.pairwise(bounds)]


def test_a_word_of_two_letters_has_six_runs():
    (found,) = runs("ab")  # " a", " ab", " ab ", "ab", "ab ", "b "
    assert len(found) == len(set(found)) == 6


def test_runs_stay_within_words():
    both, first, second = runs("ab cd", "ab", "cd")
    assert sorted(both) == sorted(first + second)


def test_runs_stay_within_texts():
    alone = [runs(text)[0] for text in ("lamp", "", "on")]
    assert runs("lamp", "", "on") == alone


def test_an_even_window_is_refused():
    with pytest.raises(ValueError, match=r"Filters of shape \(2, 6, 3\).*Load the encoder with the vectors"):
        ConvolutionEncoder(WORDS.table, np.zeros((2, 6, 3), "f4"), np.zeros(3, "f4"))


def test_filters_of_other_vectors_are_refused():
    with pytest.raises(ValueError, match="do not fit word vectors of 6 dimensions"):
        ConvolutionEncoder(WORDS.table, np.zeros((3, 5, 3), "f4"), np.zeros(3, "f4"))
    with pytest.raises(ValueError, match=r"with bias \(4,\)"):
        ConvolutionEncoder(WORDS.table, np.zeros((3, 6, 3), "f4"), np.zeros(4, "f4"))


def test_an_encoder_is_the_ramp_of_the_masked_convolution():
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((5, 6, 7)).astype(np.float32)
    bias = rng.standard_normal(7).astype(np.float32)
    tokens = Tokenizer("hashed", rows=64).read(["one two three", "four", "", "five " * 30])
    by_hand = pooled_by_hand(WORDS.table, filters, tokens.ids, tokens.starts)
    found = ConvolutionEncoder(WORDS.table, filters, bias).responses(tokens)
    np.testing.assert_allclose(found, np.maximum(by_hand + bias, 0), atol=1e-5)
