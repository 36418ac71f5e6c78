import numpy as np

from manymetrics.encode import random_vectors
from manymetrics.encode.kernels import hash_runs
from manymetrics.encode.phrases import BUCKETS, PhraseEncoder

VECTORS = random_vectors(rows=512, dimensions=4)


def test_every_run_of_one_or_two_tokens_is_hashed_and_runs_do_not_cross_texts():
    ids, starts = np.array([7, 8, 7, 8, 9], np.int32), np.array([0, 2, 5])
    runs, bounds = hash_runs(ids, starts, 2, 2**18)
    assert bounds.tolist() == [0, 3, 8]
    assert set(runs[:3]) <= set(runs[3:])  # "7", "7 8", "8" occur in the second text as well
    assert len(set(runs)) == 5


def test_rows_have_length_one_and_phrases_hardly_ever_seen_do_not_count():
    common, rare = VECTORS.read(["good tea"] * 5), VECTORS.read(["strange tea"])
    encoder = PhraseEncoder.from_bank(common)
    assert encoder.encode(common).nnz == 5 * 3
    row = encoder.encode(rare)
    assert row.nnz == 1  # "tea" alone
    np.testing.assert_allclose(row.data, 1)
    assert encoder.encode(VECTORS.read(["nothing known"])).nnz == 0
    assert encoder.encode(VECTORS.read([])).shape[0] == 0


def test_a_row_has_a_column_for_each_phrase_that_is_known():
    encoder = PhraseEncoder.from_bank(VECTORS.read(["good tea"] * 5 + ["strange tea"] * 2))
    rows = encoder.encode(VECTORS.read(["good tea", "tea", "good"]))
    assert encoder.width == 3  # "good", "tea", "good tea"
    assert rows.shape == (3, 3)
    assert (rows[[0]].toarray() > 0).all()
    assert rows[[1]].indices != rows[[2]].indices


def test_few_of_many_phrases_share_a_bucket():
    ids = np.arange(50_000, dtype=np.int32)
    runs, _ = hash_runs(ids, np.array([0, len(ids)]), 2, BUCKETS)
    assert len(np.unique(runs)) > 0.95 * len(runs)


def test_a_text_is_encoded_the_same_whatever_stands_beside_it():
    texts = [f"word{n} word{n + 1} word{n % 3}" for n in range(50)]
    encoder = PhraseEncoder.from_bank(VECTORS.read(texts * 3))
    together = encoder.encode(VECTORS.read(texts))
    alone = encoder.encode(VECTORS.read(texts[17:18]))
    assert (together[[17]] != alone).nnz == 0
