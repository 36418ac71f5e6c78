"""Clusters and routes against families, on planted matrices, and the whole command on an encoder of a few bytes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.families import families, rand, read_families, told_apart, wrong_pairs

from manymetrics.collect import write_bank
from manymetrics.errors import InputError
from manymetrics.values import ObservedPairs, Similarity, TaskBank
from tiny_sentence import asked_of

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


def test_clusters_that_are_the_families_agree_with_them():
    assert rand(similarity(TOGETHER.astype(float)), OWN, None) == 1.0
    crossed = np.equal.outer(np.arange(6) % 2, np.arange(6) % 2).astype(float)
    assert rand(similarity(crossed), OWN, 2) < 0.1


def test_a_manifest_without_families_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps([{"name": "x"}]))
    with pytest.raises(InputError, match=r"names no family of 'x'\. Name one for every task\."):
        read_families(tmp_path, "family")


def test_the_whole_command(make_bank, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    bank = make_bank(6, size=12)
    write_bank(TaskBank(tuple(bank), dict.fromkeys(bank.names[-2:], "target")), tmp_path / "data")
    entries = [
        {"name": name, "family": name.split("-")[0], **({"role": "target"} if name in bank.names[-2:] else {})}
        for name in bank.names
    ]
    (tmp_path / "data" / "manifest.json").write_text(json.dumps(entries))
    asked = [*asked_of(tmp_path, bank, projection_steps=40, own_steps=20, own_rate=0.01), "--seeds", "1"]
    done = CliRunner().invoke(families, [*asked, "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)["seeds"][0]
    assert found["families"] == 2
    assert found["auc"]["all"] > 0.7
    assert set(found["routed"]) == {"names and texts", "texts"}
    shown = CliRunner().invoke(families, [*asked, "--quiet"], catch_exceptions=False)
    assert "clusters, adjusted Rand" in shown.stdout
