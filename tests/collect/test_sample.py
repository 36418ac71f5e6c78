"""The sample bank: what is planted in it, and that it does not change."""

from collections import Counter, defaultdict

import pytest

from manymetrics.collect.bank.sample import MAX_WORDS, MIN_WORDS, SHOTS, planted_family, sample_bank, sample_phrases
from manymetrics.errors import DataError

PHRASES = sample_phrases()


@pytest.fixture(scope="module")
def bank():
    return sample_bank(0)


@pytest.fixture(scope="module")
def large_bank():
    return sample_bank(0, tasks=1000)


def size(task):
    return sum(map(len, task.splits))


def families(bank):
    """The names of the tasks of each family; those of None have no family."""
    groups = defaultdict(list)
    for name in bank.names:
        groups[planted_family(name)].append(name)
    return groups


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


def test_tasks_have_usual_sizes_and_targets_a_few_shots_of_each_label(bank):
    past, targets = bank.split_off()
    for task in bank:
        lengths = [len(text.split()) for part in task.splits for text in part.texts]
        assert MIN_WORDS <= min(lengths) <= max(lengths) <= MAX_WORDS
    for task in past:
        shares = [len(split) / size(task) for split in task.splits]
        assert shares == pytest.approx([0.64, 0.16, 0.20], abs=0.08), task.name
    for task in targets:
        assert set(Counter(task.train.labels).values()) == {SHOTS}
        assert (len(task.valid), len(task.test) >= 60) == (0, True)


def test_a_seed_gives_the_same_bank_in_every_version(bank):
    assert bank.fingerprint.startswith("9e2fcbe0762b9c38")  # results on it stay comparable
    assert sample_bank(0, tasks=20).fingerprint.startswith("8d56de48cd1e23ee")
    assert sample_bank(3, tasks=20).fingerprint.startswith("75fadf173dc4405e")


def test_a_larger_bank_contains_the_tasks_of_a_smaller_one_and_has_more_families(bank, large_bank):
    assert all(large_bank[task.name].fingerprint == task.fingerprint for task in bank)
    for whole, n_families, n_tasks, n_others in ((bank, 7, 6, 5), (large_bank, len(PHRASES["domains"]), 60, 8)):
        groups = families(whole)
        assert len(groups.pop(None)) == n_others
        assert (len(groups), min(map(len, groups.values())) >= n_tasks) == (n_families, True)
        targets = whole.split_off()[1].names
        assert {name for name in targets if planted_family(name)} == {f"{family}-new" for family in groups}
        assert all(60 <= size(task) <= 600 and 2 <= len(task.labels) <= 20 for task in whole)


def test_a_task_of_another_bank_has_no_planted_family():
    with pytest.raises(DataError, match=r"'books\.t2' is not from the sample bank\. Its tasks begin with banking, "):
        planted_family("books.t2")


def test_the_family_decides_which_aspect_the_labels_are_values_of(bank):
    for task in bank:
        family = planted_family(task.name)
        if family is None:
            assert set(task.labels) == set(PHRASES["outliers"][task.name.removeprefix("other-")]["labels"])
        elif family == "reviews":
            assert task.labels == ("negative", "positive")
        else:
            assert set(task.labels) <= set(PHRASES["aspects"][PHRASES["domains"][family]["aspect"]])


def test_a_target_has_labels_that_its_family_has_and_others(bank):
    groups = families(bank)
    for family in set(groups) - {None, "reviews"}:
        known = {label for name in groups[family] if not name.endswith("-new") for label in bank[name].labels}
        assert set(bank[f"{family}-new"].labels) - known
        assert set(bank[f"{family}-new"].labels) & known


def test_each_family_has_its_aspect_and_phrases_are_unambiguous_and_do_not_name_their_value():
    assert sorted(domain["aspect"] for domain in PHRASES["domains"].values()) == sorted(PHRASES["aspects"])
    for values in [*PHRASES["aspects"].values(), *(outlier["labels"] for outlier in PHRASES["outliers"].values())]:
        for value, phrases in values.items():
            assert len(set(phrases)) == len(phrases) >= 6
            assert not any(set(value.split("-")) & set(phrase.split()) for phrase in phrases), value
    for values in PHRASES["aspects"].values():
        stock = [phrase for phrases in values.values() for phrase in phrases]
        assert len(set(stock)) == len(stock)
