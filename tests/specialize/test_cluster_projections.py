"""The projection that all tasks share, and the clusters' own: what they learn from, and which of them are kept."""

import numpy as np
import pytest

from manymetrics.encode import Features, ProjectionEncoder
from manymetrics.encode.projection import FittedProjection, mean_loss
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.engine import Engine
from manymetrics.measure.projections import open_projection, pack_projection, task_problem
from manymetrics.specialize import train_cluster_projections, train_shared_projection
from manymetrics.specialize.projections import STOP_SHOTS
from manymetrics.values import Clusters, Examples, Material, Task, TaskBank, Texts
from planted_numbers import WIDTH, Numbers, at_once, material_of, planted_task

TRAINING = ProjectionTraining(steps=120, check_every=20, learning_rate=0.01, dropout=0.0, ways=4, shots=2, queries=16)
HELD_OUT = ("first-3", "second-3")


BASE = Numbers()


def planted_bank(*, shuffled=()):
    """Two families, which look at different features; in the shuffled one the tasks to learn from teach nothing."""
    return TaskBank(
        tuple(
            planted_task(f"{family}-{n}", signal, 10 * signal[0] + n, shuffled=family in shuffled and n != 3)
            for family, signal in (("first", [0, 1, 2, 3]), ("second", [4, 5, 6, 7]))
            for n in range(4)
        )
    )


def by_family(bank):
    return Clusters(bank.names, np.array([int(name.startswith("second")) for name in bank.names]))


def train_shared(material, work=None, *, held_out=HELD_OUT, seed=0):
    work = work or at_once(material)
    return train_shared_projection(material, work, base=BASE, training=TRAINING, held_out=held_out, seed=seed)


def train(material, shared, work=None, *, clusters=None, held_out=HELD_OUT):
    return train_cluster_projections(
        material, clusters or by_family(material.bank), work or at_once(material), base=BASE, shared=shared,
        training=TRAINING, held_out=held_out, seed=0,
    )  # fmt: skip


NOTHING = pack_projection(FittedProjection(np.zeros((WIDTH, WIDTH), np.float32), 10.0, 0))


@pytest.fixture(scope="module")
def material():
    return material_of(planted_bank(), BASE)


@pytest.fixture(scope="module")
def shared(material):
    return train_shared(material)


def loss(projection, material, *tasks):
    return mean_loss(projection, [task_problem(material.bank[one], BASE, seed=0, shots=STOP_SHOTS) for one in tasks])


def test_the_shared_projection_makes_held_out_tasks_likelier_and_never_less_likely(material, shared):
    start, found = open_projection(NOTHING), open_projection(shared)
    assert loss(found, material, *HELD_OUT) <= loss(start, material, *HELD_OUT)
    useless = material_of(planted_bank(shuffled=("first", "second")), BASE)
    kept = open_projection(train_shared(useless))
    assert loss(kept, useless, *HELD_OUT) <= loss(start, useless, *HELD_OUT)


def test_each_cluster_has_a_metric_of_its_own_beside_the_shared_one(material, shared):
    metrics = train(material, shared)
    names = [(one.name, one.kind, one.cluster) for one in metrics]
    assert names == [("projection", "tuned", None), ("cluster-0", "learned", 0), ("cluster-1", "learned", 1)]
    taught = [name for name in material.bank.names if name not in HELD_OUT]
    assert metrics[0].tasks == tuple(sorted(taught))
    assert metrics[1].tasks == ("first-0", "first-1", "first-2")
    assert metrics[2].tasks == ("second-0", "second-1", "second-2")
    assert all(isinstance(one.encoder, ProjectionEncoder) and one.encoder.base is BASE for one in metrics)
    assert (metrics[0].encoder.matrix == open_projection(shared).matrix).all()
    assert {one.rule for one in metrics} == {"prototypical"}


