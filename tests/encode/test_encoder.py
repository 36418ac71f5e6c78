"""What every kind of encoder keeps to, and how encoders are kept and made again."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from scipy import sparse

from manymetrics.encode import (
    CharNgramEncoder,
    ConvolutionEncoder,
    EmbeddedTexts,
    Encoder,
    ProjectionEncoder,
    State,
    WordVectors,
    centroid_of,
    normalize,
    open_encoders,
    pack_encoders,
    random_vectors,
)
from manymetrics.encode.encoder import row_products
from manymetrics.errors import DataError, ModelError

TEXTS = ["turn on the lamp", "lamp", "", "play it again, sam", "É ß \ud800 \x00", "word " * 1000, "!!!"]
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=30)


def convolution(words, *, seed=0, width=6):
    rng = np.random.default_rng(seed)
    filters = rng.standard_normal((3, words.dimensions, width)).astype(np.float32)
    return ConvolutionEncoder(words, filters, rng.standard_normal(width).astype(np.float32))


WORDS = random_vectors(rows=256, dimensions=8)
ENCODERS = {
    "word-vectors": WORDS,
    "convolution": convolution(WORDS),
    "letters": CharNgramEncoder.from_texts(TEXTS, buckets=2**12),
    "projection": ProjectionEncoder(WORDS, np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)),
}
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def rows_of(encoder, texts):
    return dense(encoder.encode(texts))


def kept_and_opened(*encoders):
    """Encoders as a file would bring them back, those they stand on before them; and the place of each."""
    tensors, about, places = pack_encoders(encoders)
    return open_encoders(load(save(tensors)), json.loads(json.dumps(about))), places


@EVERY_ENCODER
def test_a_row_is_made_of_finite_small_floats_for_each_text(encoder):
    rows = encoder.encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), encoder.encode(["a"]).shape[1])
    assert isinstance(rows, np.ndarray) or (sparse.issparse(rows) and rows.format == "csr")
    assert np.isfinite(dense(rows)).all()
    assert dense(rows).any()
    assert encoder.encode(()).shape == (0, rows.shape[1])


@EVERY_ENCODER
@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.sampled_from(TEXTS), ANY_TEXT), min_size=1, max_size=6), st.randoms())
def test_a_texts_row_does_not_depend_on_the_texts_beside_it(encoder, texts, random):
    together, order = rows_of(encoder, texts), list(range(len(texts)))
    random.shuffle(order)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(rows_of(encoder, [texts[row] for row in order]), together[order], atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_allclose(rows_of(encoder, [text])[0], row, atol=1e-5)


@EVERY_ENCODER
def test_an_encoder_comes_back_from_what_is_kept_and_can_be_sent_to_another_process(encoder):
    rows, (opened, places) = dense(encoder.encode(TEXTS)), kept_and_opened(encoder)
    sent = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - as a pool of workers does
    for again in (opened[places[encoder]], sent):
        assert type(again) is type(encoder)
        assert again.fingerprint == encoder.fingerprint
        assert (dense(again.encode(TEXTS)) == rows).all()


def test_the_fingerprint_changes_with_all_that_makes_an_encoder():
    table = WORDS.table.copy()
    table[3, 3] += 1
    different = [
        WORDS,
        WordVectors("another name", WORDS.table, WORDS.tokenizer),
        WordVectors(WORDS.name, table, WORDS.tokenizer),
        convolution(WORDS),
        convolution(WORDS, seed=1),
        CharNgramEncoder(np.ones(4, np.float32)),
    ]
    assert len({encoder.fingerprint for encoder in different}) == len(different)


@pytest.fixture
def vowels(monkeypatch):
    """An encoder of somebody else's, registered for one test: how often a text has each of some letters."""
    monkeypatch.setattr(Encoder, "kinds", dict(Encoder.kinds))

    class Vowels(Encoder, kind="vowels"):
        def __init__(self, letters="aeiou"):
            self.letters, self.asked = letters, 0

        def encode(self, texts):
            self.asked += 1
            return np.array([[text.count(letter) for letter in self.letters] for text in texts], dtype=np.float32)

        def state(self):
            return State(settings={"letters": self.letters})

        @classmethod
        def from_state(cls, state):
            return cls(**state.settings)

    return Vowels


def test_an_encoder_that_could_not_be_opened_again_is_refused(vowels):
    class Unnamed(vowels):
        pass

    told = (
        r"An encoder of type Unnamed cannot be loaded again: it is not a registered kind\. "
        r'Define it as class Unnamed\(Encoder, kind="\.\.\."\) with state and from_state\.'
    )
    with pytest.raises(ModelError, match=told):
        pack_encoders([Unnamed()])
    with pytest.raises(ModelError, match="An encoder of type str cannot be loaded again"):
        pack_encoders(["letters"])


