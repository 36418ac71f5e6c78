"""The paper's representation: what it trains on, what it stops on, its objectives and its scores."""

import json
from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import Convolution, EmbeddedTexts, Fitted, Training, random_vectors
from manymetrics.encode.representation import open_representation
from manymetrics.errors import NotEnoughExamples
from manymetrics.measure import ConvolutionRepresentation, Head, fit_single_tasks, measure_transfer
from manymetrics.measure.convolution import training_parts
from manymetrics.recipe import Recipe
from manymetrics.specialize import train_metrics
from manymetrics.store import packed
from manymetrics.values import Clusters, Examples, SharedData, Task, TaskBank
from planted_numbers import at_once

SMALL = Convolution(window=3, width=8, dropout=0.1)
SHORT = Training(steps=60, check_every=20, learning_rate=0.02, batch=16, ways=3, shots=2, queries=6)
WORDS = random_vectors(rows=512, dimensions=16)
NEEDS_TORCH = "torch is not installed: nothing trains"


def network(base=WORDS, **options):
    return ConvolutionRepresentation(base, SMALL, SHORT, **options)


def random_states(bank, width=8, seed=0):
    """Encoders and heads nobody trained."""
    rng, states = np.random.default_rng(seed), {}
    for task in bank:
        shapes = {"filters": (3, 16, width), "bias": (width,), "head": (width, len(task.labels))}
        tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        tensors["offset"] = np.zeros(len(task.labels), np.float32)
        states[task.name] = Fitted(tensors, classes=task.labels)
    return states


def measure(bank, vectors, states=None):
    shared_data = SharedData(bank, vectors)
    states = random_states(bank) if states is None else states
    return measure_transfer(network(vectors), states, shared_data, at_once(shared_data))


def by_family(bank):
    return Clusters(bank.names, np.array([name.startswith("animal") for name in bank.names]).astype(int))


def recipe(**options):
    sizes = {"window": 3, "width": 8, "learning_rate": 0.02}
    return Recipe.paper(vectors="random", shots=2, **{**sizes, "metric_steps": 40, "classifier_steps": 60, **options})


def train(bank, clusters=None, *, run_jobs=None, held_out=(), **options):
    shared_data = SharedData(bank, WORDS)
    phases = recipe(**{"objective": "auto", **options}).phases(shared_data)
    return train_metrics(
        phases, shared_data, clusters or by_family(bank), run_jobs or at_once(shared_data), held_out=held_out
    )


def units_of(bank, **options):
    """What would be trained, and nothing is."""
    jobs = []
    train(bank, run_jobs=lambda stage, do, found: jobs.extend(found) or {}, **options)
    return jobs


def answers(metric, task):
    """P(label | text) of a task's valid examples, from its train ones."""
    fitted = metric.learn(EmbeddedTexts(task.train.texts), task.train.numbers, task.labels)
    return fitted.probabilities(EmbeddedTexts(task.valid.texts))


@pytest.fixture(scope="module")
def bank(make_bank):
    return make_bank(3)


# --- single tasks


def test_training_stops_on_valid_examples_or_on_a_fifth_of_train(tiny_bank, make_bank):
    train, held = training_parts(tiny_bank.tasks[0], np.random.default_rng(0))
    assert (len(train), len(held)) == (18, 9)
    train, held = training_parts(make_bank(valid=False).tasks[0], np.random.default_rng(0))
    assert np.bincount(held.numbers).tolist() == [1, 1, 1]
    assert len(train) == 15


def test_a_single_task_state_learned_its_task_and_only_depends_on_its_unit(tiny_bank):
    torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
    before = torch.get_num_threads()
    ConvolutionRepresentation.prepare_worker()

    def fit(bank):
        shared_data = SharedData(bank, WORDS)
        return fit_single_tasks(network(), shared_data, at_once(shared_data), seed=3)["colour-1"]

    state = fit(tiny_bank)
    assert packed.dump(state) == packed.dump(fit(tiny_bank.only(["colour-1"])))
    task = tiny_bank["colour-1"]
    assert state.classes == task.labels
    head = Head(state.tensors["head"], state.tensors["offset"])
    predicted = head.probabilities(network().encoder(state).encode(task.train.texts)).argmax(axis=1)
    assert np.mean(predicted == task.train.numbers) > 0.9
    assert torch.get_num_threads() == before


def test_a_representation_comes_back_from_what_a_job_is_given():
    given = network(objective="matching")
    again = open_representation(json.loads(json.dumps(given.spec())), WORDS)
    assert again.spec() == given.spec()
    assert again.rule == "matching"


