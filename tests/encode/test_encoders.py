import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import ConvolutionEncoder, LexicalEncoder, MeanEncoder, WordVectors, random_vectors
from manymetrics.encode.encoders import unit_rows
from manymetrics.encode.tokens import Tokenizer

VECTORS = random_vectors(rows=256, dimensions=8)
TEXTS = ["turn on the lamp", "lamp", "", "play it again, sam", "É ß \ud800 \x00", "word " * 10_000, "!!!"]


def encoders():
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, 8, 6)).astype(np.float32)
    return {
        "convolution": ConvolutionEncoder(VECTORS.table, filters, rng.standard_normal(6).astype(np.float32)),
        "mean": MeanEncoder(VECTORS.table),
        "lexical": LexicalEncoder.from_bank(VECTORS.read(TEXTS), buckets=2**12),
    }


ENCODERS = encoders()
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else rows


@EVERY_ENCODER
def test_rows_have_length_one(encoder):
    lengths = np.linalg.norm(dense(encoder.encode(VECTORS.read(TEXTS))), axis=1)
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    assert lengths[[0, 1, 3]] == pytest.approx(1, abs=1e-5)


@EVERY_ENCODER
def test_a_text_has_the_same_vector_in_any_company(encoder):
    together = dense(encoder.encode(VECTORS.read(TEXTS)))
    order = np.random.default_rng(1).permutation(len(TEXTS))
    shuffled = dense(encoder.encode(VECTORS.read([TEXTS[row] for row in order])))
    np.testing.assert_allclose(shuffled, together[order], atol=1e-6)
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(dense(encoder.encode(VECTORS.read([text])))[0], row, atol=1e-6)


@EVERY_ENCODER
def test_many_texts_are_encoded_in_portions_alike(encoder, monkeypatch):
    tokens = VECTORS.read([f"{text} {number}" for number in range(5) for text in TEXTS])
    whole = dense(encoder.encode(tokens))
    monkeypatch.setattr("manymetrics.encode.encoders.TEXTS_AT_ONCE", 4)
    np.testing.assert_allclose(dense(encoder.encode(tokens)), whole, atol=1e-6)


@EVERY_ENCODER
def test_no_texts_are_no_rows(encoder):
    none = encoder.encode(VECTORS.read([]))
    assert none.shape == (0, encoder.encode(VECTORS.read(["a"])).shape[1])


@EVERY_ENCODER
@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_has_a_finite_vector(encoder, text):
    assert np.isfinite(dense(encoder.encode(VECTORS.read([text])))).all()


def test_unit_rows_leave_zeros_alone():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert rows.tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_the_mean_encoder_gives_the_direction_of_the_mean():
    table = np.array([[0, 0], [1, 0], [0, 1]], dtype=np.float32)
    vectors = WordVectors("two", table, Tokenizer("words", vocabulary={"east": 1, "north": 2}))
    rows = MeanEncoder(vectors.table).encode(vectors.read(["east", "north east", "east east unheard", "unheard"]))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(rows, [[1, 0], [half, half], [1, 0], [0, 0]], atol=1e-6)


def test_runs_that_every_text_has_are_the_least_rare():
    lexical = LexicalEncoder.from_bank(VECTORS.read(["abc xyz", "abc", "abc abc"]), buckets=2**16)
    expected = {1 + np.log(4 / 4): "in all", 1 + np.log(4 / 2): "in one", 1 + np.log(4 / 1): "in none"}
    found = np.unique(lexical.rarity)
    np.testing.assert_allclose(found, sorted(expected), rtol=1e-6)
    # " a", " ab", " abc", " abc ", "ab", "abc", "abc ", "bc", "bc ", "c "
    assert (lexical.rarity == found[0]).sum() == 10


def test_counts_are_damped_by_the_logarithm():
    lexical = LexicalEncoder(np.ones(2**16, dtype=np.float32))
    row = lexical.encode(VECTORS.read(["a a a b"]))  # " a", " a ", "a " thrice; " b", " b ", "b " once
    thrice, once = 1 + np.log(3), 1.0
    length = np.sqrt(3 * thrice**2 + 3 * once**2)
    np.testing.assert_allclose(np.sort(row.data), [once / length] * 3 + [thrice / length] * 3, rtol=1e-5)


def test_texts_are_compared_without_regard_to_case_and_spacing():
    lexical = ENCODERS["lexical"]
    one, other = lexical.encode(VECTORS.read(["Turn  ON", "\tturn on\n"])).toarray()
    assert (one == other).all()


def test_texts_that_share_no_runs_are_at_right_angles():
    rows = LexicalEncoder(np.ones(2**18, dtype=np.float32)).encode(VECTORS.read(["lamp", "music", "lamps"]))
    cosines = (rows @ rows.T).toarray()
    assert cosines[0, 1] == 0
    assert 0.5 < cosines[0, 2] < 1
