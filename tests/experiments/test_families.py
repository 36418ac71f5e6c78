"""Clusters and routes against families, on planted matrices, and the whole command on an encoder of a few bytes."""

import json

import numpy as np
import pytest
from experiments.families import (
    families,
    families_of,
    told_apart,
    wrong_in_one_direction,
    wrong_pairs,
)

from manymetrics.errors import TaskFormatError
from manymetrics.values import ObservedPairs, Similarity, TransferMatrix

OWN = ["a", "a", "a", "b", "b", "b"]
TOGETHER = np.equal.outer(np.array(OWN), np.array(OWN))
NAMES = tuple(f"t{place}" for place in range(6))


def similarity(low_rank):
    return Similarity(NAMES, low_rank, np.zeros((6, 6)), sparsity=0.2, steps=1, gap=0.0)


def test_pairs_are_told_apart_by_their_scores_whatever_the_diagonal_says():
    assert told_apart(TOGETHER.astype(float), TOGETHER) == 1.0
    assert told_apart(-1.0 * TOGETHER, TOGETHER) == 0.0
    assert told_apart(np.where(np.eye(6) > 0, 9.0, 1.0), TOGETHER) == 0.5


def test_wrong_pairs_are_counted_before_the_filter_after_it_and_after_completion():
    alike = np.eye(6, dtype=bool)
    for one, other in ((0, 1), (0, 3)):  # one right, one wrong
        alike[one, other] = alike[other, one] = True
    found = wrong_pairs(ObservedPairs(NAMES, alike, alike), similarity(TOGETHER.astype(float)), TOGETHER)
    assert found == pytest.approx({"before": 18 / 30, "filtered": 0.5, "completed": 0.0, "found": 1.0})


def test_before_the_filter_one_direction_is_enough():
    scores = np.zeros((6, 6))
    scores[1, 0] = scores[3, 0] = 1.0  # to task 0: one of its family, one of the other
    scores[4, 5] = 1.0
    found = wrong_in_one_direction(TransferMatrix(NAMES, scores), 0.5, TOGETHER)
    assert found == pytest.approx(1 / 3)
    assert wrong_in_one_direction(TransferMatrix(NAMES, np.zeros((6, 6))), 0.5, TOGETHER) is None


def test_a_task_without_a_family_is_one_of_its_own_and_a_manifest_without_any_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"tasks": [{"name": "x", "family": "f"}, {"name": "y"}]}))
    assert families_of(tmp_path, ["x", "y", "z"], "family") == {"x": "f", "y": "y", "z": "z"}
    with pytest.raises(TaskFormatError, match=r'names the domain of no task\. Give entries a "domain"\.'):
        families_of(tmp_path, ["x"], "domain")


def test_the_whole_command(make_bank, run_whole):
    bank = make_bank(6, size=12)
    found, shown = run_whole(families, bank, "--seeds", "1", targets=bank.names[-2:], own_rate=0.01,
                             family=lambda name: name.split("-")[0])  # fmt: skip
    assert found["seeds"][0]["families"] == 2
    assert found["seeds"][0]["auc"]["all"] > 0.7
    assert set(found["seeds"][0]["routed"]) == {"names and texts", "texts"}
    assert "clusters, adjusted Rand" in shown
