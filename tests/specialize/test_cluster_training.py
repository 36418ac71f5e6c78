import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from manymetrics.encode import Convolution, Features, Training, TunedWords, random_vectors
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric, train_metrics
from manymetrics.specialize.training import choose_objective, read_about
from manymetrics.values import Clusters, Examples, Material, Task, TaskBank

SMALL = Convolution(window=3, width=8, dropout=0.1)
SHORT = Training(steps=40, check_every=20, learning_rate=0.02, batch=16, ways=3, shots=2, queries=6)
WORDS = random_vectors(rows=512, dimensions=16)
SIZES = {"words": WORDS, "convolution": SMALL, "training": SHORT}


def material_of(bank):
    return Material(bank, {WORDS.fingerprint: WORDS})


def at_once(material):
    return lambda stage, do, units: {unit.name: do(unit, material) for unit in units}


def by_family(bank):
    return Clusters(bank.names, np.array([name.startswith("animal") for name in bank.names]).astype(int))


def train(bank, clusters=None, *, work=None, **options):
    material, clusters = material_of(bank), clusters or by_family(bank)
    return train_metrics(material, clusters, work or at_once(material), **{"objective": "auto", **SIZES, **options})


def units_of(bank, **options):
    """What would be trained, and nothing is."""
    units = []
    train(bank, work=lambda stage, do, found: units.extend(found) or {}, **options)
    return units


def answers(metric, task):
    """P(label | text) of a task's valid examples, from its train ones."""
    fitted = metric.learn(Features(task.train.texts), task.labelled_train.labels, task.labels)
    return fitted.probabilities(Features(task.valid.texts))


@pytest.fixture(scope="module")
def bank(make_bank):
    return make_bank(3)


def test_auto_shares_labels_where_all_tasks_do(bank):
    same = TaskBank(tuple(Task(name, Examples(("a", "b"), ("x", "y"))) for name in "ab"))
    assert choose_objective(same, "auto") == "shared-label"
    assert choose_objective(bank, "auto") == "prototypical"
    assert choose_objective(same, "matching") == "matching"


def test_an_objective_that_cannot_be_is_refused(bank):
    with pytest.raises(RecipeError, match=r"There is no objective 'triplet'\. Choose one of auto, matching"):
        choose_objective(bank, "triplet")
    with pytest.raises(RecipeError, match=r"'shared-label' needs tasks that all have the same labels"):
        choose_objective(bank, "shared-label")


def test_held_out_tasks_are_stopped_on_and_not_trained_on(bank):
    colours, animals = units_of(bank, held_out=("animal-1",))
    assert (colours.name, animals.name) == ("cluster-0", "cluster-1")
    assert list(colours.spec["tasks"]) == ["colour-0", "colour-1", "colour-2"]
    assert list(animals.spec["tasks"]) == ["animal-0", "animal-2"]
    assert animals.spec["held_out"] == {"animal-1": bank["animal-1"].fingerprint}
    assert animals.spec["words"] == WORDS.fingerprint
    assert json.dumps(animals.spec)


def test_a_classifier_has_the_sizes_that_are_given_for_it(bank):
    sizes = Convolution(width=4), Training(steps=7)
    animals = bank.only([f"animal-{number}" for number in range(3)])
    one = Clusters(animals.names, np.zeros(3, dtype=int))
    ((classifier,), (episodes, _)) = (
        units_of(animals, clusters=one, classifier=sizes),
        units_of(bank, classifier=sizes),
    )
    assert (classifier.spec["convolution"]["width"], classifier.spec["training"]["steps"]) == (4, 7)
    assert (episodes.spec["convolution"]["width"], episodes.spec["training"]["steps"]) == (8, 40)


@pytest.mark.parametrize("objective", ["matching", "prototypical"])
def test_a_clusters_metric_knows_its_family(bank, objective):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    long = replace(SHORT, steps=300, patience=99)
    metrics = train(bank, objective=objective, training=long, held_out=("animal-1", "colour-1"))
    assert [(metric.name, metric.kind, metric.rule, metric.cluster) for metric in metrics] == [
        ("cluster-0", "learned", objective, 0),
        ("cluster-1", "learned", objective, 1),
    ]
    assert metrics[0].tasks == ("colour-0", "colour-2")
    task = bank["animal-1"]
    right = np.arange(len(task.valid)), task.labelled_valid.labels
    other, own = (np.log(answers(metric, task)[right]).mean() for metric in metrics)
    assert own > other


def test_tasks_of_the_same_labels_share_a_classifier(bank):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    animals = bank.only([f"animal-{number}" for number in range(3)])
    (metric,) = train(animals, Clusters(animals.names, np.zeros(3, dtype=int)))
    assert isinstance(metric, SharedLabelMetric)
    assert (metric.labels, metric.cluster) == (("bird", "cat", "fish"), 0)
    np.testing.assert_allclose(metric.prior, 1 / 3, rtol=1e-6)
    task = animals["animal-1"]
    assert (answers(metric, task).argmax(axis=1) == task.labelled_valid.labels).mean() > 0.6


def test_a_metric_that_learns_words_keeps_those_it_moved(bank):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    still, moving = (
        train(bank, convolution=replace(SMALL, learn_words=learn))[0].encoder.words for learn in (False, True)
    )
    assert still is WORDS
    assert isinstance(moving, TunedWords)
    assert moving.given is WORDS


def test_a_cluster_whose_training_failed_has_no_metric(bank):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    material = material_of(bank)
    (metric,) = train(bank, work=lambda stage, do, units: {units[1].name: do(units[1], material)})
    assert (metric.name, metric.cluster) == ("cluster-1", 1)
    assert isinstance(metric, SimilarityMetric)


def test_tasks_too_small_for_episodes_are_named():
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    small = TaskBank(tuple(Task(name, Examples((f"a {name}", "b"), ("x", f"y{name}"))) for name in ("tiny", "wee")))
    with pytest.raises(
        NotEnoughExamples, match=r"None of the tasks tiny, wee has two labels with two train examples each"
    ):
        train(small, Clusters(small.names, np.zeros(2, dtype=int)))


@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=5), min_size=2, max_size=4, unique=True))
def test_what_a_metrics_file_says_of_itself_comes_back(labels):
    about = {"objective": "shared-label", "labels": labels}
    shapes = {"filters": (3, WORDS.dimensions, 2), "bias": (2,), "head": (2, len(labels))}
    shapes |= {"offset": (len(labels),), "prior": (len(labels),)}
    tensors = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    payload = save(tensors, metadata={"about": json.dumps(about)})
    assert read_about(payload) == about
    pair = TaskBank(tuple(Task(name, Examples(("a", "b"), ("x", "y"))) for name in "ab"))
    (metric,) = train(pair, Clusters(("a", "b"), np.zeros(2, int)), work=lambda *_: {"cluster-0": payload})
    assert metric.labels == tuple(labels)
