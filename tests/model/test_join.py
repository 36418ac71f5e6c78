"""Learning in addition to a model: few tasks join its clusters, more tasks bring metrics of their own."""

from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from planted_bank import planted_bank, planted_task
from tiny_sentence import vocabulary_of, write_folder

TEXTS = ["the crimson here", "some emerald", "azure so very", "a robin there"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    write_folder(folder, pooling="mean", vocabulary=vocabulary_of(planted_bank(4, size=12)), width=64)
    return mm.Recipe(
        encoder=str(folder), projection_steps=200, projection_rate=5e-3, own_steps=100, own_rate=1e-2, p1=0.1, p2=0.1,
        shots=2, clusters=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def start(recipe):
    return mm.learn_metrics(planted_bank(4, size=12), recipe)


def own_bank(count):
    families = ("colour", "animal")
    tasks = [planted_task(f"own-{n}", families[n % 2], size=8, seed=100 + n) for n in range(count)]
    return mm.TaskBank(tuple(tasks))


def test_a_few_tasks_join_the_clusters_of_the_model_and_train_nothing(start, recipe, tmp_path):
    model = mm.learn_metrics(own_bank(3), recipe, start=start)
    assert model.metrics == start.metrics
    groups = [{name.rpartition("-")[0] for name in group if "own" not in name} for group in model.clusters]
    assert sorted(map(len, groups)) == [1, 1], "the clusters of the model are the families"
    by_task = dict(zip(model.clusters.names, model.clusters.labels.tolist(), strict=True))
    assert by_task["own-0"] == by_task["own-2"] == by_task["colour-0"]
    assert by_task["own-1"] == by_task["animal-0"]
    model.save(tmp_path / "model")
    assert mm.load_model(tmp_path / "model").fingerprint == model.fingerprint


def test_a_single_task_is_enough_beside_a_model(start, recipe):
    assert "own-0" in mm.learn_metrics(own_bank(1), recipe, start=start).clusters.names


def test_eight_tasks_bring_metrics_of_their_own(start, recipe, tmp_path):
    own, bank = mm.learn_metrics(own_bank(8), recipe), own_bank(8)
    model = mm.learn_metrics(bank, recipe, start=start)
    names = {metric.name for metric in model.metrics}
    assert {metric.name for metric in own.metrics} < names
    assert "start-cluster-0" in names
    assert "start-projection" not in names, "the shared metric is that of the model, trained on"
    tasks = {metric.name: set(metric.tasks) for metric in model.metrics}
    assert tasks["projection"] >= {metric.name: set(metric.tasks) for metric in start.metrics}["projection"]
    assert len(model.clusters) == len(start.clusters) + len(own.clusters)
    for metric in model.metrics:
        if metric.cluster is not None:
            assert set(metric.tasks) <= set(list(model.clusters)[metric.cluster])
    new = bank["own-0"]
    classifier = model.adapt(new.train.texts, new.train.labels)
    assert classifier.weights_["sentence"] < 1
    assert (classifier.predict(new.test.texts) == np.array(new.test.labels)).mean() > 0.8
    model.save(tmp_path / "model")
    again = mm.load_model(tmp_path / "model").adapt(new.train.texts, new.train.labels)
    assert (again.predict_proba(TEXTS) == classifier.predict_proba(TEXTS)).all()


def test_where_held_out_tasks_gain_nothing_the_shared_metric_stays_that_of_the_model(start, recipe):
    settings = replace(recipe, projection_rate=1e-9)
    model = mm.learn_metrics(own_bank(8), settings, start=start)
    before, after = (
        next(metric.encoder.matrix for metric in one.metrics if metric.name == "projection") for one in (start, model)
    )
    assert np.allclose(before, after, atol=1e-6)


def test_a_model_that_cannot_be_started_from_is_refused(start, recipe, model, tmp_path):
    with pytest.raises(mm.InputError, match="'animal-0' is also a task of the model to start from"):
        mm.learn_metrics(planted_bank(1), recipe, start=start)
    with pytest.raises(mm.NotEnoughExamples, match="Found no task to learn from"):
        mm.learn_metrics(mm.TaskBank(()), recipe, start=start)
    with pytest.raises(mm.InputError, match="does not assign tasks to clusters"):
        mm.learn_metrics(own_bank(3), recipe, start=model)
    other = write_folder(tmp_path / "other", pooling="cls")
    with pytest.raises(mm.InputError, match="has another encoder"):
        mm.learn_metrics(own_bank(3), replace(recipe, encoder=str(other)), start=start)