def test_a_clusters_metric_answers_its_own_tasks_best(material, shared):
    _, first, second = train(material, shared)

    def accuracy(metric, name):
        task = material.bank[name]
        fitted = metric.learn(Features(task.train.texts), task.labelled_train.labels, task.labels)
        found = fitted.probabilities(Features(task.valid.texts)).argmax(axis=1)
        return (found == task.labelled_valid.labels).mean()

    assert accuracy(first, "first-3") > accuracy(second, "first-3")
    assert accuracy(second, "second-3") > accuracy(first, "second-3")


def test_a_step_that_does_not_pay_on_held_out_tasks_is_not_kept():
    material = material_of(planted_bank(shuffled=("second",)), BASE)
    of_second = np.diag([-0.9] * 4 + [0.0] * 4).astype(np.float32)  # what the second family would have taught
    found = train(material, pack_projection(FittedProjection(of_second, 10.0, 1)))
    assert [metric.name for metric in found] == ["projection", "cluster-0", "other-clusters"]
    assert (found[2].kind, found[2].cluster) == ("learned", None)
    assert found[2].encoder is found[0].encoder  # the shared projection stands for the cluster without a step
    assert found[2].tasks == ("second-0", "second-1", "second-2")


def test_what_is_kept_makes_the_clusters_held_out_task_likelier_than_the_shared_projection(material, shared):
    before = open_projection(shared)
    _, *learned = train(material, shared)
    for metric, held_out in zip(learned, HELD_OUT, strict=True):
        after = FittedProjection(metric.encoder.matrix, metric.temperature, 1)
        assert loss(after, material, held_out) < loss(before, material, held_out)


def test_a_single_cluster_needs_no_step_of_its_own(material, shared):
    one = Clusters(material.bank.names, np.zeros(8, dtype=int))
    assert [metric.name for metric in train(material, shared, clusters=one)] == ["projection"]


def test_a_cluster_of_which_every_task_is_held_out_has_no_metric(material, shared):
    lone = Clusters(material.bank.names, np.array([int(name == "second-3") for name in material.bank.names]))
    assert "cluster-1" not in [metric.name for metric in train(material, shared, clusters=lone)]


def test_a_unit_without_a_result_leaves_its_metric_out(material, shared):
    def lossy(stage, do, units):
        return {unit.name: do(unit, material) for unit in units if unit.name != "cluster-0"}

    assert [metric.name for metric in train(material, shared, lossy)] == ["projection", "cluster-1", "other-clusters"]


def test_held_out_tasks_teach_nothing_and_tasks_that_teach_do(material):
    def turned(task):
        return Task(task.name, Examples(task.train.texts[::-1], task.train.labels), task.valid)

    first, *others = material.bank.tasks
    changed = Material(TaskBank((turned(first), *others)), material.encoders)
    units = []
    for bank in (material, changed):
        train_shared(bank, lambda stage, do, found: units.extend(found) or {"projection": NOTHING})
    assert set(units[0].spec["tasks"]) == set(material.bank.names) - set(HELD_OUT)
    assert set(units[0].spec["held_out"]) == set(HELD_OUT)
    assert units[0].spec["tasks"] != units[1].spec["tasks"]
    assert units[0].spec["held_out"] == units[1].spec["held_out"]


def test_the_bits_are_the_same_with_one_worker_and_with_two(material, shared):
    here = train(material, shared)
    with Engine(material, workers=2) as work:
        assert train_shared(material, work) == shared
        there = train(material, shared, work)
    assert [one.encoder.fingerprint for one in here] == [one.encoder.fingerprint for one in there]
    assert [one.temperature for one in here] == [one.temperature for one in there]


def test_another_seed_learns_another_projection(material, shared):
    assert train_shared(material, seed=1) != shared
    assert train_shared(material) == shared


def test_a_texts_row_does_not_depend_on_the_texts_beside_it(material, shared):
    encoder = train(material, shared)[1].encoder
    texts = material.bank.tasks[0].valid.texts
    alone = np.concatenate([encoder.encode(Texts([text])) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), alone, atol=1e-6)