def test_a_kind_that_is_not_defined_here_is_refused(vowels):
    tensors, about, _ = pack_encoders([vowels()])
    del Encoder.kinds["vowels"]
    told = r"There is no encoder of the kind 'vowels' here\. Import the module that defines it, then load again\."
    with pytest.raises(ModelError, match=told):
        open_encoders(tensors, about)


def test_an_encoder_that_gives_back_something_else_is_refused(vowels, monkeypatch):
    tensors, about, _ = pack_encoders([vowels()])
    monkeypatch.setattr(vowels, "from_state", classmethod(lambda cls, state: "aeiou"))
    with pytest.raises(DataError, match="from_state of a vowels encoder gave a value of type str"):
        open_encoders(tensors, about)


def spoiled(encoder, tensor, change):
    """What is kept of an encoder, one of its tensors changed."""
    tensors, about, places = pack_encoders([encoder])
    name = f"{places[encoder]}/{tensor}"
    tensors[name] = change(tensors[name].copy())
    return tensors, about


def put(value):
    def change(tensor):
        tensor.flat[0] = value
        return tensor

    return change


NOT_FINITE, NO_FILTERS = "values that are not finite in the tensor", "do not fit word vectors of 8 dimensions"


@pytest.mark.parametrize(("kind", "tensor", "change", "told"), [
    ("word-vectors", "table", put(np.nan), f"{NOT_FINITE} 'table' of a word-vectors encoder"),
    ("word-vectors", "table", lambda table: table[:9], "the tokenizer names 256 rows"),
    ("convolution", "filters", put(2e9), f"{NOT_FINITE} 'filters' of a convolution encoder"),
    ("convolution", "filters", lambda filters: filters[:, 1:], NO_FILTERS),
    ("convolution", "filters", lambda filters: filters[:0], NO_FILTERS),
    ("convolution", "bias", lambda bias: bias[1:], NO_FILTERS),
    ("letters", "rarity", put(-1), r"hashed runs has shape \(4096,\); expected one number from 0 up a bucket"),
    ("letters", "rarity", lambda rarity: rarity[:0], r"rarity of hashed runs has shape \(0,\)"),
])  # fmt: skip
def test_tensors_that_cannot_be_an_encoders_are_refused(kind, tensor, change, told):
    with pytest.raises(DataError, match=told):
        open_encoders(*spoiled(ENCODERS[kind], tensor, change))


@pytest.mark.parametrize("place", [1, 7, -1, "0", None])
def test_an_encoder_that_stands_on_one_that_does_not_come_before_it_is_refused(place):
    tensors, about, _ = pack_encoders([ENCODERS["convolution"]])
    about[1]["parts"]["words"] = place
    with pytest.raises(DataError, match=f"an encoder uses number {place!r}, which does not come before it"):
        open_encoders(tensors, about)


def test_an_encoder_that_stands_on_another_kind_than_it_must_is_refused():
    state = ENCODERS["convolution"].state()
    with pytest.raises(DataError, match="is over word vectors, and here over an encoder of the kind 'letters'"):
        ConvolutionEncoder.from_state(State(state.tensors, state.settings, {"words": ENCODERS["letters"]}))


def test_each_encoder_is_asked_once_whoever_needs_its_rows(vowels):
    mine, other, features = vowels(), vowels("y"), EmbeddedTexts(["banana", "yes", "eau"])
    assert (mine.asked, other.asked, len(features)) == (0, 0, 3)
    rows = features.rows(mine)
    assert features.rows(mine) is rows
    assert features.rows(mine, unit=True) is features.rows(mine, unit=True)
    np.testing.assert_allclose(features.rows(mine, unit=True), normalize(rows))
    assert features.rows(other).tolist() == [[0], [1], [0]]
    assert (mine.asked, other.asked) == (1, 1)


@pytest.mark.parametrize("kept_as", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_are_scaled_to_length_one_and_zeros_stay(kept_as):
    rows = kept_as(np.array([[3, 4, 0], [0, 0, 0], [0, 0, 1e-4]], dtype=np.float32))
    scaled = normalize(rows)
    np.testing.assert_allclose(dense(scaled), [[0.6, 0.8, 0], [0, 0, 0], [0, 0, 1]], rtol=1e-6)
    assert scaled.dtype == np.float32
    assert sparse.issparse(scaled) == sparse.issparse(rows)
    assert dense(rows)[0].tolist() == [3, 4, 0], "what was given does not change"
    assert normalize(rows[:0]).shape == (0, 3)


@EVERY_ENCODER
def test_a_centre_has_length_one_whatever_the_encoder(encoder):
    found = centroid_of(encoder, TEXTS)
    assert found.shape == encoder.encode(TEXTS).shape[1:]
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)


def test_row_products_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    rows, matrix = (rng.standard_normal(shape).astype(np.float32) for shape in ((50, 64), (64, 64)))
    together = row_products(rows, matrix)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, rows @ matrix, atol=1e-4)
    for size in (1, 2, 7):
        np.testing.assert_array_equal(row_products(rows[:size], matrix), together[:size])
