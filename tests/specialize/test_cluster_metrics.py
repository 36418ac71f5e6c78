"""The metric that all tasks share, those of the clusters, and a classifier over labels that all tasks share."""

import numpy as np
import pytest

from manymetrics.encode import (
    EmbeddedTexts,
    Fitted,
    Phases,
    ProjectionEncoder,
    ProjectionRepresentation,
    random_vectors,
)
from manymetrics.encode.projection import STOP_SHOTS, EpisodeArrays, mean_loss
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.engine import Engine
from manymetrics.errors import JobSkipped, StageFailed, TrainingWarning
from manymetrics.specialize import train_linear_metric, train_metrics
from manymetrics.store import packed
from manymetrics.values import Clusters, Examples, SharedData, Task, TaskBank
from planted_numbers import WIDTH, Numbers, at_once, planted_bank

TRAINING = ProjectionTraining(steps=120, check_every=20, learning_rate=0.01, dropout=0.0, ways=4, shots=2, queries=16)
HELD_OUT = ("first-3", "second-3")
BASE = Numbers()


def by_family(bank):
    return Clusters(bank.names, np.array([int(name.startswith("second")) for name in bank.names]))


REPRESENTATION = ProjectionRepresentation(BASE, TRAINING, shots=STOP_SHOTS)
PHASES = Phases(REPRESENTATION, REPRESENTATION, REPRESENTATION)
NOTHING = Fitted({"matrix": np.zeros((WIDTH, WIDTH), np.float32)})


def train(shared_data, run_jobs=None, *, clusters=None, held_out=HELD_OUT, phases=PHASES, seed=0):
    clusters, run_jobs = clusters or by_family(shared_data.bank), run_jobs or at_once(shared_data)
    return train_metrics(phases, shared_data, clusters, run_jobs, held_out=held_out, seed=seed)


def starting_from(shared_data, state):
    """Work in which the shared training ends with a given state."""
    run_jobs = at_once(shared_data)

    def given(stage, do, jobs):
        return {"projection": packed.dump(state)} if jobs[0].name == "projection" else run_jobs(stage, do, jobs)

    return given


def failing(shared_data, *names):
    """Work in which some jobs fail; where all of a stage do, so does the stage."""

    def run_jobs(stage, do, jobs):
        results = {job.name: do(job, shared_data) for job in jobs if job.name not in names}
        if not results:
            raise StageFailed(f"Nothing came of {stage}.")
        return results

    return run_jobs


@pytest.fixture(scope="module")
def shared_data():
    return SharedData(planted_bank(4), BASE)


@pytest.fixture(scope="module")
def metrics(shared_data):
    return train(shared_data)


def state_of(metric):
    return Fitted({"matrix": metric.encoder.matrix}, metric.temperature, 1)


def loss(fitted, shared_data, *names):
    episodes = [REPRESENTATION.episode(shared_data.bank[name], seed=0) for name in names]
    return mean_loss(fitted, [EpisodeArrays.of(episode, BASE) for episode in episodes])


def test_each_cluster_has_a_metric_of_its_own_beside_the_shared_one(shared_data, metrics):
    names = [(metric.name, metric.kind, metric.cluster) for metric in metrics]
    assert names == [("projection", "tuned", None), ("cluster-0", "learned", 0), ("cluster-1", "learned", 1)]
    taught = [name for name in shared_data.bank.names if name not in HELD_OUT]
    assert metrics[0].tasks == tuple(sorted(taught))
    assert metrics[1].tasks == ("first-0", "first-1", "first-2")
    assert metrics[2].tasks == ("second-0", "second-1", "second-2")
    assert all(isinstance(metric.encoder, ProjectionEncoder) and metric.encoder.base is BASE for metric in metrics)
    assert {metric.rule for metric in metrics} == {"prototypical"}


def test_without_a_shared_representation_the_clusters_start_untrained(shared_data):
    alone = Phases(REPRESENTATION, None, REPRESENTATION)
    one = Clusters(shared_data.bank.names, np.zeros(8, dtype=int))
    assert [metric.name for metric in train(shared_data, phases=alone)] == ["cluster-0", "cluster-1"]
    assert [metric.name for metric in train(shared_data, phases=alone, clusters=one)] == ["cluster-0"]
    with pytest.raises(StageFailed):
        train(shared_data, failing(shared_data, "cluster-0", "cluster-1"), phases=alone)


def test_a_clusters_metric_answers_its_own_tasks_best(shared_data, metrics):
    _, first, second = metrics

    def accuracy(metric, name):
        task = shared_data.bank[name]
        fitted = metric.learn(EmbeddedTexts(task.train.texts), task.train.numbers, task.labels)
        found = fitted.probabilities(EmbeddedTexts(task.valid.texts)).argmax(axis=1)
        return (found == task.valid.numbers).mean()

    assert accuracy(first, "first-3") > accuracy(second, "first-3")
    assert accuracy(second, "second-3") > accuracy(first, "second-3")


def test_a_cluster_that_does_not_improve_on_the_shared_state_has_no_metric():
    shared_data = SharedData(planted_bank(4, shuffled=("second",)), BASE)
    of_second = np.diag([-0.9] * 4 + [0.0] * 4).astype(np.float32)  # what the second family would have taught
    metrics = train(shared_data, starting_from(shared_data, Fitted({"matrix": of_second}, n_steps=1)))
    assert [metric.name for metric in metrics] == ["projection", "cluster-0"]


