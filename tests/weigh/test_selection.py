from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manymetrics.encode import Features, LetterEncoder, WordVectors, random_vectors, unit_rows
from manymetrics.errors import InputError
from manymetrics.measure import Head
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.values import Clusters, Examples, Task, TaskBank, Texts
from manymetrics.weigh import (
    MixSettings,
    answer_likelihood,
    choose_settings,
    choose_unlearned_metrics,
    draw_episodes,
    hold_out_tasks,
)
from manymetrics.weigh.names import enough_evidence, names_speak, say_something
from manymetrics.weigh.pooling import ProblemSize, share_by_group
from manymetrics.weigh.selection import (
    DEFAULT_TEMPERATURE,
    LIKELIHOOD_TEMPERATURES,
    TEMPERATURES,
    AnsweredEpisode,
    answer_episode,
    lift_over_chance,
    tune_settings,
    unlearned,
)
from manymetrics.weigh.settings import NEVER

EPISODES = 4  # of each held-out task
KINDS = ("learned", "learned", "frozen", "lexical")
WORDS = random_vectors(rows=256, dimensions=8)


def clusters(*sizes):
    names = tuple(f"c{cluster}-{number}" for cluster, size in enumerate(sizes) for number in range(size))
    return Clusters(names, np.repeat(np.arange(len(sizes)), sizes))


def hold_out(found, share, seed=0):
    """Of tasks that are each a source of their own."""
    return hold_out_tasks(found, {name: name for name in found.names}, share, seed=seed)


@pytest.fixture(scope="module")
def bank(make_bank):
    return make_bank(4)


# --- which tasks are held out


