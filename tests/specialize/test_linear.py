"""A classifier over the labels that all tasks of a bank share."""

import numpy as np
import pytest

from manymetrics.encode import EmbeddedTexts, random_vectors
from manymetrics.errors import JobSkipped, StageFailed
from manymetrics.specialize import train_linear_metric
from manymetrics.values import Examples, SharedData, Task, TaskBank

WORDS = random_vectors(rows=512, dimensions=32)


def opinion(name, good, bad, labels=("bad", "good")):
    texts = [f"{word} {thing}" for thing in ("lamp", "tea", "shoe", "song") for word in (bad, good)]
    return Task(name, Examples(tuple(texts), labels * 4))


def train(tasks, run_jobs=None, **options):
    """The linear metric of some tasks, trained here and now."""
    shared_data = SharedData(TaskBank(tuple(tasks)), {WORDS.fingerprint: WORDS})

    def at_once(stage, do, jobs):
        return {job.name: do(job, shared_data) for job in jobs}

    return train_linear_metric(shared_data, run_jobs or at_once, base=WORDS, **options)


TASKS = [opinion("a", "nice", "dull"), opinion("b", "good", "poor")]


def answer(metric, *texts):
    fitted = metric.learn(EmbeddedTexts(["x", "y"]), np.array([0, 1]), ("bad", "good"))
    return fitted.probabilities(EmbeddedTexts(texts))[:, 1]


def test_all_tasks_teach_one_classifier_what_their_labels_mean():
    (metric,) = train(TASKS)
    assert (metric.name, metric.kind, metric.cluster) == ("shared-labels", "linear", None)
    assert (metric.tasks, metric.labels) == (("a", "b"), ("bad", "good"))
    assert metric.encoder is WORDS
    nice, dull, good, poor = answer(metric, "nice hat", "dull hat", "good hat", "poor hat")
    assert nice > dull
    assert good > poor


def test_how_common_each_label_is_comes_from_the_texts():
    skewed = Task("c", Examples(tuple(f"text {n}" for n in range(10)), ("bad",) * 8 + ("good",) * 2))
    (metric,) = train([skewed])
    np.testing.assert_allclose(metric.shared.prior, [9 / 12, 3 / 12])


def test_held_out_tasks_are_not_learned_from():
    seen = []
    (metric,) = train(TASKS, held_out=("b",))
    assert metric.tasks == ("a",)

    def remember(stage, do, jobs):
        seen.extend(jobs)
        raise StageFailed("None was done.")

    with pytest.warns(JobSkipped, match="comes out without the classifier over the shared labels"):
        assert train(TASKS, remember, held_out=("b",)) == []
    assert [list(job.spec["tasks"]) for job in seen] == [["a"]]


def test_tasks_with_labels_of_their_own_have_no_linear_metric():
    assert train([opinion("a", "x", "y"), opinion("b", "x", "y", ("no", "yes"))]) == []