# --- scores


def test_every_pair_has_an_accuracy_on_valid_examples_and_the_diagonal_stays_missing(tiny_bank, vectors):
    transfer = measure(tiny_bank, vectors)
    assert transfer.score == "accuracy"
    assert (np.isnan(transfer.scores) == np.eye(4, dtype=bool)).all()


def test_without_valid_examples_no_example_is_answered_by_a_head_that_saw_it(vectors):
    """Sixty different texts with random labels: out of fold nothing beats chance, whatever the features."""
    rng = np.random.default_rng(0)
    texts = tuple(f"thing{number} that{number} stuff{number}" for number in range(60))
    noise = Task("noise", Examples(texts, tuple(rng.permutation(["yes", "no"] * 30).tolist())))
    bank = TaskBank((noise, Task("twin", noise.train)))
    wide = random_states(bank, width=64)  # more features than examples: in fold every answer would be right
    scores = measure(bank, vectors, wide).scores
    assert scores[0, 1] < 0.75
    lone = Task("lone", Examples(("a b", "a c", "a d", "e f"), ("x", "x", "x", "y")))
    bank = TaskBank((lone, Task("other", Examples(("p", "q"), ("x", "y")))))
    assert np.isfinite(measure(bank, vectors).scores[[0, 1], [1, 0]]).all(), "a label with one example"


# --- clusters


def test_held_out_tasks_are_stopped_on_and_not_trained_on(bank):
    colours, animals = units_of(bank, held_out=("animal-1",))
    assert (colours.name, animals.name) == ("cluster-0", "cluster-1")
    assert list(colours.spec["tasks"]) == ["colour-0", "colour-1", "colour-2"]
    assert list(animals.spec["tasks"]) == ["animal-0", "animal-2"]
    assert animals.spec["held_out"] == {"animal-1": bank["animal-1"].content}
    assert animals.spec["encoder"] == WORDS.fingerprint
    assert json.dumps(animals.spec)


def test_a_classifier_has_its_own_number_of_steps(bank):
    animals = bank.only([f"animal-{number}" for number in range(3)])
    one = Clusters(animals.names, np.zeros(3, dtype=int))
    ((classifier,), (episodes, _)) = (units_of(animals, clusters=one), units_of(bank))
    assert (classifier.spec["training"]["steps"], episodes.spec["training"]["steps"]) == (60, 40)


@pytest.mark.parametrize("objective", ["matching", "prototypical"])
def test_a_clusters_metric_fits_its_family(bank, objective):
    pytest.importorskip("torch", reason=NEEDS_TORCH)
    metrics = train(bank, objective=objective, width=32, metric_steps=300, held_out=("animal-1", "colour-1"))
    assert [(metric.name, metric.kind, metric.rule, metric.cluster) for metric in metrics] == [
        ("cluster-0", "learned", objective, 0),
        ("cluster-1", "learned", objective, 1),
    ]
    assert metrics[0].tasks == ("colour-0", "colour-2")
    task = bank["animal-1"]
    right = np.arange(len(task.valid)), task.valid.numbers
    other, own = (np.log(answers(metric, task)[right]).mean() for metric in metrics)
    assert own > other
    assert train(bank, objective=objective, metric_steps=3), "without held-out tasks it stops on texts of its own"


@pytest.mark.parametrize("held_out", [(), ("animal-2",)])
def test_tasks_of_the_same_labels_share_a_classifier(bank, held_out):
    pytest.importorskip("torch", reason=NEEDS_TORCH)
    animals = bank.only([f"animal-{number}" for number in range(3)])
    (metric,) = train(animals, Clusters(animals.names, np.zeros(3, dtype=int)), held_out=held_out)
    assert metric.shared is not None
    assert (metric.labels, metric.cluster) == (("bird", "cat", "fish"), 0)
    np.testing.assert_allclose(metric.shared.prior, 1 / 3, rtol=1e-6)
    task = animals["animal-1"]
    assert (answers(metric, task).argmax(axis=1) == task.valid.numbers).mean() > 0.6


def test_tasks_too_small_for_episodes_are_named():
    small = [Task(name, Examples((f"a {name}", "b"), ("x", f"y{name}"))) for name in ("tiny", "wee")]
    with pytest.raises(
        NotEnoughExamples, match=r"None of the tasks tiny, wee has two labels with two train examples each"
    ):
        replace(network(), objective="matching").fit(small, [], start=None, rng=np.random.default_rng(0))
