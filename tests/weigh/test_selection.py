from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manymetrics.encode import MeanEncoder, random_vectors, read_bank
from manymetrics.specialize import SimilarityMetric
from manymetrics.values import Clusters, Examples, Task, TaskBank
from manymetrics.weigh import choose_rules, choose_unlearned_metrics, draw_problems, hold_out_tasks
from manymetrics.weigh.selection import DEFAULT_TEMPERATURE, TEMPERATURES

DRAWS = 3  # problems from each held-out task

VECTORS = random_vectors(rows=256, dimensions=8)


def clusters(*sizes):
    names = tuple(f"c{cluster}-{number}" for cluster, size in enumerate(sizes) for number in range(size))
    return Clusters(names, np.repeat(np.arange(len(sizes)), sizes))


@pytest.fixture(scope="module")
def read(make_bank):
    return read_bank(make_bank(4), VECTORS)


def test_tasks_of_one_source_are_held_out_together():
    names = tuple(f"{source}.t{n}" for source in "abcdefghij" for n in (2, 5))
    clusters = Clusters(names, np.array([0, 1] * 10))
    held = hold_out_tasks(clusters, 0.2, seed=0)
    assert len(held) == 4
    assert {f"{name[0]}.t{n}" for name in held for n in (2, 5)} == set(held)


def test_only_clusters_with_tasks_to_spare_lend_some():
    held = hold_out_tasks(clusters(3, 4, 10, 1), 0.2, seed=0)
    assert [sum(name.startswith(f"c{cluster}-") for name in held) for cluster in range(4)] == [0, 1, 2, 0]
    assert held == tuple(sorted(held))


def test_the_same_seed_holds_out_the_same_tasks():
    many = clusters(30)
    assert hold_out_tasks(many, 0.2, seed=0) == hold_out_tasks(many, 0.2, seed=0)
    assert hold_out_tasks(many, 0.2, seed=0) != hold_out_tasks(many, 0.2, seed=1)
    assert hold_out_tasks(many, 0.0, seed=0) == ()


@example(size=4, share=0.9, seed=0)
@given(size=st.integers(4, 40), share=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_a_cluster_always_keeps_a_task_to_learn_from(size, share, seed):
    assert 1 <= len(hold_out_tasks(clusters(size), share, seed=seed)) < size


@pytest.mark.parametrize("seed", range(5))
def test_adding_a_task_changes_at_most_one_lot(seed):
    few, more = (set(hold_out_tasks(clusters(size), 0.2, seed=seed)) for size in (20, 21))
    assert len(few - more) <= 1
    assert len(more - few) <= 1


def test_problems_come_from_held_out_tasks_with_all_the_shots_with_fewer_and_as_people_pose_them(read):
    problems = draw_problems(read, ("animal-0", "colour-1"), shots=5, seed=0)
    assert len(problems) == 2 * DRAWS
    assert [np.bincount(one.shots.labels).tolist() for one in problems[:2]] == [[5] * 3, [3] * 3]
    assert len(problems[2].shots) == 3 + 12  # one of each label, and half of the 24 others
    assert np.bincount(problems[2].shots.labels).min() >= 1
    texts = {*read["animal-0"].train.tokens.texts, *read["animal-0"].valid.tokens.texts}
    for one in problems[:3]:
        assert one.classes == ("bird", "cat", "fish")
        assert {*one.shots.tokens.texts, *one.texts.tokens.texts} <= texts
        assert len(one.shots) + len(one.texts) == 27


def test_problems_of_a_task_do_not_depend_on_the_other_tasks(read):
    alone = draw_problems(read, ("colour-1",), shots=2, seed=3)
    among = draw_problems(read, ("animal-0", "colour-1"), shots=2, seed=3)[DRAWS:]
    assert [one.shots.tokens.texts for one in alone] == [one.shots.tokens.texts for one in among]


def test_a_task_with_nothing_left_to_answer_poses_no_problem():
    lone = read_bank(TaskBank((Task("lone", Examples(("a", "b"), ("x", "y"))),)), VECTORS)
    assert draw_problems(lone, ("lone",), shots=5, seed=0) == []


def test_the_unlearned_metrics_are_the_vectors_and_the_letters(read):
    problems = draw_problems(read, ("animal-0",), shots=2, seed=0)
    metrics = choose_unlearned_metrics(read, problems)
    assert [(metric.name, metric.kind) for metric in metrics] == [("word-vectors", "frozen"), ("letters", "lexical")]
    assert all(metric.temperature in TEMPERATURES for metric in metrics)
    assert [metric.temperature for metric in choose_unlearned_metrics(read, [])] == [DEFAULT_TEMPERATURE] * 2


@pytest.mark.parametrize("shots", [1, 2])
def test_a_metrics_temperature_is_the_one_that_makes_right_answers_likeliest(read, shots):
    problems = draw_problems(read, ("animal-0", "colour-1"), shots=shots, seed=0)
    for metric in choose_unlearned_metrics(read, problems):

        def likelihood(temperature, metric=metric):
            fitted = [
                replace(metric, temperature=temperature).learn(one.shots.tokens, one.shots.labels, one.classes)
                for one in problems
            ]
            chances = [own.chances(one.texts.tokens) for own, one in zip(fitted, problems, strict=True)]
            right = [own[np.arange(len(own)), one.texts.labels] for own, one in zip(chances, problems, strict=True)]
            return np.mean([np.log(own).mean() for own in right])

        assert metric.temperature == max(TEMPERATURES, key=likelihood)


def test_rules_are_chosen_on_the_problems(read):
    problems = draw_problems(read, ("animal-0", "colour-1"), shots=2, seed=0)
    frozen = choose_unlearned_metrics(read, problems)
    shuffled = np.random.default_rng(0).permutation(VECTORS.table)
    useless = SimilarityMetric("cluster-0", "learned", MeanEncoder(0 * shuffled), "prototypical", 10.0)
    clusters = Clusters(read.names, np.zeros(len(read.names), dtype=int))
    assert choose_rules([useless, *frozen], problems, clusters).shares["learned"] <= 0.5
