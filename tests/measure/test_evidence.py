"""What tells tasks apart beside transfer, on planted tasks: it is added where it agrees, and only there."""

import numpy as np
import pytest

from manymetrics.measure import combine_evidence
from manymetrics.measure.evidence import average_directions, similar_names, similar_texts, standardise
from manymetrics.values import Examples, Task, TaskBank, TransferMatrix
from planted_numbers import StatelessEncoder

MEANINGS = ("east", "north", "west", "south")
FAMILY = np.array([0, 0, 0, 1, 1, 1])
TOGETHER = np.equal.outer(FAMILY, FAMILY)
OFF = ~np.eye(6, dtype=bool)


class Compass(StatelessEncoder, kind="test-compass"):
    """The sum of the directions that a text names."""

    def encode(self, texts):
        ways = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
        rows = [sum((ways[MEANINGS.index(word)] for word in text.split()), np.zeros(2)) for text in texts]
        return np.array(rows, np.float32).reshape(-1, 2)


def bank(*names):
    """Six tasks, their labels called as `names` says of each; the texts of two families point elsewhere."""
    texts = [("east", "north"), ("west", "south")]
    each = enumerate(zip(FAMILY, names, strict=True))
    return TaskBank(tuple(Task(f"t{n}", Examples(texts[family], ("east", name))) for n, (family, name) in each))


BY_FAMILY = bank(*["north"] * 3, *["south"] * 3)


def transfer(signal=1.0, noise=0.3, share=1.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = signal * TOGETHER + noise * rng.standard_normal((6, 6))
    scores[rng.random((6, 6)) > share] = np.nan
    np.fill_diagonal(scores, np.nan)
    return TransferMatrix(tuple(f"t{n}" for n in range(6)), scores, "accuracy")


def test_names_are_alike_by_their_best_matches_both_ways():
    labels = (("east", "north"), ("east", "west"), ("west", "south"))
    tasks = TaskBank(tuple(Task("abc"[n], Examples(("east", "north"), pair)) for n, pair in enumerate(labels)))
    found = similar_names(tasks, Compass())
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(np.diag(found), 1)
    assert found[0, 1] == pytest.approx((0.5 + 0.5) / 2)  # east is there, for north nothing is nearer than 0
    assert found[0, 2] == pytest.approx(0)


def test_texts_are_near_where_they_lie_on_the_same_side_of_all_tasks():
    found = similar_texts(bank(*["north"] * 6), Compass())
    np.testing.assert_allclose(found, np.where(TOGETHER, 1, -1), atol=1e-5)


def test_standardised_scores_are_centred_by_columns_and_rows_and_what_is_unknown_stays_so():
    scores = np.random.default_rng(0).standard_normal((6, 6)) * 5 + np.arange(6)
    scores[1, 3] = np.nan
    found = standardise(scores)
    assert np.argwhere(np.isnan(found)).tolist() == [[1, 3]]
    assert (np.diag(found) == 0).all()
    np.testing.assert_allclose(np.nansum(found, axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(standardise(3 * scores + 7), found)
    assert (standardise(np.full((3, 3), 2.0)) == 0).all()


def contrast(found):
    scores, known = found.scores, np.isfinite(found.scores) & OFF
    return (scores[known & TOGETHER].mean() - scores[known & ~TOGETHER].mean()) / scores[known].std()


def test_evidence_that_agrees_with_transfer_is_added_and_tells_families_apart_better():
    measured = transfer(noise=1.0)
    evidence = combine_evidence(measured, BY_FAMILY, Compass())
    assert evidence.joined.score == "accuracy + names + texts"
    assert contrast(evidence.joined) > contrast(measured) + 0.2
    alone, rest = evidence.parts
    np.testing.assert_array_equal(alone.scores, average_directions(standardise(measured.scores)))
    np.testing.assert_allclose(evidence.joined.scores, alone.scores + rest.scores)


def test_evidence_that_does_not_agree_with_transfer_is_left_out():
    crossing = bank(*["north", "south"] * 3)
    assert combine_evidence(transfer(noise=0.1), crossing, Compass()).joined.score == "accuracy + texts"
    against = transfer(signal=-1.0)
    evidence = combine_evidence(against, BY_FAMILY, Compass())
    assert evidence.joined.score == "accuracy"
    np.testing.assert_array_equal(evidence.joined.scores, average_directions(standardise(against.scores)))
    assert evidence.parts == (against,)


@pytest.mark.filterwarnings("error")
def test_evidence_that_says_the_same_of_all_pairs_is_left_out_without_a_warning():
    same = bank(*["north"] * 5, "north north")
    assert combine_evidence(transfer(), same, Compass()).joined.score == "accuracy + texts"


def test_where_all_tasks_share_their_labels_transfer_decides_alone():
    shared = bank(*["south"] * 6)
    scores = np.where(TOGETHER, 0.9, 0.5) + np.random.default_rng(0).normal(0, 0.1, (6, 6))  # texts would agree with it
    joined = combine_evidence(TransferMatrix(shared.names, scores, "log-likelihood"), shared, Compass()).joined
    assert joined.score == "log-likelihood"
    np.testing.assert_allclose(joined.scores, average_directions(standardise(scores)))


def test_directions_are_averaged_one_that_is_known_stands_for_both_and_other_pairs_stay_unknown():
    scores = np.array([[0.0, 2.0, np.nan], [4.0, 0.0, np.nan], [5.0, np.nan, 0.0]])
    np.testing.assert_array_equal(average_directions(scores), [[0, 3, 5], [3, 0, np.nan], [5, np.nan, 0]])
    measured = transfer(share=0.4)
    joined = combine_evidence(measured, BY_FAMILY, Compass()).joined
    unknown = np.isnan(measured.scores) & np.isnan(measured.scores).T
    assert (np.isnan(joined.scores) == unknown)[OFF].all()
    assert unknown[OFF].any()
