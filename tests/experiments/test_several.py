"""Whether several metrics pay: planted answers, folders made one bank, and the whole command on a tiny encoder."""

import json

import numpy as np
import pytest
from experiments.banks import cap_tasks, join_banks, known_families, read_banks
from experiments.clusterings import FOUND, KNOWN, NONE, ONE, RANDOM, Clustering, random_clustering
from experiments.several import (
    OTHERS,
    OWN,
    ROWS,
    SHOTS,
    TASKS_KNOWN,
    ClusterMetrics,
    score,
    score_metrics,
    several,
)

from manymetrics.collect import write_bank
from manymetrics.encode import ProjectionEncoder, random_vectors
from manymetrics.errors import InputError
from manymetrics.specialize import Metric
from manymetrics.values import Examples, Task, TaskBank


def named(*names, size=6):
    texts = tuple(f"word{number}" for number in range(2 * size))
    return TaskBank(tuple(Task(name, Examples(texts, ("no", "yes") * size)) for name in names))


def folder(place, bank, **entries):
    write_bank(bank, place)
    told = [{"name": task.name, **{key: value[task.name] for key, value in entries.items()}} for task in bank]
    (place / "manifest.json").write_text(json.dumps(told))
    return place


# --- banks and families


def joined(*folders):
    banks = read_banks(folders, train=8, valid=4)
    return join_banks(folders, banks), known_families(folders, banks, "family")


def test_several_folders_are_one_bank_under_their_names(tmp_path):
    one = folder(tmp_path / "one", named("a", "b"), family={"a": "x", "b": "y"})
    two = folder(tmp_path / "two", named("a"))
    bank, families = joined(one, two)
    assert bank.names == ("one-a", "one-b", "two-a")
    assert len(bank["one-a"].train) == 8
    assert families == {"one-a": "x", "one-b": "y", "two-a": "two"}
    assert joined(one)[1] == {"a": "x", "b": "y"}
    stars = folder(tmp_path / "stars", named("books.t2", "books.t5"))
    assert joined(stars)[1] == {"books.t2": "t2", "books.t5": "t5"}, "what stands behind the last dot"
    with pytest.raises(InputError, match=r"names no family of 'a'\. Name one"):
        joined(two)
    with pytest.raises(InputError, match="Two of the folders have one name"):
        joined(one, one)


def test_a_smaller_bank_keeps_every_label_in_its_share():
    labels = ("a",) * 80 + ("b",) * 18 + ("c",) * 2
    examples = Examples(tuple(map(str, range(100))), labels)
    small = cap_tasks(TaskBank((Task("t", examples, examples),)), tasks=1, train=20, valid=10)["t"]
    assert [small.train.labels.count(label) for label in "abc"] == [16, 4, 2]
    assert [small.valid.labels.count(label) for label in "abc"] == [8, 2, 0]
    assert list(map(int, small.train.texts)) == sorted(map(int, small.train.texts))
    assert cap_tasks(TaskBank((Task("t", examples),)), tasks=1, train=100, valid=10)["t"].train == examples
    both = TaskBank((Task("t", examples), Task("u", examples)))
    assert len(cap_tasks(both, tasks=1, train=100, valid=10)) == 1


# --- clusters


