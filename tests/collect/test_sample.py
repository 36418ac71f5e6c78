"""The sample bank: what is planted in it, and that it stays put."""

from collections import Counter, defaultdict
from itertools import combinations

import pytest

from manymetrics.collect.sample import LONGEST, SHORTEST, SHOTS, planted_family, sample_bank, sample_phrases
from manymetrics.errors import DataError
from manymetrics.values import META_TRAIN, TARGET


@pytest.fixture(scope="module")
def bank():
    return sample_bank(0)


@pytest.fixture(scope="module")
def large_bank():
    return sample_bank(0, tasks=1000)


def past(bank):
    return [task for task in bank if bank.role(task.name) == META_TRAIN]


def targets(bank):
    return [task for task in bank if bank.role(task.name) == TARGET]


def size(task):
    return len(task.train) + len(task.valid) + len(task.test)


def families(bank):
    """The names of the tasks of each family."""
    groups = defaultdict(list)
    for name in bank.names:
        groups[planted_family(name)].append(name)
    del groups[None]
    return groups


def words(tasks):
    return {word.strip(",") for task in tasks for text in task.train.texts for word in text.split()}


PHRASES = sample_phrases()
KNOWN_WORDS = {
    word
    for phrases in [
        *(phrases for values in PHRASES.aspects.values() for phrases in values.values()),
        *(phrases for outlier in PHRASES.outliers.values() for phrases in (*outlier.labels.values(), outlier.asides)),
        *(phrases for domain in PHRASES.domains.values() for phrases in (domain.things, domain.asides)),
        *(PHRASES.bare_frames, PHRASES.fillers, PHRASES.frames, PHRASES.greetings),
    ]
    for phrase in phrases
    for word in phrase.split()
}


def typed_well(text):
    return all(word.strip(",") in KNOWN_WORDS for word in text.split())


def test_there_are_48_tasks_to_learn_from_and_8_targets(bank):
    assert len(past(bank)) == 48
    assert len(targets(bank)) == 8
    assert set(bank.roles) == set(bank.names)


def test_as_many_tasks_are_made_as_asked_for():
    for tasks in (16, 17, 95, 96):
        assert len(past(sample_bank(3, tasks=tasks))) == tasks


def test_too_few_tasks_are_refused_with_the_smallest_number():
    with pytest.raises(DataError, match=r"bank of 15 tasks.*at least 16"):
        sample_bank(tasks=15)


def test_names_are_sorted_and_begin_with_their_family(bank):
    assert list(bank.names) == sorted(bank.names)
    assert {"banking-01", "banking-new", "other-poem-moods", "other-sailing-log"} <= set(bank.names)


def test_sizes_and_numbers_of_labels_stay_within_their_bounds(bank):
    for task in bank:
        assert 60 <= size(task) <= 600, task.name
        assert 2 <= len(task.labels) <= 20, task.name
    assert 12_000 <= sum(map(size, bank)) <= 16_000
    assert len({len(task.labels) for task in bank}) >= 8


def test_past_tasks_are_split_about_64_16_20(bank):
    for task in past(bank):
        shares = [len(split) / size(task) for split in (task.train, task.valid, task.test)]
        assert shares == pytest.approx([0.64, 0.16, 0.20], abs=0.08), task.name


def test_targets_have_a_few_shots_of_each_label_and_a_test(bank):
    for task in targets(bank):
        assert set(Counter(task.train.labels).values()) == {SHOTS}
        assert len(task.valid) == 0
        assert len(task.test) >= 60


def test_no_label_outweighs_the_others_by_much(bank):
    for task in bank:
        most = max(Counter(task.train.labels).values()) / len(task.train)
        assert most <= 3.2 / len(task.labels), task.name
        assert most <= 0.72, task.name


def test_utterances_are_short_and_not_too_short(bank):
    lengths = [len(text.split()) for task in bank for text in (*task.train.texts, *task.valid.texts, *task.test.texts)]
    assert min(lengths) >= SHORTEST
    assert max(lengths) <= LONGEST


def test_a_seed_makes_the_same_bank_in_every_version_and_another_seed_another(bank):
    assert bank.fingerprint.startswith("9e2fcbe0762b9c38")  # results on it stay comparable
    assert sample_bank(0, tasks=20).fingerprint.startswith("8d56de48cd1e23ee")
    assert sample_bank(3, tasks=20).fingerprint != sample_bank(0, tasks=20).fingerprint


def test_more_tasks_leave_the_others_as_they_are(bank, large_bank):
    larger = {task.name: task.fingerprint for task in large_bank}
    assert all(larger[task.name] == task.fingerprint for task in bank)