def test_tasks_of_one_source_are_held_out_together():
    sources = {f"task {number}": "abcdefghij"[number // 2] for number in range(20)}
    held = hold_out_tasks(Clusters(tuple(sources), np.array([0, 1] * 10)), sources, 0.2, seed=0)
    assert len(held) == 4
    assert {name for name in sources if sources[name] in {sources[one] for one in held}} == set(held)


def test_only_clusters_with_tasks_to_spare_lend_some():
    held = hold_out(clusters(3, 4, 10, 1), 0.2)
    assert [sum(name.startswith(f"c{cluster}-") for name in held) for cluster in range(4)] == [0, 1, 2, 0]
    assert held == tuple(sorted(held))


def test_the_same_seed_holds_out_the_same_tasks():
    many = clusters(30)
    assert hold_out(many, 0.2) == hold_out(many, 0.2)
    assert hold_out(many, 0.2) != hold_out(many, 0.2, seed=1)
    assert hold_out(many, 0.0) == ()


@example(size=4, share=0.9, seed=0)
@given(size=st.integers(4, 40), share=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_a_cluster_always_keeps_a_task_to_learn_from(size, share, seed):
    assert 1 <= len(hold_out(clusters(size), share, seed)) < size


@given(st.integers(0, 99))
def test_adding_a_task_changes_at_most_one_lot(seed):
    few, more = (set(hold_out(clusters(size), 0.2, seed)) for size in (20, 21))
    assert len(few - more) <= 1
    assert len(more - few) <= 1


# --- episodes and temperatures


def test_episodes_come_from_held_out_tasks_with_all_the_shots_with_fewer_as_people_pose_them_and_with_one(bank):
    episodes = draw_episodes(bank, ("animal-0", "colour-1"), shots=5, seed=0)
    assert len(episodes) == 2 * EPISODES
    assert [np.bincount(one.support.labels).tolist() for one in episodes[:2]] == [[5] * 3, [3] * 3]
    assert len(episodes[2].support) == 3 + 12  # one of each label, and half of the 24 others
    assert np.bincount(episodes[2].support.labels).min() >= 1
    assert np.bincount(episodes[3].support.labels).tolist() == [1] * 3
    task = bank["animal-0"]
    for one in episodes[:EPISODES]:
        assert (one.task, one.classes, one.names) == ("animal-0", ("bird", "cat", "fish"), ("bird", "cat", "fish"))
        assert {*one.support.texts, *one.query.texts} <= {*task.train.texts, *task.valid.texts}
        assert len(one.support) + len(one.query) == 27


def test_episodes_of_a_task_do_not_depend_on_the_other_tasks(bank):
    alone = draw_episodes(bank, ("colour-1",), shots=2, seed=3)
    among = draw_episodes(bank, ("animal-0", "colour-1"), shots=2, seed=3)[EPISODES:]
    assert len(alone) == EPISODES
    assert [one.support.texts for one in alone] == [one.support.texts for one in among]


def test_a_task_with_many_examples_is_posed_with_many_too(make_bank):
    bank = make_bank(1, size=25)  # and three to validate on
    episodes = draw_episodes(bank, ("animal-0",), shots=5, seed=0)
    assert [np.bincount(one.support.labels).max() for one in episodes[EPISODES:]] == [10, 20]


def joined_bank(tasks, labels):
    """Tasks of as many labels each, some of one name, with two examples for each."""

    def task(number):
        own = [f"label_{number * (labels - 1) + place}" for place in range(labels)]  # neighbours share one label
        texts = [f"{label} said {way}" for label in own for way in ("so", "otherwise")]
        return Task(f"task-{number}", Examples(tuple(texts), tuple(label for label in own for _ in range(2))))

    return TaskBank(tuple(task(number) for number in range(tasks)))


def test_several_tasks_taken_together_give_problems_of_many_labels_with_labels_of_one_name_as_one():
    bank = joined_bank(3, 15)  # 43 labels
    episodes = draw_episodes(bank, bank.names, shots=1, seed=0)[3 * EPISODES :]
    assert [len(one.classes) for one in episodes] == [43, 43]
    for one in episodes:
        assert one.classes == tuple(sorted({label for task in bank for label in task.labels}))
        assert one.names == tuple(label.replace("_", " ") for label in one.classes)
        assert np.bincount(one.support.labels).tolist() == [1] * 43
        told = zip(one.query.texts, one.query.labels.tolist(), strict=True)
        assert all(text.startswith(f"{one.classes[label]} said") for text, label in told)
    few = joined_bank(2, 5)
    assert len(draw_episodes(few, few.names, shots=1, seed=0)) == 2 * EPISODES


def test_a_task_with_nothing_left_to_answer_gives_no_episode():
    lone = TaskBank((Task("lone", Examples(("a", "b"), ("x", "y"))),))
    assert draw_episodes(lone, ("lone",), shots=5, seed=0) == []


def test_every_encoder_gives_a_metric_of_its_name_and_the_letters_one_more(bank):
    episodes, encoders = draw_episodes(bank, ("animal-0",), shots=2, seed=0), {"word-vectors": WORDS, "mine": WORDS}
    metrics = choose_unlearned_metrics(bank, encoders, episodes)
    expected = [("word-vectors", "frozen"), ("mine", "frozen"), ("letters", "lexical")]
    assert [(metric.name, metric.kind) for metric in metrics] == expected
    assert all(metric.temperature in TEMPERATURES for metric in metrics)
    without = choose_unlearned_metrics(bank, encoders, [])
    assert [metric.temperature for metric in without] == [DEFAULT_TEMPERATURE] * 3


def test_a_metrics_temperature_is_the_one_that_makes_right_answers_likeliest(bank):
    episodes = draw_episodes(bank, ("animal-0", "colour-1"), shots=2, seed=0)
    for metric in choose_unlearned_metrics(bank, {"word-vectors": WORDS}, episodes):

        def likelihood(temperature, metric=metric):
            found = []
            for one in episodes:
                tried = replace(metric, temperature=temperature)
                fitted = tried.learn(Features(one.support.texts), one.support.labels, one.classes)
                probabilities = fitted.probabilities(Features(one.query.texts))
                found.append(np.log(probabilities[np.arange(len(probabilities)), one.query.labels]).mean())
            return np.mean(found)

        assert metric.temperature == max(TEMPERATURES, key=likelihood)


def test_metrics_that_learned_from_tasks_are_told_from_those_that_did_not(bank):
    frozen = SimilarityMetric("words", "frozen", WORDS, "prototypical", 9.0)
    learned = replace(frozen, name="first", kind="learned", tasks=("a",))
    assert unlearned([learned, frozen]) == [frozen]
    with pytest.raises(InputError, match=r"No metric of this model is free of other tasks' labels.*Add a metric"):
        unlearned([learned])


# --- how far learned metrics rise above chance


def told(right, *, labels, classes=2, sure=0.9):
    """Probabilities of a metric that is right about the first `right` of the labels and wrong about the others."""
    rows = np.full((len(labels), classes), (1 - sure) / (classes - 1))
    for row, label in enumerate(labels):
        rows[row, label if row < right else (label + 1) % classes] = sure
    return rows


def test_lift_is_one_for_perfect_and_zero_for_guessing():
    labels, learned = np.array([0, 1, 0, 1]), np.array([True])
    found = [lift_over_chance(told(right, labels=labels)[:, None], labels, learned).lift for right in (4, 2, 3, 0)]
    assert found == pytest.approx([1.0, 0.0, 0.5, -1.0])
    four = np.arange(4)
    assert lift_over_chance(told(2, labels=four, classes=4)[:, None], four, learned).lift == pytest.approx(1 / 3)


def test_the_best_learned_metric_counts_and_no_other_kind():
    labels = np.array([0, 1, 0, 1])
    shots = np.stack([told(right, labels=labels) for right in (2, 3, 4)], axis=1)
    assert lift_over_chance(shots, labels, np.array([True, True, False])).lift == pytest.approx(0.5)


def test_where_the_shots_cannot_tell_lift_is_infinite():
    labels = np.array([0, 1])
    assert lift_over_chance(np.full((2, 1, 2), np.nan), labels, np.array([True])).lift == np.inf
    assert lift_over_chance(told(2, labels=labels)[:, None], labels, np.array([False])).lift == np.inf


def test_rows_of_a_labels_only_example_are_skipped():
    labels = np.array([0, 0, 1])
    shots = told(2, labels=labels)[:, None].copy()
    shots[2] = np.nan
    assert lift_over_chance(shots, labels, np.array([True])).lift == 1.0


# --- the settings of the mix


GROUPS = ("learned", "learned", "words", "letters")


def answered(*rights, fallback=0, texts=20, shots=6, clusters=None):
    """An episode on which metric k is right about a share `rights[k]` of shots and of texts."""
    labels, answers = np.arange(shots) % 2, np.arange(texts) % 2
    return AnsweredEpisode(
        KINDS,
        GROUPS,
        (1, 1, 1, 1),
        clusters,
        np.stack([told(right * shots, labels=labels) for right in rights], axis=1),
        labels,
        np.stack([told(right * texts, labels=answers) for right in rights], axis=1),
        told(fallback * texts, labels=answers),
        answers,
    )


def test_without_episodes_the_settings_are_the_default_ones():
    assert tune_settings([]) == MixSettings()


def test_settings_lean_to_the_group_that_answers_best():
    def share(*rights):
        settings = tune_settings([answered(*rights)] * 3)
        assert (settings.exponents, settings.shares) == ({}, {})
        return share_by_group(settings.exponents_without_names, ProblemSize(3, 2))["learned"]

    assert share(1.0, 1.0, 0.5, 0.5) > 0.8
    assert share(0.5, 0.5, 1.0, 1.0) < 0.2


def test_where_members_speak_for_clusters_settings_lean_to_the_kind_that_answers_best():
    trusting, wary = (
        tune_settings([answered(*rights, clusters=np.arange(4))] * 3).shares
        for rights in ((1.0, 1.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0))
    )
    assert trusting["learned"] > 0.9
    assert wary["learned"] < 0.1
    assert sum(wary.values()) == pytest.approx(1, abs=1e-3)


def test_shots_that_mislead_give_a_strong_prior_and_shots_that_tell_a_weak_one():
    honest = answered(1.0, 0.0, 0.5, 0.5)
    misleading = replace(honest, leave_one_out=honest.leave_one_out[:, [1, 0, 2, 3]])
    assert tune_settings([honest] * 3).prior_shots < tune_settings([misleading] * 3).prior_shots


def test_where_members_speak_for_clusters_the_temperature_is_chosen_and_shots_that_mislead_raise_it():
    honest = answered(1.0, 0.0, 0.5, 0.5, clusters=np.arange(4))
    misleading = replace(honest, leave_one_out=honest.leave_one_out[:, [1, 0, 2, 3]])
    trusting, wary = tune_settings([honest] * 3), tune_settings([misleading] * 3)
    assert trusting.likelihood_temperature == min(LIKELIHOOD_TEMPERATURES)
    assert wary.likelihood_temperature == max(LIKELIHOOD_TEMPERATURES)
    assert trusting.prior_shots == wary.prior_shots == MixSettings().prior_shots


def test_falling_back_is_learned_where_the_single_task_model_is_better():
    lost = answered(0.5, 0.5, 0.5, 0.5, fallback=1.0)
    found = answered(1.0, 1.0, 1.0, 1.0, fallback=0.5)
    assert tune_settings([lost, found]).threshold > 0
    assert tune_settings([found]).threshold == NEVER
    assert tune_settings([found], [lost]).threshold > 0


def test_settings_are_chosen_on_the_episodes(bank):
    episodes = draw_episodes(bank, ("animal-0", "colour-1"), shots=2, seed=0)
    frozen = choose_unlearned_metrics(bank, {"word-vectors": WORDS}, episodes)
    blind = WordVectors("blind", np.zeros_like(WORDS.table), WORDS.tokenizer)
    useless = SimilarityMetric("useless", "learned", blind, "prototypical", 10.0, ("animal-1",), 0)
    settings = choose_settings([useless, *frozen], episodes, Clusters(bank.names, np.zeros(len(bank), dtype=int)))
    groups = {"learned", "word-vectors", "letters", "regression"}
    assert set(settings.exponents_without_names) == groups
    assert set(settings.exponents) == groups
    trusting = MixSettings(exponents_without_names={"learned": (0.0, 0.0, 0.0)})
    chosen, other = (answer_likelihood([useless, *frozen], episodes, one) for one in (settings, trusting))
    assert chosen > other


def test_a_held_out_task_is_answered_again_without_the_metrics_of_its_own_cluster(bank, monkeypatch):
    metrics = [
        SimilarityMetric("first", "learned", WORDS, "prototypical", 9.0, ("animal-1",), 0),
        SimilarityMetric("second", "learned", WORDS, "prototypical", 9.0, ("colour-0",) * 2, 1),
        SimilarityMetric("words", "frozen", WORDS, "prototypical", 9.0),
    ]
    episodes = draw_episodes(bank, ("animal-0",), shots=2, seed=0)
    found = Clusters(bank.names, np.array([int(name.startswith("animal")) for name in bank.names]))
    given = []
    monkeypatch.setattr("manymetrics.weigh.selection.tune_settings", lambda *both: given.append(both) or MixSettings())
    choose_settings(metrics, episodes, found)
    ((every, without_own),) = given
    assert [one.sizes for one in every] == [(1, 2, 1, 1)] * EPISODES
    assert [one.sizes for one in without_own] == [(1, 1, 1)] * EPISODES  # the second is of the cluster of animals


def test_an_answered_episode_holds_what_each_member_says_of_shots_and_texts(bank):
    (episode, *_) = draw_episodes(bank, ("animal-0",), shots=2, seed=0)
    metrics = choose_unlearned_metrics(bank, {"word-vectors": WORDS}, [])
    found = answer_episode(metrics, episode)
    assert found.kinds == ("frozen", "lexical", "regression")
    assert found.groups == ("word-vectors", "letters", "regression")
    assert found.leave_one_out.shape == (len(episode.support), 3, 3)
    assert found.probabilities.shape == (len(episode.query), 3, 3)
    assert found.clusters is None
    np.testing.assert_allclose(found.probabilities.sum(axis=2), 1)
    np.testing.assert_allclose(found.fallback.sum(axis=1), 1)


# --- the names of labels

LETTERS = LetterEncoder.from_texts(Texts(["lamp on", "play music", "call anna"]), buckets=2**12)
SAID = Texts(["lamp on", "the lamp", "play music", "music now", "call anna", "anna please"])
MEANT = np.array([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(
    ("names", "something"),
    [
        (("positive", "negative"), True),
        (("1 star", "5 stars"), True),
        (("refund", "label 2"), True),
        (("1", "0"), False),
        (("label 0", "label 1", "label 2"), False),
        (("class a", "class b"), False),
        (("refund", "x 1", "x 2"), False),
    ],
)
def test_names_say_something_unless_most_are_numbers_or_would_do_for_any_label(names, something):
    assert say_something(names) == something


def test_names_speak_when_texts_are_like_their_own_labels_name_and_not_when_they_are_shuffled():
    right, shuffled, numbered = (
        names_speak(LETTERS, SAID, MEANT, Texts(names))
        for names in (("lamp", "music", "anna"), ("music", "anna", "lamp"), ("1", "2", "3"))
    )
    assert right > enough_evidence(3)
    assert shuffled < 0
    assert numbered == 0  # as well dealt in any other way
    assert names_speak(LETTERS, Texts(), np.zeros(0, int), Texts(["lamp", "music"])) == np.inf


def test_how_much_names_speak_is_how_far_they_lie_above_all_ways_to_deal_them():
    names = Texts(["lamp", "music", "anna please"])
    said, meant = (unit_rows(LETTERS.encode(texts)) for texts in (SAID, names))
    cosines = (said @ meant.T).toarray().astype(float)
    dealt = [sum(cosines[row, order[MEANT[row]]] for row in range(6)) for order in permutations(range(3))]
    expected = (dealt[0] - np.mean(dealt)) / np.std(dealt)
    assert names_speak(LETTERS, SAID, MEANT, names) == pytest.approx(expected, abs=1e-4)


def test_the_more_labels_the_more_must_speak_for_their_names():
    assert [enough_evidence(labels) for labels in (2, 4, 12, 150)] == [0.5, 1.0, 3.0, 3.0]


def named_bank(names):
    """Tasks in which every text holds a word, and the label of that word has a name out of `names`."""
    words = ("lamp", "music", "anna", "parcel")
    texts = [f"{word} {more}" for word in words for more in ("please", "now", "again", "today", "then")]
    labels = [names[place] for place in range(4) for _ in range(5)]
    return TaskBank(tuple(Task(name, Examples(tuple(texts), tuple(labels))) for name in ("a", "b")))


def test_what_names_are_worth_is_chosen_on_the_episodes_and_nothing_where_they_mislead():
    clusters = Clusters(("a", "b"), np.zeros(2, dtype=int))

    def count(names):
        bank = named_bank(names)
        episodes = draw_episodes(bank, ("a",), shots=2, seed=0)
        metrics = choose_unlearned_metrics(bank, {"mine": LETTERS}, episodes)
        return choose_settings(metrics, episodes, clusters).names_count

    assert count(("lamp", "music", "anna", "parcel"))
    assert not count(("music", "anna", "parcel", "lamp"))
    assert not count(("x_1", "x_2", "x_3", "x_4"))


def test_where_tasks_share_their_labels_names_are_not_tried(make_bank):
    bank = TaskBank(tuple(task for task in make_bank(2) if task.name.startswith("colour")))
    episodes = draw_episodes(bank, bank.names, shots=2, seed=0)
    head = Head(np.zeros((WORDS.dimensions, 3), np.float32), np.zeros(3, np.float32))
    labels, even = ("blue", "green", "red"), np.full(3, 1 / 3, np.float32)
    shared = SharedLabelMetric("cluster-0", "learned", WORDS, head, labels, even, ("colour-0",), 0)
    metrics = [shared, *choose_unlearned_metrics(bank, {"word-vectors": WORDS}, episodes)]
    settings = choose_settings(metrics, episodes, Clusters(bank.names, np.zeros(2, dtype=int)))
    assert (settings.names_count, settings.exponents, settings.exponents_without_names) == (False, {}, {})
    assert settings.shares