def test_random_clusters_have_the_sizes_of_the_known_ones():
    known = Clustering(KNOWN, {f"task {number}": min(number // 3, 2) for number in range(12)})
    drawn = [random_clustering(known, 0, draw) for draw in range(3)]
    for one in drawn:
        assert [len(group) for group in one.groups(known.cluster_of).values()] == [3, 3, 6]
    assert len({tuple(one.cluster_of.values()) for one in drawn}) > 1


# --- scores


def test_every_row_has_the_same_head_in_its_own_sum_of_metrics():
    """Labels that a frozen encoder cannot tell apart are told apart by the encoder of the own cluster."""
    words = random_vectors(rows=512, dimensions=64)
    axis = words.encode(["left"])[0] - words.encode(["right"])[0]
    telling = ProjectionEncoder(words, (50 * np.outer(axis, axis)).astype(np.float32))
    metrics = (
        Metric("word-vectors", "frozen", words, "prototypical", 10.0),
        Metric("projection", "tuned", words, "prototypical", 10.0),
        Metric("cluster-0", "learned", telling, "prototypical", 10.0, ("a",), 0),
        Metric("cluster-1", "learned", words, "prototypical", 10.0, ("b",), 1),
    )
    rng = np.random.default_rng(0)
    other = [f"word{number}" for number in range(30)]

    def examples(count):
        sides = ["left", "right"] * count
        return Examples(tuple(" ".join([*rng.choice(other, 8), side]) for side in sides), tuple(sides))

    problem = Task("new 0", examples(3), test=examples(50))
    clusters = ClusterMetrics(metrics, (4, 7), None)
    own, foreign = (
        score_metrics(metrics, clusters.only(number), problem, names=False)["accuracy"] for number in (4, 7)
    )
    assert own > foreign + 0.1
    shared = score_metrics(metrics[:2], None, problem, names=False)
    unknown = score_metrics(metrics, clusters.only(5), problem, names=False)
    assert unknown == pytest.approx(shared), "a cluster without past tasks"
    assert clusters.from_shots(problem) is None


def planted(own=0.8, other=0.5, families=12):
    """Answers of tasks for which their own cluster's metric is worth more than any other."""
    values = {(NONE, ""): 0.6, (ONE, ""): 0.7, (FOUND, SHOTS): 0.7, (FOUND, OWN): own, (FOUND, OTHERS): other,
              (KNOWN, SHOTS): 0.75, (KNOWN, OWN): own, (KNOWN, OTHERS): other,
              (RANDOM, SHOTS): 0.7, (RANDOM, OWN): other, (RANDOM, OTHERS): other}  # fmt: skip
    names = [f"task {number}" for number in range(2 * families)]
    scores = {row: [{"accuracy": value, "balanced_accuracy": value}] * (2 if row[0] == RANDOM else 1)
              for row, value in values.items()}  # fmt: skip
    return {
        "answers": [dict.fromkeys(names, scores)],
        "families": {name: f"family {place % families}" for place, name in enumerate(names)},
        "sources": {name: name for name in names},
        "agreement": [{"transfer": 0.25, "all evidence": 0.5}],
        "chosen": [],
        "data": "beef" * 16,
        "draws": 2,
        "metrics": "projections",
        "seconds_of_processor": 1.0,
    }


def test_gains_are_over_one_metric_and_own_clusters_are_beside_others():
    found = score(planted())
    rows = {(row["clusters"], row["weights"]): row for row in found["rows"]}
    assert tuple(rows) == ROWS
    assert rows[KNOWN, OWN]["accuracy_gain"] == pytest.approx({"value": 0.1, "low": 0.1, "high": 0.1})
    assert rows[ONE, ""]["accuracy_gain"] is None
    assert rows[KNOWN, OWN]["auc"] is None
    assert found["own_over_others"][KNOWN]["value"] == pytest.approx(0.3)
    assert found["over_random"][KNOWN][SHOTS]["value"] == pytest.approx(0.05)
    assert found["by_draw"] == {SHOTS: pytest.approx([0.7, 0.7]), OWN: pytest.approx([0.5, 0.5])}
    assert (found["over"], score(planted(families=3))["over"]) == ("families", "sources")


# --- the whole


def test_the_whole_command(make_bank, run_whole, tmp_path):
    bank, options = make_bank(6, size=12), ["--folds", "2", "--draws", "2"]
    found, shown = run_whole(several, bank, *options, family=lambda name: name.split("-")[0], own_rate=0.01)
    assert (found["tasks"], found["families"], found["metrics"]) == (12, 2, "projections")
    assert [(row["clusters"], row["weights"]) for row in found["rows"]] == list(ROWS)
    assert [set(fold) for fold in found["chosen"]] == [{TASKS_KNOWN}] * 2
    assert all(0.2 < row["accuracy"]["value"] <= 1 for row in found["rows"])
    assert (tmp_path / "out" / "several-data.json").is_file()
    assert "own cluster's metric over another's" in shown