def test_every_family_has_several_tasks_and_one_target(bank):
    groups = families(bank)
    assert len(groups) == 7
    for family, names in groups.items():
        assert len(names) >= 6
        assert [name for name in names if bank.role(name) == TARGET] == [f"{family}-new"]


def test_a_few_tasks_belong_to_no_family(bank):
    assert sum(planted_family(task.name) is None for task in past(bank)) == 4
    assert sum(planted_family(task.name) is None for task in targets(bank)) == 1


def test_a_foreign_task_has_no_planted_family():
    with pytest.raises(DataError, match=r"'books\.t2' is not from the sample bank\. Its tasks begin with banking, "):
        planted_family("books.t2")


def test_the_family_decides_which_aspect_the_labels_are_values_of(bank):
    for task in bank:
        family = planted_family(task.name)
        if family is None:
            assert set(task.labels) == set(PHRASES.outliers[task.name.removeprefix("other-")].labels)
        elif family == "reviews":
            assert task.labels == ("negative", "positive")
        else:
            assert set(task.labels) <= set(PHRASES.aspects[PHRASES.domains[family].aspect])


def test_tasks_of_a_family_share_some_labels_but_not_all(bank):
    for family, names in families(bank).items():
        if family != "reviews":
            label_sets = {bank[name].labels for name in names}
            assert len(label_sets) > 1
            assert any(set(one) & set(other) for one, other in combinations(label_sets, 2))


def test_a_target_has_labels_its_family_never_had_and_labels_it_had(bank):
    for family, names in families(bank).items():
        if family != "reviews":
            had = {label for name in names if bank.role(name) == META_TRAIN for label in bank[name].labels}
            assert set(bank[f"{family}-new"].labels) - had
            assert set(bank[f"{family}-new"].labels) & had


def test_no_two_families_are_decided_by_the_same_aspect():
    aspects = [domain.aspect for domain in PHRASES.domains.values()]
    assert sorted(aspects) == sorted(PHRASES.aspects)


def test_every_value_has_many_phrases_and_none_holds_its_name():
    for values in [*PHRASES.aspects.values(), *(outlier.labels for outlier in PHRASES.outliers.values())]:
        for value, phrases in values.items():
            assert len(set(phrases)) == len(phrases) >= 6
            assert not any(set(value.split("-")) & set(phrase.split()) for phrase in phrases), value


def test_no_phrase_means_two_values_of_one_aspect():
    for values in PHRASES.aspects.values():
        stock = [phrase for phrases in values.values() for phrase in phrases]
        assert len(set(stock)) == len(stock)


def test_families_share_most_of_their_words_and_outliers_few(bank):
    groups = {family: words(bank[name] for name in names) for family, names in families(bank).items()}
    for one, other in combinations(groups.values(), 2):
        assert len(one & other) / min(len(one), len(other)) > 0.4
    everyday = set().union(*groups.values())
    strange = words(task for task in bank if planted_family(task.name) is None)
    assert len(strange & everyday) / len(strange) < 0.6


def test_a_few_labels_in_train_are_wrong_and_none_in_test(bank):
    wrong = {"train": 0, "test": 0}
    total = Counter()
    for task in past(bank):
        family = planted_family(task.name)
        if family in (None, "reviews"):
            continue
        values = PHRASES.aspects[PHRASES.domains[family].aspect]
        for split in wrong:
            examples = getattr(task, split)
            for text, label in zip(examples.texts, examples.labels, strict=True):
                if not typed_well(text):
                    continue
                total[split] += 1
                wrong[split] += not any(f" {phrase} " in f" {text.replace(',', '')} " for phrase in values[label])
    assert 0.01 < wrong["train"] / total["train"] < 0.06
    assert wrong["test"] / total["test"] < 0.003  # slips that make another word: "no" typed as "on"


def test_some_utterances_have_typos(bank):
    texts = [text for name in families(bank)["travel"] for text in bank[name].train.texts]
    slips = sum(not typed_well(text) for text in texts) / len(texts)
    assert 0.05 < slips < 0.4


def test_a_thousand_tasks_have_more_families_of_the_same_kind(large_bank):
    groups = families(large_bank)
    assert set(groups) == set(PHRASES.domains)
    assert min(map(len, groups.values())) >= 60
    assert all(60 <= size(task) <= 600 and 2 <= len(task.labels) <= 20 for task in large_bank)
    assert len(targets(large_bank)) == 15
    assert sum(planted_family(task.name) is None for task in past(large_bank)) == 7
