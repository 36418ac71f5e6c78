"""How diverse tasks are by what their labels are called: planted groups are found, and chance is not taken for one."""

import json

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.collect.diversity import group_by_modularity, measure_diversity, modularity
from manymetrics.values import Examples, Task

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß"


def task(name, *labels):
    return Task(name, Examples(tuple(f"text {place}" for place in range(len(labels))), labels))


def families(count, size):
    """Tasks of `count` families; two of a family share two of their three labels, two of two families nothing."""
    return [
        task(f"f{family}-{number:02d}", f"colour{LETTERS[family]}", f"shape{LETTERS[family]}",
             f"own{LETTERS[family]}{LETTERS[number]}")
        for family in range(count)
        for number in range(size)
    ]  # fmt: skip


def test_planted_groups_are_found_and_several_metrics_may_pay():
    found = measure_diversity(families(4, 6))
    assert [{name.split("-")[0] for name in group} for group in found.groups] == [{"f0"}, {"f1"}, {"f2"}, {"f3"}]
    assert found.modularity == pytest.approx(0.75, abs=0.01)  # of four groups of one size that share nothing
    assert found.by_chance < 0.5
    assert found.expected == "several"
    assert "fall into 4 groups by what labels are called" in str(found)
    assert str(found).endswith("several metrics may pay.")


def test_one_family_is_no_reason_for_several_metrics():
    found = measure_diversity(families(1, 24))
    assert (found.groups[0], found.modularity) == (tuple(f"f0-{number:02d}" for number in range(24)), 0.0)
    assert found.expected == "one"
    assert str(found).endswith("one metric will probably do.")


def test_tasks_that_share_nothing_or_are_few_give_no_expectation():
    apart = measure_diversity(
        [task(f"t{number:02d}", f"a{LETTERS[number]}", f"c{LETTERS[number]}") for number in range(30)]
    )
    assert (apart.expected, apart.alone) == ("unclear", 1.0)
    assert str(apart).endswith("several metrics may pay or not.")
    few = measure_diversity(families(3, 4))
    assert few.expected == "unclear"
    assert str(few).startswith("The tasks to learn from are too few to say how diverse they are: 12 (")
    assert measure_diversity([task("a", "x", "y")]).expected == "unclear"


def test_words_met_by_chance_make_no_expectation_of_several():
    rng = np.random.default_rng(0)
    words = [LETTERS[place // 10] + LETTERS[place % 10] for place in range(100)]
    tasks = [task(f"t{number:02d}", *rng.choice(words, 3, replace=False).tolist()) for number in range(40)]
    found = measure_diversity(tasks)
    assert found.modularity < found.by_chance + 0.1
    assert found.expected != "several"


def test_shared_labels_say_nothing():
    found = measure_diversity([task(f"t{number:02d}", "-1", "1") for number in range(30)])
    assert found.expected == "unclear"
    assert str(found).startswith("All tasks have the same labels")


def test_modularity_is_that_of_the_formula():
    similar = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    assert modularity(similar, np.array([0, 0, 1])) == pytest.approx(2 / 3 - (2.5**2 + 0.5**2) / 9)
    assert group_by_modularity(np.eye(3)).tolist() == [0, 1, 2]
    assert modularity(np.eye(3), np.arange(3)) == 0.0


def test_only_tasks_to_learn_from_are_asked_and_json_holds_it(tmp_path):
    bank = mm.sample_bank(0)
    mm.write_bank(bank, tmp_path / "bank")
    told = json.loads(json.dumps(mm.inspect_bank(tmp_path / "bank").as_dict()))["diversity"]
    assert (told["tasks"], told["expected"]) == (48, "several")
    families_of = [{name.split("-")[0] for name in group} for group in told["groups"] if len(group) > 2]
    assert len(families_of) == 7
    assert told["said"].endswith("several metrics may pay.")
