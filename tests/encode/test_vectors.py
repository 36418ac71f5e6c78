import warnings

import numpy as np
import pytest

from manymetrics.encode import Tokenizer, WordVectors, load_vectors, random_vectors
from manymetrics.encode.vectors import from_words, read_vectors_file
from manymetrics.errors import DataError, TaskFormatError


def file(tmp_path, text, name="mine.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def cut(vectors, *texts):
    return vectors.tokens(texts).ids.tolist()


@pytest.mark.parametrize("head", ["", "2 3\n"], ids=["as GloVe writes it", "as word2vec writes it"])
def test_a_text_file_of_vectors_is_read(tmp_path, head):
    vectors = read_vectors_file(file(tmp_path, head + "lamp 1 0.5 -2\nThe 0 1e-1 3 \n"))
    assert vectors.name == "mine"
    assert vectors.dimensions == 3
    np.testing.assert_allclose(vectors.table, [[0, 0, 0], [1, 0.5, -2], [0, 0.1, 3]])
    assert cut(vectors, "the LAMP glows") == [2, 1, 0]


def test_a_path_is_as_good_as_a_name(tmp_path):
    assert load_vectors(str(file(tmp_path, "a 1 2\nb 3 4\n"))).table.shape == (3, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a 1 2\nb 3\n", "line 2: found 1 fields after the first that are not 2 numbers"),
        ("a 1 2\nb 3 4 5\n", "line 2: found 3 fields after the first that are not 2 numbers"),
        ("a 1 2\nb x 4\n", "line 2: found 2 fields"),
        ("a 1 2\n\nb 3 4\n", "line 2: found 0 fields"),
        ("a\t1\t2\n", "line 1: found 0 fields after the first that are not numbers"),
        ("only words here\n", "line 1: found 2 fields"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, line):
    with pytest.raises(TaskFormatError, match=rf"mine\.txt, {line}.*a word and its vector, parted by single spaces"):
        read_vectors_file(file(tmp_path, text))


def test_a_file_without_vectors_is_refused(tmp_path):
    for text in ("", "2 3\n"):
        with pytest.raises(TaskFormatError, match=r"mine\.txt holds no vectors"):
            read_vectors_file(file(tmp_path, text))


def test_whole_words_get_a_row_of_zeros_for_the_unknown_and_the_first_of_equals_counts():
    vectors = from_words("w", ["Lamp", "lamp", "on"], np.array([[1.0], [2.0], [3.0]], dtype=np.float32))
    assert vectors.table.ravel().tolist() == [0, 1, 2, 3]
    assert cut(vectors, "LAMP on fire") == [1, 3, 0]


def test_random_vectors_are_the_same_every_time():
    one, same, other = (random_vectors(rows=16, dimensions=4, seed=seed) for seed in (0, 0, 1))
    assert (one.table == same.table).all()
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert not one.table[0].any()
    assert load_vectors("random").dimensions == 100
    assert (one.encode(["a lamp"]) == one.encode(["a lamp"])).all()
    with pytest.raises(DataError, match="Put it in a list"):
        one.encode("a lamp")


@pytest.mark.parametrize(
    ("scale", "kept_as"),
    [(1.0, np.float16), (1 / 3, np.float32), (1e6, np.float32)],
    ids=["half precision is enough", "half is too coarse", "half is too small"],
)
def test_a_table_is_kept_in_half_precision_where_that_loses_nothing(scale, kept_as):
    made = random_vectors(rows=32, dimensions=4)
    vectors = WordVectors("näme", made.table * np.float32(scale), made.tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = vectors.state()
    again = WordVectors.from_state(state)
    assert state.tensors["table"].dtype == kept_as
    assert again.name == "näme"
    assert again.table.dtype == np.float32
    assert (again.table == vectors.table).all()
    assert again.fingerprint == vectors.fingerprint


def test_a_table_that_somebody_could_change_is_copied_and_no_other():
    theirs = np.ones((3, 2), dtype=np.float32)
    kept = WordVectors("mine", theirs, Tokenizer("hashed", rows=3))
    theirs[:] = 5
    assert kept.table.max() == 1
    with pytest.raises(ValueError, match="read-only"):
        kept.table[0, 0] = 1
    assert WordVectors("again", kept.table, kept.tokenizer).table is kept.table


def test_one_value_that_is_not_finite_is_enough_to_refuse_a_table():
    for bad in (np.nan, np.inf, -np.inf):
        table = np.ones((3, 2), dtype=np.float32)
        table[1, 1] = bad
        with pytest.raises(DataError, match="'bad' hold values that are not finite"):
            WordVectors("bad", table, Tokenizer("hashed", rows=3))


COMPASS = from_words("compass", ["east", "north"], np.array([[1, 0], [0, 2]], dtype=np.float32))


def test_a_text_is_the_mean_of_its_words():
    rows = COMPASS.encode(["east", "north east", "east east unheard", "unheard"])
    np.testing.assert_allclose(rows, [[1, 0], [0.5, 1], [2 / 3, 0], [0, 0]], rtol=1e-6)
