"""Whether several metrics pay: planted answers, folders made one bank, and the whole command on a tiny encoder."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.banks import join_banks, known_families, read_banks
from experiments.clusterings import FOUND, KNOWN, NONE, ONE, RANDOM, Clustering, random_clustering
from experiments.intervals import over_groups
from experiments.problems import assign_to_folds
from experiments.several import (
    OTHERS,
    OWN,
    SHOTS,
    TASKS_KNOWN,
    ClusterMetrics,
    run_several,
    score_metrics,
    score_probabilities,
)
from experiments.several_rows import ROWS, score, several

from manymetrics.collect import write_bank
from manymetrics.encode import ProjectionEncoder, random_vectors
from manymetrics.errors import InputError
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.values import Examples, Task, TaskBank
from tiny_sentence import asked_of


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
    with pytest.raises(InputError, match=r"names no family of 'a'\. Name one"):
        joined(two)
    with pytest.raises(InputError, match="Two of the folders have one name"):
        joined(one, one)


def test_what_stands_behind_the_last_dot_is_a_family(tmp_path):
    place = folder(tmp_path / "stars", named("books.t2", "books.t5"))
    assert joined(place)[1] == {"books.t2": "t2", "books.t5": "t5"}


# --- clusters


def test_every_source_is_assigned_to_one_fold(tmp_path):
    bank = named("a", "b", "c", "d", "e")
    folds = assign_to_folds(bank, 2, seed=0)
    assert sorted(name for fold in folds for name in fold) == list(bank.names)
    place = folder(tmp_path / "few", bank, family=dict.fromkeys(bank.names, "x"))
    recipe = Recipe.fast(vectors="random")
    with pytest.raises(InputError, match=r"Found 5 sources to assign to 6 folds\. Ask for fewer folds\."):
        run_several([place], tmp_path / "out", recipe, folds=6)


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


def test_two_labels_have_an_area_under_the_curve_and_three_have_none():
    assert score_probabilities(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1])) == {
        "accuracy": 0.5,
        "balanced_accuracy": 0.5,
        "auc": 1.0,
    }
    assert "auc" not in score_probabilities(np.full((2, 3), 1 / 3), np.array([0, 1]))


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


def test_an_interval_is_over_groups():
    groups = {"a": "one", "b": "one", "c": "two", "d": "two"}
    alike = over_groups({"a": 0.0, "b": 1.0, "c": 0.0, "d": 1.0}, groups)
    assert alike == {"value": 0.5, "low": 0.5, "high": 0.5}, "every group has the same mean"
    apart = over_groups({"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0}, groups)
    assert (apart["low"], apart["high"]) == (0.0, 1.0)
    assert over_groups({}, groups) is None


# --- the whole


def test_the_whole_command(make_bank, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    bank = make_bank(6, size=12)
    folder(tmp_path / "data", bank, family={name: name.split("-")[0] for name in bank.names})
    asked = [
        *asked_of(tmp_path, bank, projection_steps=40, own_steps=20, own_rate=0.01),
        "--folds",
        "2",
        "--draws",
        "2",
    ]
    done = CliRunner().invoke(several, [*asked, "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert (found["tasks"], found["families"], found["metrics"]) == (12, 2, "projections")
    assert [(row["clusters"], row["weights"]) for row in found["rows"]] == list(ROWS)
    assert [set(fold) for fold in found["chosen"]] == [{TASKS_KNOWN}] * 2
    assert all(0.2 < row["accuracy"]["value"] <= 1 for row in found["rows"])
    assert json.loads((tmp_path / "out" / "several-data.json").read_text("utf-8")) == found
    shown = CliRunner().invoke(several, [*asked, "--quiet"], catch_exceptions=False)
    assert "own cluster's metric over another's" in shown.stdout
