"""A residual projection of a frozen encoder: its gradient, what planted noise teaches it, and how it is stored."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import ProjectionEncoder, normalize, random_vectors
from manymetrics.encode.projection import (
    EpisodeArrays,
    TaskArrays,
    fit_projection,
    gradients,
    log_likelihood,
    mean_loss,
)
from manymetrics.encode.representation import Fitted
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.episodes import groups_by_label
from manymetrics.errors import DataError, NotEnoughExamples

WIDTH, SIGNAL = 8, 4  # features that say something; behind them those that are noise
QUICK = ProjectionTraining(steps=200, check_every=20, learning_rate=5e-3, dropout=0.0, ways=4, shots=2, queries=16)
WORDS = random_vectors(rows=256, dimensions=8)


def planted_task(seed, *, labels=4, each=8, noise=2.0, width=WIDTH, shuffled=False):
    """Each label points somewhere among the features that say something; the others are larger and say nothing."""
    rng = np.random.default_rng(seed)
    means = np.hstack([rng.standard_normal((labels, SIGNAL)), np.zeros((labels, width - SIGNAL))])
    places = np.repeat(np.arange(labels), each)

    def rows(means):
        sizes = np.repeat([0.2, noise], [SIGNAL, width - SIGNAL])
        return normalize((means + sizes * rng.standard_normal(means.shape)).astype(np.float32))

    texts, labels = rows(means[places]), rng.permutation(places) if shuffled else places
    return TaskArrays(texts, labels, rows(means), groups_by_label(labels))


def problem_of(task, shots=3):
    """The first texts of each label are given, the others are asked."""
    given = np.concatenate([np.flatnonzero(task.labels == label)[:shots] for label in range(len(task.names))])
    asked = np.setdiff1d(np.arange(len(task.labels)), given)
    return EpisodeArrays(task.rows[given], task.labels[given], task.names, task.rows[asked], task.labels[asked])


TASKS = [planted_task(seed) for seed in range(8)]
HELD_OUT = [problem_of(planted_task(seed)) for seed in range(100, 104)]
START = Fitted({"matrix": np.zeros((WIDTH, WIDTH), np.float32)})


def fit(tasks=TASKS, held_out=HELD_OUT, training=QUICK, *, seed=0, start=None):
    return fit_projection(tasks, held_out, training, rng=np.random.default_rng(seed), start=start)


# --- the loss and its gradient


def test_the_likelihood_is_that_of_prototypes_by_hand():
    rng = np.random.default_rng(0)
    problem, matrix = problem_of(TASKS[0]), rng.standard_normal((WIDTH, WIDTH)) * 0.3

    def moved(rows):
        found = rows @ (np.eye(WIDTH) + matrix)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    prototypes = np.stack([
        np.vstack([moved(problem.support[problem.labels == label]), moved(problem.names)[[label]]]).mean(axis=0)
        for label in range(4)
    ])  # fmt: skip
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    logits = 7 * moved(problem.query) @ prototypes.T
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = logs[np.arange(len(logits)), problem.answers].mean()
    matrix = matrix.astype(np.float32)
    assert log_likelihood(matrix, 7.0, problem) == pytest.approx(expected, abs=1e-5)
    others = [problem_of(task) for task in TASKS[1:3]]
    mean = np.mean([log_likelihood(matrix, 7.0, episode) for episode in (problem, *others)])
    fitted = Fitted({"matrix": matrix}, 7.0)
    assert mean_loss(fitted, [problem, *others]) == pytest.approx(-mean)
    assert mean_loss(fitted, []) == np.inf


def test_the_written_out_gradient_is_that_of_finite_differences():
    rng, tiny = np.random.default_rng(0), 1e-4
    parts = vars(problem_of(TASKS[0])).values()
    problem = EpisodeArrays(*(part.astype(np.float64) if part.dtype.kind == "f" else part for part in parts))
    at = np.append(0.3 * rng.standard_normal(WIDTH**2), np.log(6.0))  # the matrix and the logarithm of the temperature

    def loss(point):
        return -log_likelihood(point[:-1].reshape(WIDTH, WIDTH), float(np.exp(point[-1])), problem)

    steps = tiny * np.eye(len(at))
    expected = [(loss(at + step) - loss(at - step)) / (2 * tiny) for step in steps]
    by_matrix, by_log = gradients(at[:-1].reshape(WIDTH, WIDTH), at[-1], problem, 0.0, rng)
    np.testing.assert_allclose([*by_matrix.ravel(), *by_log], expected, atol=1e-5)


# --- training


def test_training_makes_held_out_problems_likelier_where_some_directions_are_noise():
    found = fit()
    assert found.n_steps > 0
    assert mean_loss(found, HELD_OUT) < mean_loss(START, HELD_OUT) - 0.2
    length = np.linalg.norm(np.eye(WIDTH) + found.tensors["matrix"], axis=1)  # of what each feature becomes
    assert length[SIGNAL:].max() < length[:SIGNAL].min()


def test_the_start_is_kept_when_nothing_helps():
    noise = [planted_task(seed, shuffled=True) for seed in range(4)]
    start = fit()
    found = fit(noise, training=replace(QUICK, learning_rate=0.5), start=start)
    assert found.n_steps == 0
    assert (found.tensors["matrix"] == start.tensors["matrix"]).all()
    assert found.temperature == pytest.approx(start.temperature)
    nowhere = fit(noise, training=replace(QUICK, learning_rate=0.5))
    assert (nowhere.n_steps, nowhere.tensors["matrix"].any(), nowhere.temperature) == (0, False, pytest.approx(10.0))


def test_what_does_best_on_the_held_out_problems_is_kept_and_not_what_came_last():
    """A task of few texts teaches which directions are noise at first, and then its own texts."""
    few, long = [planted_task(0, labels=3, each=3)], replace(QUICK, learning_rate=0.02, steps=400, check_every=5)
    best, last = fit(few, training=long), fit(few, [], training=long)
    assert last.n_steps == 400
    assert 0 < best.n_steps < 400
    assert mean_loss(best, HELD_OUT) < mean_loss(last, HELD_OUT)


def test_tasks_that_pose_no_problem_are_refused_where_there_are_no_others():
    lone = planted_task(0, each=1)  # no label has a second text
    one = planted_task(1, labels=1)
    for tasks in ([lone], [one], [lone, one], []):
        with pytest.raises(NotEnoughExamples, match="two labels that have two train examples each, and there is none"):
            fit(tasks, [])
    assert (fit([lone, *TASKS]).tensors["matrix"] != 0).any()


def test_a_loss_that_is_not_finite_ends_the_training_with_an_error():
    odd = replace(HELD_OUT[0], query=np.full_like(HELD_OUT[0].query, np.nan))
    with pytest.raises(DataError, match=r"The loss on the held-out tasks is nan after 0 steps"):
        fit(held_out=[*HELD_OUT, odd])
    empty = replace(HELD_OUT[0], query=HELD_OUT[0].query[:0], answers=HELD_OUT[0].answers[:0])
    with pytest.raises(DataError, match="has no text to answer"):
        fit(held_out=[empty])


def test_the_same_seed_gives_the_same_bits_and_the_start_is_not_changed():
    start = fit(seed=1)
    before = start.tensors["matrix"].copy()
    one, other = (fit(seed=2, start=start) for _ in range(2))
    assert one.tensors["matrix"].tobytes() == other.tensors["matrix"].tobytes()
    assert (start.tensors["matrix"] == before).all()
    assert (fit(seed=3, start=start).tensors["matrix"] != one.tensors["matrix"]).any()


# --- the encoder


def test_a_row_is_one_of_length_one_and_what_the_matrix_adds():
    matrix = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    texts = ["turn on the lamp", "music", ""]
    rows = normalize(WORDS.encode(texts))
    np.testing.assert_allclose(ProjectionEncoder(WORDS, matrix).encode(texts), rows @ (np.eye(8) + matrix), atol=1e-5)
    assert (ProjectionEncoder(WORDS, np.zeros((8, 8), np.float32)).encode(texts) == rows).all()


def test_a_matrix_that_is_not_square_is_refused():
    for shape in ((8, 7), (8,)):
        with pytest.raises(DataError, match=r"a projection has a matrix of shape \(8,.*which is not square"):
            ProjectionEncoder(WORDS, np.zeros(shape, np.float32))
