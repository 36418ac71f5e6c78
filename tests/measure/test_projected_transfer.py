"""S by projections: each task's own step away from the encoder, and how likely it makes the answers of the others."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import unit_rows
from manymetrics.encode.projection import START_TEMPERATURE, FittedProjection, Problem, log_likelihood
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.engine import Engine
from manymetrics.measure import measure_projected_transfer, train_task_projections
from manymetrics.measure.projections import open_projection, pack_projection, task_problem, task_rows
from manymetrics.store import Run
from manymetrics.values import Examples, Material, Task, TaskBank, TransferMatrix
from planted_numbers import WIDTH, Numbers, at_once, material_of, planted_task

OWN = ProjectionTraining(steps=60, check_every=60, learning_rate=0.02, dropout=0.0, ways=4, shots=2, queries=16)


BASE = Numbers()


def planted_bank(each=3):
    """Two families of tasks, which look at different features."""
    first, second = [0, 1, 2, 3], [4, 5, 6, 7]
    families = [(f"first-{number}", first, number) for number in range(each)]
    families += [(f"second-{number}", second, 10 + number) for number in range(each)]
    return TaskBank(tuple(planted_task(*one) for one in families))


def train(material, work=None, *, seed=0):
    work = work or at_once(material)
    return train_task_projections(material, work, base=BASE, training=OWN, seed=seed)


def measure(projections, material, work=None, **options):
    work = work or at_once(material)
    return measure_projected_transfer(projections, material, work, base=BASE, **{"pairs": None, "seed": 0, **options})


@pytest.fixture(scope="module")
def material():
    return material_of(planted_bank(), BASE)


@pytest.fixture(scope="module")
def projections(material):
    return train(material)


def test_planted_families_come_out_with_higher_scores_within(material, projections):
    transfer = measure(projections, material)
    assert (transfer.names, transfer.score) == (material.bank.names, "log-likelihood")
    together = np.equal.outer(np.arange(6) // 3, np.arange(6) // 3)
    for target in range(6):
        others = np.arange(6) != target
        within, across = (
            transfer.scores[others & side, target] for side in (together[:, target], ~together[:, target])
        )
        assert within.min() > across.max()
    assert np.nanmax(transfer.scores) <= 0
    assert np.isnan(np.diag(transfer.scores)).all()


def test_a_score_is_the_mean_log_likelihood_of_the_valid_texts_by_hand(material, projections):
    names = material.bank.names
    scores = measure(projections, material).scores
    for source, target in (("first-0", "first-1"), ("second-2", "first-0")):
        projection = replace(open_projection(projections[source]), temperature=START_TEMPERATURE)
        expected = log_likelihood(projection, task_problem(material.bank[target], BASE, seed=0))
        assert scores[names.index(source), names.index(target)] == pytest.approx(expected)


def test_the_problem_of_a_task_is_always_the_same_and_its_texts_to_answer_were_not_given(material):
    task = material.bank.tasks[0]
    one, other = (task_problem(task, BASE, seed=0) for _ in range(2))
    assert all((mine == theirs).all() for mine, theirs in zip(vars(one).values(), vars(other).values(), strict=True))
    assert isinstance(one, Problem)
    assert np.bincount(one.labels).tolist() == [6] * 4
    valid = {tuple(row) for row in unit_rows(BASE.encode(task.valid.texts)).round(4).tolist()}
    assert {tuple(row) for row in one.query.round(4).tolist()} == valid
    few = task_problem(task, BASE, seed=0, shots=2, queries=5)
    assert (np.bincount(few.labels).tolist(), len(few.query)) == ([2] * 4, 5)
    bare = planted_task("bare", [0, 1], 0, valid=False)
    split = task_problem(bare, BASE, seed=0)
    given, asked = ({tuple(row) for row in rows.round(4).tolist()} for rows in (split.support, split.query))
    assert not given & asked
    assert len(given) + len(asked) == len(bare.train)


def test_a_task_is_trained_on_its_train_texts_from_the_encoder_as_it_is(material, projections):
    rows = task_rows(material.bank.tasks[0], BASE)
    assert (rows.rows.shape, rows.names.shape) == ((24, WIDTH), (4, WIDTH))
    np.testing.assert_allclose(np.linalg.norm(rows.rows, axis=1), 1, atol=1e-5)
    found = open_projection(projections["first-0"])
    assert found.steps == OWN.steps
    assert found.matrix.any()
    still = ProjectionTraining(steps=1, check_every=1, learning_rate=1e-9, dropout=0.0)
    kept = train_task_projections(material, at_once(material), base=BASE, training=still, seed=0)
    np.testing.assert_allclose(open_projection(kept["first-0"]).matrix, 0, atol=1e-6)


def test_no_test_text_changes_a_projection(material, projections):
    def with_test(task):
        return Task(task.name, task.train, task.valid, Examples(("0 0 0 0 0 0 0 1",), ("label 0",)))

    seeing = Material(TaskBank(tuple(with_test(task) for task in material.bank)).without_tests(), material.encoders)
    assert train(seeing) == projections


def test_only_chosen_pairs_are_measured_and_what_is_known_is_kept(material, projections):
    some = measure(projections, material, pairs=10)
    known = np.isfinite(some.scores)
    assert 10 <= known.sum() < 30
    whole = measure(projections, material)
    np.testing.assert_array_equal(some.scores[known], whole.scores[known])
    planted = TransferMatrix(some.names, np.where(known, -9.0, np.nan), some.score)
    more = measure(projections, material, before=planted)
    assert (more.scores[known] == -9).all()
    np.testing.assert_array_equal(more.scores[~known], whole.scores[~known])


def test_a_task_without_a_projection_has_an_empty_row(material, projections):
    without = {name: one for name, one in projections.items() if name != "first-1"}
    scores = measure(without, material).scores
    assert np.isnan(scores[1]).all()
    assert np.isfinite(np.delete(scores, 1, axis=0)[:, 1]).all()


def test_the_bits_are_the_same_with_one_worker_and_with_two_and_out_of_a_run(material, projections, tmp_path):
    one = measure(projections, material)
    with Engine(material, workers=2) as work:
        assert train(material, work) == projections
        np.testing.assert_array_equal(measure(projections, material, work).scores, one.scores)
    asked = []
    for _ in range(2):
        with Run.open(tmp_path / "run", "") as run, Engine(material, run=run, report=asked.append) as work:
            np.testing.assert_array_equal(measure(train(material, work), material, work).scores, one.scores)
    assert asked[-1].kept == 6


def test_a_projection_comes_back_from_its_file():
    fitted = FittedProjection(np.arange(4, dtype=np.float32).reshape(2, 2), 7.5, 12)
    again = open_projection(pack_projection(fitted))
    assert ((again.matrix == fitted.matrix).all(), again.temperature, again.steps) == (True, 7.5, 12)


def test_another_seed_draws_other_episodes(material, projections):
    other = train(material, seed=1)
    assert set(other) == set(projections)
    assert all(other[name] != projections[name] for name in projections)
