"""The sample bank: what is planted in it, and that it does not change."""

from collections import Counter

import pytest

from manymetrics.collect.bank.sample import planted_family, sample_bank, sample_phrases
from manymetrics.errors import DataError

PHRASES = sample_phrases()


@pytest.fixture(scope="module")
def bank():
    return sample_bank(0)


def test_a_bank_has_the_requested_number_of_tasks_and_targets(bank):
    past, targets = bank.split_off()
    assert (len(past), len(targets)) == (48, 8)
    assert set(bank.roles) == set(bank.names)
    assert list(bank.names) == sorted(bank.names)
    assert {"banking-01", "banking-new", "other-poem-moods", "other-sailing-log"} <= set(bank.names)
    for tasks in (16, 17, 95, 96):
        assert len(sample_bank(3, tasks=tasks).split_off()[0]) == tasks
    with pytest.raises(DataError, match=r"bank of 15 tasks.*at least 16"):
        sample_bank(tasks=15)


def test_a_seed_gives_the_same_bank_in_every_version(bank):
    assert bank.fingerprint.startswith("9e2fcbe0762b9c38")  # results on it stay comparable
    assert sample_bank(0, tasks=20).fingerprint.startswith("8d56de48cd1e23ee")
    assert sample_bank(3, tasks=20).fingerprint.startswith("75fadf173dc4405e")


def test_a_larger_bank_contains_the_tasks_of_a_smaller_one_and_has_more_families(bank):
    large_bank = sample_bank(0, tasks=1000)
    assert all(large_bank[task.name].fingerprint == task.fingerprint for task in bank)
    for whole, n_families, n_tasks, n_others in ((bank, 7, 6, 5), (large_bank, len(PHRASES["domains"]), 60, 8)):
        groups = Counter(map(planted_family, whole.names))
        assert groups.pop(None) == n_others
        assert (len(groups), min(groups.values()) >= n_tasks) == (n_families, True)
        targets = whole.split_off()[1].names
        assert {name for name in targets if planted_family(name)} == {f"{family}-new" for family in groups}
        assert all(60 <= sum(map(len, task.splits)) <= 600 and 2 <= len(task.labels) <= 20 for task in whole)


def test_a_task_of_another_bank_has_no_planted_family():
    with pytest.raises(DataError, match=r"'books\.t2' is not from the sample bank\. Its tasks begin with banking, "):
        planted_family("books.t2")
