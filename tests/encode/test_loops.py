import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import kernels, loops

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=6)
SEEDS = st.integers(0, 2**32 - 1)


def texts_of(lengths, rng, *, below):
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    return rng.integers(below, size=starts[-1]).astype(np.int32), starts


def assert_same(numpys, compiled):
    for ours, theirs in zip(numpys, compiled, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, strict=True)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([1, 3, 5, 7]), st.integers(1, 3), LENGTHS, SEEDS)
def test_responses_have_the_bits_of_the_compiled_loop(window, groups, lengths, seed):
    rng = np.random.default_rng(seed)
    words, starts = texts_of(lengths, rng, below=12)
    projected = rng.standard_normal((13, groups, window, loops.LANES)).astype(np.float32)
    projected[-1] = 0
    ours = rng.standard_normal((len(lengths), groups * loops.LANES + 9)).astype(np.float32)
    theirs = ours.copy()
    loops.largest_responses(projected, words, starts, ours, 5)
    kernels.largest_responses(projected, words, starts, theirs, 5)
    assert_same([ours], [theirs])


@settings(deadline=None, max_examples=40)
@given(LENGTHS, SEEDS)
def test_means_have_the_bits_of_the_compiled_loop(lengths, seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((12, 7)).astype(np.float32)
    given_ = table, *texts_of(lengths, rng, below=12)
    assert_same([loops.average_rows(*given_)], [kernels.average_rows(*given_)])


@settings(deadline=None, max_examples=40)
@given(LENGTHS, SEEDS, st.sampled_from([1, 2, 3]))
def test_hashed_runs_are_those_of_the_compiled_loop(lengths, seed, longest):
    given_ = *texts_of(lengths, np.random.default_rng(seed), below=2**30), longest, 2**18
    assert_same(loops.hash_runs(*given_), kernels.hash_runs(*given_))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("ab é\U0001f600", max_size=12), min_size=1, max_size=5))
def test_hashed_letters_are_those_of_the_compiled_loop(texts):
    spaced = [f" {' '.join(text.split())} " for text in texts]
    letters = np.array([ord(letter) for text in spaced for letter in text], dtype=np.int64)
    given_ = letters, np.cumsum([0, *map(len, spaced)]).astype(np.int64), 2, 5, 2**18
    assert_same(loops.hash_grams(*given_), kernels.hash_grams(*given_))


def test_a_process_meets_numpy_first_and_the_compiled_loops_once_there_is_more_to_do(monkeypatch):
    monkeypatch.setattr(loops, "COMPILED", "not loaded")
    choose = loops._Choice(10)
    assert [choose(4), choose(6), choose(1), choose(1)] == [loops, loops, kernels, kernels]
    assert loops._Choice(10)(11) is kernels


def test_compiled_loops_that_are_there_are_used():
    assert loops._Choice(10)(1) is kernels


@pytest.mark.parametrize("encoder", ["convolution", "mean", "lexical", "phrases"])
def test_a_few_texts_are_encoded_without_a_compiler(encoder):
    code = f"""
import sys
import numpy as np
from manymetrics.encode import ConvolutionEncoder, LexicalEncoder, MeanEncoder, random_vectors
from manymetrics.encode.phrases import PhraseEncoder
vectors = random_vectors(rows=64, dimensions=6)
made = dict(convolution=lambda: ConvolutionEncoder(vectors.table, np.ones((5, 6, 3), "f4"), np.zeros(3, "f4")),
            mean=lambda: MeanEncoder(vectors.table), lexical=lambda: LexicalEncoder(np.ones(64, "f4")),
            phrases=lambda: PhraseEncoder(np.ones(64, "f4")))[{encoder!r}]()
made.encode(vectors.read(["turn on the lamp", "off"]))
assert "numba" not in sys.modules
made.encode(vectors.read(["turn on the lamp"] * 30_000))
assert "numba" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
