"""The paper's mix with the settings that it tunes, and meta-validation: planted answers."""

import numpy as np
import pytest
from experiments.problems import SHOTS, answer_problems, choose, draw_problems
from experiments.published import (
    Convex,
    choose_convex,
    choose_threshold,
    free,
    mix_as_published,
    try_thresholds,
)

from experiments import published
from manymetrics.encode import random_vectors
from manymetrics.measure.heads import Head
from manymetrics.specialize import LabelHead, Metric
from manymetrics.specialize.metric import LEARNED
from manymetrics.values import Examples, Task, TaskBank
from manymetrics.weigh.published import GradientSettings, MetricAnswers, choose_gradient

WORDS = random_vectors(rows=64, dimensions=8)
LABELS = ("bad", "good")


def metric(name, *, right):
    """A classifier that is nearly sure: of the truth, or of the contrary."""
    direction = WORDS.encode(Examples(("good", "bad"), LABELS).texts)
    weights = np.stack([direction[1] - direction[0], direction[0] - direction[1]], axis=1) * (3 if right else -3)
    return Metric(name, LEARNED, WORDS, shared=LabelHead(Head(weights, np.zeros(2)), LABELS, np.full(2, 0.5)))


def task(name="new", *, shots=2, texts=10):
    return Task(name, Examples(LABELS * shots, LABELS * shots), test=Examples(LABELS * texts, LABELS * texts))


METRICS = [metric("right", right=True), metric("wrong", right=False), metric("wrong too", right=False)]


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (free(GradientSettings(0.1, 40)), free(GradientSettings(0.001, 1))),
        (Convex(1.0, 20).answer, Convex(0.1, 1).answer),
    ],
)
def test_the_metric_that_answers_the_shots_is_found(long, short):
    assert mix_as_published(METRICS, long)(task()) == list(task().test.labels)
    assert mix_as_published(METRICS, short)(task()) != list(task().test.labels), "two against one"


@pytest.mark.parametrize("choose", [choose_gradient, choose_convex])
def test_rate_and_steps_are_those_that_answer_the_problems(choose):
    problems = TaskBank((task("one"), task("two")))
    gradient, accuracy = choose(published.answers_of(METRICS, problems))
    assert accuracy == 1.0
    assert gradient.rate * gradient.steps > 0.1, "nearly even weights answer wrongly"
    slowest, accuracy = choose(published.answers_of(lambda _: METRICS[:1], problems))
    assert accuracy == 1.0
    assert slowest == choose([])[0], "of equals the slowest and shortest"


def test_a_convex_mix_turns_no_metric_round():
    known = published.ask(METRICS, task())
    for gradient in (Convex(0.1, 1), Convex(10.0, 100)):
        weights = gradient.weigh(known)
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        assert weights.argmax() == 0
    bad = known.shots[::2, :, 0]  # (shots, metrics): how likely each metric makes the shots that are bad
    likelier = [float(np.log(bad @ Convex(0.1, steps).weigh(known)).sum()) for steps in (1, 5, 20)]
    assert likelier == sorted(likelier), "every step makes the shots likelier"
    nothing = np.full((2, 3, 2), np.nan)
    even = Convex(1.0, 5).weigh(MetricAnswers(nothing, np.arange(2), nothing))
    np.testing.assert_allclose(even, 1 / 3, err_msg="shots that cannot be left out say nothing")


def test_a_task_that_no_metric_answers_falls_back():
    wrong, problems = [metric("wrong", right=False)], TaskBank((task("one"), task("two")))

    def fallback(one):
        return ["good"] * len(one.test)

    rules = try_thresholds(wrong, free(GradientSettings(0.01, 1)), fallback, problems)
    threshold = choose_threshold(rules)
    assert threshold == 0.1, "the lowest that makes them fall back"
    assert [(rule.below, rule.mixed, rule.alone, rule.accuracy) for rule in rules[:2]] == [
        (0, None, None, 0.0),
        (2, 0.0, 0.5, 0.5),
    ]
    method = mix_as_published(wrong, free(GradientSettings(0.01, 1)), threshold=threshold, fallback=fallback)
    assert method(task()) == ["good"] * 20
    right = [metric("right", right=True)]
    assert choose_threshold(try_thresholds(right, free(GradientSettings(0.01, 1)), fallback, problems)) == 0.0
    nothing = np.full((2, 1, 2), np.nan)
    assert MetricAnswers(nothing, np.arange(2), nothing).best_accuracy == np.inf, (
        "shots that cannot be left out say nothing"
    )


def test_problems_have_the_shape_of_targets(tiny_bank):
    rng = np.random.default_rng(0)
    words = rng.permutation([f"word{number}" for number in range(80)])
    many = Examples(tuple(words), LABELS * 40)
    shared = TaskBank((Task("a", many, source="one source"), Task("b", many)))
    problems = draw_problems(shared, ["a"], seed=0, draws=2)
    assert [problem.name for problem in problems] == ["a 0", "a 1"]
    for problem in problems:
        assert sorted(problem.train.labels) == ["bad"] * SHOTS + ["good"] * SHOTS
        assert not set(problem.train.texts) & set(problem.test.texts)
        assert problem.source == "one source"
    assert problems.tasks[0].fingerprint == draw_problems(shared, ["b", "a"], seed=0).tasks[3].fingerprint
    others = draw_problems(tiny_bank, tiny_bank.names[:1], seed=0, draws=1).tasks[0]
    assert set(others.train.labels) == set(others.labels)
    assert len(others.train) > len(others.labels), "one of each label, and some of any"


def test_the_best_value_is_chosen_and_of_equals_the_first():
    problems = TaskBank((task("one"),))
    seen = []

    def make(label):
        def method(one):
            seen.append(set(one.test.labels))
            return [label] * len(one.test)

        return method

    assert choose(("bad", "good"), make, problems) == "bad"
    assert seen[0] != set(LABELS), "the right answers are hidden"
    assert choose((0.1, 1.0), lambda _: make("bad"), TaskBank(())) == 0.1
    right = lambda one: list(LABELS) * 10  # noqa: E731
    assert choose((False, True), lambda good: right if good else make("bad"), problems)
    assert [one.accuracy for one in answer_problems(right, problems)] == [1.0]
