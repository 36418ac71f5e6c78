"""How far label names divide tasks into groups: planted groups are found, and chance does not make groups."""

import json

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.collect.bank.diversity import group_by_modularity, measure_diversity
from manymetrics.values import Examples, Task

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß"


def task(name, *labels):
    return Task(name, Examples(tuple(f"text {number}" for number in range(len(labels))), labels))


def families(count, size):
    """Tasks of `count` families; two of a family share two of their three labels, two of two families nothing."""
    return [
        task(f"f{family}-{number:02d}", *(f"{word}{LETTERS[family]}" for word in ("colour", "shape")),
             f"only{LETTERS[family]}{LETTERS[number]}")
        for family in range(count)
        for number in range(size)
    ]  # fmt: skip


def test_planted_groups_are_found_and_several_metrics_may_pay():
    diversity = measure_diversity(families(4, 6))
    assert [{name.split("-")[0] for name in group} for group in diversity.groups] == [{"f0"}, {"f1"}, {"f2"}, {"f3"}]
    assert diversity.modularity == pytest.approx(0.75, abs=0.01)  # of four groups of equal size that share nothing
    assert diversity.by_chance < 0.5
    assert diversity.expected == "several"
    assert str(diversity).startswith("The tasks form 4 groups by their label names, modularity 0.75")
    assert str(diversity).endswith("several metrics may pay.")


def test_one_family_is_no_reason_for_several_metrics():
    diversity = measure_diversity(families(1, 24))
    assert diversity.groups[0] == tuple(f"f0-{number:02d}" for number in range(24))
    assert (diversity.modularity, diversity.expected) == (0.0, "one")
    assert str(diversity).endswith("one metric is probably enough.")


def test_tasks_that_share_nothing_or_are_few_give_no_expectation():
    unrelated = [task(f"t{number:02d}", f"a{LETTERS[number]}", f"c{LETTERS[number]}") for number in range(30)]
    diversity = measure_diversity(unrelated)
    assert (diversity.expected, diversity.ungrouped) == ("unclear", 1.0)
    assert str(diversity).endswith("several metrics may pay or not.")
    few = measure_diversity(families(3, 4))
    assert few.expected == "unclear"
    assert str(few).startswith("The tasks to learn from are too few to say how diverse they are: 12 (")
    assert measure_diversity([task("a", "x", "y")]).expected == "unclear"


def test_words_shared_by_chance_give_no_expectation_of_several():
    rng = np.random.default_rng(0)
    words = [LETTERS[number // 10] + LETTERS[number % 10] for number in range(100)]
    diversity = measure_diversity(
        [task(f"t{number:02d}", *rng.choice(words, 3, replace=False).tolist()) for number in range(40)]
    )
    assert diversity.modularity < diversity.by_chance + 0.1
    assert diversity.expected != "several"


def test_shared_labels_give_no_expectation():
    diversity = measure_diversity([task(f"t{number:02d}", "-1", "1") for number in range(30)])
    assert diversity.expected == "unclear"
    assert str(diversity).startswith("All tasks have the same labels")


def test_modularity_is_that_of_the_formula():
    similarity = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    groups, modularity = group_by_modularity(similarity)
    between = similarity - np.eye(3)
    total, degrees, together = between.sum(), between.sum(axis=1), np.equal.outer(groups, groups)
    assert modularity == pytest.approx((together * (between / total - np.outer(degrees, degrees) / total**2)).sum())
    groups, modularity = group_by_modularity(np.eye(3))
    assert (groups.tolist(), modularity) == ([0, 1, 2], 0.0)


def test_only_tasks_to_learn_from_are_used_and_json_has_the_values(tmp_path):
    mm.write_bank(mm.sample_bank(0), tmp_path / "bank")
    diversity = json.loads(json.dumps(mm.inspect_bank(tmp_path / "bank").as_dict()))["diversity"]
    assert (diversity["tasks"], diversity["expected"]) == (48, "several")
    assert sum(len(group) > 2 for group in diversity["groups"]) == 7
    assert diversity["summary"].endswith("several metrics may pay.")