def test_a_single_cluster_needs_no_metric_of_its_own(shared_data):
    one = Clusters(shared_data.bank.names, np.zeros(8, dtype=int))
    assert [metric.name for metric in train(shared_data, clusters=one)] == ["projection"]


def test_a_job_that_failed_leaves_its_metric_out(shared_data):
    def names_without(*jobs):
        return [metric.name for metric in train(shared_data, failing(shared_data, *jobs))]

    assert names_without("cluster-0") == ["projection", "cluster-1"]
    with pytest.warns(JobSkipped, match="comes out without the shared metric"):
        assert names_without("projection") == ["cluster-0", "cluster-1"]
    with pytest.warns(JobSkipped, match="comes out without metrics of single clusters"):
        assert names_without("cluster-0", "cluster-1") == ["projection"]


def test_a_shared_training_that_gains_nothing_is_reported(shared_data):
    with pytest.warns(TrainingWarning, match="no number of steps made the answers of the held-out tasks more probable"):
        train(shared_data, starting_from(shared_data, NOTHING))


@pytest.mark.filterwarnings("ignore::manymetrics.errors.TrainingWarning")
def test_held_out_tasks_teach_nothing_and_tasks_that_teach_do(shared_data):
    def turned(task):
        return Task(task.name, Examples(task.train.texts[::-1], task.train.labels), task.valid)

    first, *others = shared_data.bank.tasks
    changed = SharedData(TaskBank((turned(first), *others)), BASE)
    jobs = []
    for given in (shared_data, changed):
        train(given, lambda stage, do, found: jobs.append(found[0]) or {"projection": packed.dump(NOTHING)})
    before, _, after, _ = jobs
    assert set(before.spec["tasks"]) == set(shared_data.bank.names) - set(HELD_OUT)
    assert set(before.spec["held_out"]) == set(HELD_OUT)
    assert before.spec["tasks"] != after.spec["tasks"]
    assert before.spec["held_out"] == after.spec["held_out"]


def test_the_bits_are_the_same_with_one_worker_and_with_two_and_another_seed_learns_others(shared_data, metrics):
    with Engine(shared_data, workers=2) as run_jobs:
        there = train(shared_data, run_jobs)
    assert [metric.encoder.fingerprint for metric in metrics] == [metric.encoder.fingerprint for metric in there]
    assert [metric.temperature for metric in metrics] == [metric.temperature for metric in there]
    assert train(shared_data, seed=1)[0].encoder.fingerprint != metrics[0].encoder.fingerprint


# --- a classifier over labels that all tasks share

WORDS = random_vectors(rows=512, dimensions=32)


def opinion(name, good, bad, labels=("bad", "good")):
    texts = [f"{word} {thing}" for thing in ("lamp", "tea", "shoe", "song") for word in (bad, good)]
    return Task(name, Examples(tuple(texts), labels * 4))


def train_linear(tasks, run_jobs=None, **options):
    """The linear metric of some tasks, trained here and now."""
    shared_data = SharedData(TaskBank(tuple(tasks)), WORDS)
    return train_linear_metric(shared_data, run_jobs or at_once(shared_data), base=WORDS, **options)


TASKS = [opinion("a", "nice", "dull"), opinion("b", "good", "poor")]


def answer(metric, *texts):
    fitted = metric.learn(EmbeddedTexts(["x", "y"]), np.array([0, 1]), ("bad", "good"))
    return fitted.probabilities(EmbeddedTexts(texts))[:, 1]


def test_all_tasks_teach_one_classifier_what_their_labels_mean():
    (metric,) = train_linear(TASKS)
    assert (metric.name, metric.kind, metric.cluster) == ("shared-labels", "linear", None)
    assert (metric.tasks, metric.labels) == (("a", "b"), ("bad", "good"))
    assert metric.encoder is WORDS
    nice, dull, good, poor = answer(metric, "nice hat", "dull hat", "good hat", "poor hat")
    assert nice > dull
    assert good > poor


def test_how_common_each_label_is_comes_from_the_texts():
    skewed = Task("c", Examples(tuple(f"text {n}" for n in range(10)), ("bad",) * 8 + ("good",) * 2))
    (metric,) = train_linear([skewed])
    np.testing.assert_allclose(metric.shared.prior, [9 / 12, 3 / 12])


def test_the_classifier_does_not_learn_from_held_out_tasks():
    seen = []
    (metric,) = train_linear(TASKS, held_out=("b",))
    assert metric.tasks == ("a",)

    def remember(stage, do, jobs):
        seen.extend(jobs)
        raise StageFailed("None was done.")

    with pytest.warns(JobSkipped, match="comes out without the classifier over the shared labels"):
        assert train_linear(TASKS, remember, held_out=("b",)) == []
    assert [list(job.spec["tasks"]) for job in seen] == [["a"]]


def test_tasks_with_labels_of_their_own_have_no_linear_metric():
    assert train_linear([opinion("a", "x", "y"), opinion("b", "x", "y", ("no", "yes"))]) == []
