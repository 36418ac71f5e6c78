"""Which tasks are held out, and the few-shot episodes drawn from them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manymetrics.episodes import draw_episodes, draw_indices, groups_by_label, hold_out_tasks, hold_out_texts
from manymetrics.values import Clusters, Examples, Task, TaskBank

EPISODES = 4  # of each held-out task


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


@example(size=4, share=0.9, seed=0)
@given(size=st.integers(4, 40), share=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_a_cluster_always_keeps_a_task_to_learn_from(size, share, seed):
    assert 1 <= len(hold_out(clusters(size), share, seed)) < size


# --- episodes


def test_episodes_come_from_held_out_tasks_with_all_the_shots_with_fewer_as_people_pose_them_and_with_one(bank):
    episodes = draw_episodes(bank, ("animal-0", "colour-1"), shots=5, seed=0)
    assert len(episodes) == 2 * EPISODES
    assert [np.bincount(one.support.numbers).tolist() for one in episodes[:2]] == [[5] * 3, [3] * 3]
    assert len(episodes[2].support) == 3 + 12  # one of each label, and half of the 24 others
    assert np.bincount(episodes[2].support.numbers).min() >= 1
    assert np.bincount(episodes[3].support.numbers).tolist() == [1] * 3
    task = bank["animal-0"]
    for one in episodes[:EPISODES]:
        assert (one.task, one.support.classes) == ("animal-0", one.names) == ("animal-0", ("bird", "cat", "fish"))
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
    assert [np.bincount(one.support.numbers).max() for one in episodes[EPISODES:]] == [10, 20]


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
    assert [len(one.support.classes) for one in episodes] == [43, 43]
    for one in episodes:
        assert one.support.classes == tuple(sorted({label for task in bank for label in task.labels}))
        assert one.names == tuple(label.replace("_", " ") for label in one.support.classes)
        assert np.bincount(one.support.numbers).tolist() == [1] * 43
        answers = zip(one.query.texts, one.query.labels, strict=True)
        assert all(text.startswith(f"{label} said") for text, label in answers)
    few = joined_bank(2, 5)
    assert len(draw_episodes(few, few.names, shots=1, seed=0)) == 2 * EPISODES


def test_a_task_with_nothing_left_to_answer_gives_no_episode():
    lone = TaskBank((Task("lone", Examples(("a", "b"), ("x", "y"))),))
    assert draw_episodes(lone, ("lone",), shots=5, seed=0) == []


# --- texts that are held out, training episodes, generators


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 99))
def test_held_out_examples_leave_every_label_one(labels, share, seed):
    examples = Examples(map(str, range(len(labels))), map(str, labels))
    rest, held = hold_out_texts(examples, share, np.random.default_rng(seed))
    assert sorted([*rest.texts, *held.texts]) == sorted(examples.texts)
    assert set(rest.labels) == set(map(str, labels))
    for text, label in zip(held.texts, held.labels, strict=True):
        assert str(labels[int(text)]) == label


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=60), st.integers(2, 8), st.integers(1, 5), st.integers(1, 40)
)  # fmt: skip
def test_a_training_episode_has_queries_of_every_label_beside_its_support(labels, ways, shots, queries):
    labels = np.array([*labels, 0, 0, 1, 1])
    drawn = draw_indices(groups_by_label(labels), ways, shots, queries, np.random.default_rng(0))
    assert len(drawn.classes) == min(ways, sum(np.bincount(labels) > 1))
    assert not set(drawn.support.tolist()) & set(drawn.query.tolist())
    for rows, numbers in ((drawn.support, drawn.labels), (drawn.query, drawn.answers)):
        assert set(numbers.tolist()) == set(range(len(drawn.classes)))
        assert len({(labels[row], number) for row, number in zip(rows, numbers, strict=True)}) == len(drawn.classes)
    assert np.bincount(drawn.labels).max() <= shots
    assert len(drawn.query) <= max(queries, len(drawn.classes))
