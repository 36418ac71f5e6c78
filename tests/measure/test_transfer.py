"""S: a state trained on each task, and how well it serves the others; here by projections of texts that are numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import ProjectionRepresentation, normalize
from manymetrics.encode.projection import START_TEMPERATURE, EpisodeArrays, log_likelihood
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.engine import Engine
from manymetrics.measure import choose_pairs, fit_single_tasks, measure_transfer, pairs_needed, pairs_to_measure
from manymetrics.measure.transfer import NEEDED
from manymetrics.store import Run, packed
from manymetrics.values import Examples, SharedData, Task, TaskBank, TransferMatrix
from planted_numbers import WIDTH, Numbers, at_once, planted_bank, planted_task

OTHERS = ~np.eye(6, dtype=bool)
TRAINING = ProjectionTraining(steps=60, check_every=60, learning_rate=0.02, dropout=0.0, ways=4, shots=2, queries=16)
BASE = Numbers()
REPRESENTATION = ProjectionRepresentation(BASE, TRAINING)


def fit(shared_data, run_jobs=None, *, seed=0, representation=REPRESENTATION):
    return fit_single_tasks(representation, shared_data, run_jobs or at_once(shared_data), seed=seed)


def measure(single, shared_data, run_jobs=None, **options):
    return measure_transfer(REPRESENTATION, single, shared_data, run_jobs or at_once(shared_data), **options)


def payloads(single):
    return {name: packed.dump(fitted) for name, fitted in single.items()}


def with_no_query(name):
    """One train example of each label, and no valid ones."""
    return Task(name, Examples(("1 0 0 0 0 0 0 0", "0 1 0 0 0 0 0 0"), ("label 0", "label 1")))


@pytest.fixture(scope="module")
def shared_data():
    return SharedData(planted_bank(3), BASE)


@pytest.fixture(scope="module")
def single(shared_data):
    return fit(shared_data)


# --- a state of each task


def test_a_task_is_trained_on_its_train_texts_from_the_encoder_as_it_is(shared_data, single):
    assert single["first-0"].n_steps == TRAINING.steps
    assert single["first-0"].tensors["matrix"].any()
    still = replace(REPRESENTATION, training=replace(TRAINING, steps=1, learning_rate=1e-9))
    np.testing.assert_allclose(fit(shared_data, representation=still)["first-0"].tensors["matrix"], 0, atol=1e-6)


# --- scores


def test_planted_families_come_out_with_higher_scores_within(shared_data, single):
    transfer = measure(single, shared_data)
    assert (transfer.names, transfer.score) == (shared_data.bank.names, "log-likelihood")
    together = np.equal.outer(np.arange(6) // 3, np.arange(6) // 3)
    for target in range(6):
        others = np.arange(6) != target
        within, across = (
            transfer.scores[others & side, target] for side in (together[:, target], ~together[:, target])
        )
        assert within.min() > across.max()
    assert np.nanmax(transfer.scores) <= 0
    assert np.isnan(np.diag(transfer.scores)).all()


def test_a_score_is_the_mean_log_likelihood_of_the_queries_at_one_temperature(shared_data, single):
    names = shared_data.bank.names
    scores = measure(single, shared_data).scores
    for source, target in (("first-0", "first-1"), ("second-2", "first-0")):
        arrays = EpisodeArrays.of(REPRESENTATION.episode(shared_data.bank[target], seed=0), BASE)
        expected = log_likelihood(single[source].tensors["matrix"], START_TEMPERATURE, arrays)
        assert scores[names.index(source), names.index(target)] == pytest.approx(expected)


def test_the_episode_of_a_task_is_always_the_same_and_its_queries_are_not_in_its_support(shared_data):
    task = shared_data.bank.tasks[0]
    first, second = (REPRESENTATION.episode(task, seed=0) for _ in range(2))
    assert (first.support.texts, first.query.texts) == (second.support.texts, second.query.texts)
    assert np.bincount(first.support.numbers).tolist() == [6] * 4
    assert set(first.query.texts) == set(task.valid.texts)
    bare = planted_task("bare", [0, 1], 0, valid=False)
    split = REPRESENTATION.episode(bare, seed=0)
    assert not set(split.support.texts) & set(split.query.texts)
    assert len(split.support) + len(split.query) == len(bare.train)
    arrays = EpisodeArrays.of(split, BASE)
    assert (arrays.support == normalize(BASE.encode(split.support.texts))).all()
    assert arrays.names.shape == (4, WIDTH)
    assert REPRESENTATION.episode(with_no_query("lone"), seed=0) is None


def test_only_chosen_pairs_are_measured_and_known_scores_are_taken_over(shared_data, single):
    some = measure(single, shared_data, pairs=10)
    known = np.isfinite(some.scores)
    assert (known == choose_pairs([task.content for task in shared_data.bank], 10, 0)).all()
    every = measure(single, shared_data)
    np.testing.assert_array_equal(some.scores[known], every.scores[known])
    planted, asked = TransferMatrix(some.names, np.where(known, -9.0, np.nan), some.score), []

    def run_jobs(stage, do, jobs):
        asked.extend((job.name, target) for job in jobs for target in job.parts)
        return at_once(shared_data)(stage, do, jobs)

    more = measure(single, shared_data, run_jobs, known=planted)
    assert (more.scores[known] == -9).all()
    np.testing.assert_array_equal(more.scores[~known], every.scores[~known])
    assert len(set(asked)) == len(asked) == 30 - known.sum()


def test_a_target_without_a_query_has_an_empty_column(single):
    bank = planted_bank(3)
    scores = measure(single, SharedData(TaskBank((*bank.tasks, with_no_query("lone"))), BASE)).scores
    assert np.isnan(scores[:, -1]).all()
    assert np.isfinite(scores[:6, :6][OTHERS]).all()


def test_a_task_without_a_state_or_whose_job_failed_has_an_empty_row(shared_data, single):
    without = {name: fitted for name, fitted in single.items() if name != "first-1"}

    def lossy(stage, do, jobs):
        return {job.name: do(job, shared_data) for job in jobs if job.name != "first-1"}

    for scores in (measure(without, shared_data).scores, measure(single, shared_data, lossy).scores):
        assert np.isnan(scores[1]).all()
        assert np.isfinite(np.delete(scores, 1, axis=0)[:, 1]).all()


# --- jobs


def test_the_bits_are_the_same_with_one_worker_and_with_two_and_out_of_a_run(shared_data, single, tmp_path):
    expected = measure(single, shared_data).scores
    with Engine(shared_data, workers=2) as run_jobs:
        assert payloads(fit(shared_data, run_jobs)) == payloads(single)
        np.testing.assert_array_equal(measure(single, shared_data, run_jobs).scores, expected)
    asked = []
    for _ in range(2):
        with Run.open(tmp_path / "run", "") as run, Engine(shared_data, run=run, report=asked.append) as run_jobs:
            np.testing.assert_array_equal(measure(fit(shared_data, run_jobs), shared_data, run_jobs).scores, expected)
    assert asked[-1].kept == 6


def redone(bank, folder, *, pairs=None):
    """What is computed for a bank beyond what the folder holds, by stage and job, and S."""
    shared_data, done = SharedData(bank, BASE), {}

    def run_jobs(stage, do, jobs):
        def noted(job, shared):
            done.setdefault(stage, {})[job.name] = sorted(job.parts)
            return do(job, shared)

        with Run.open(folder) as run, Engine(shared_data, run=run) as engine:
            return engine(stage, noted, jobs)

    scores = measure(fit(shared_data, run_jobs), shared_data, run_jobs, pairs=pairs).scores
    return done, scores


def test_one_task_changed_or_added_redoes_its_training_its_row_and_its_column_and_nothing_else(tmp_path):
    bank = planted_bank(3)
    before, changed, later = bank.tasks[:5], bank.tasks[1], bank.tasks[5]
    others = [task.name for task in before if task.name != changed.name]
    redone(TaskBank(before), tmp_path)
    shorter = Task(changed.name, changed.train.take(range(1, 18)), Examples(), changed.test)
    after = [shorter if task.name == changed.name else task for task in before]

    done, _ = redone(TaskBank(tuple(after)), tmp_path)
    assert done["measure-models"] == {changed.name: []}
    assert done["measure-transfer"] == {changed.name: sorted(others), **{name: [changed.name] for name in others}}

    done, scores = redone(TaskBank((*after, later)), tmp_path)
    assert done["measure-models"] == {later.name: []}
    assert done["measure-transfer"] == {
        later.name: sorted(task.name for task in after),
        **{task.name: [later.name] for task in after},
    }
    _, straight = redone(TaskBank((*after, later)), tmp_path / "straight")
    assert np.array_equal(scores, straight, equal_nan=True)

    done, _ = redone(TaskBank((*after, later)), tmp_path)
    assert done == {}
    done, _ = redone(TaskBank((*after, later)), tmp_path, pairs=7)
    assert done == {}, "fewer pairs are among those measured"


# --- which pairs of tasks are measured


def called(n):
    return [f"task-{number}" for number in range(n)]


@given(st.integers(2, 20), st.integers(0, 250), st.integers(0, 99))
def test_as_many_pairs_as_asked_for_are_chosen_in_both_directions(n, pairs, seed):
    chosen = choose_pairs(called(n), pairs, seed)
    assert (chosen == chosen.T).all()
    assert not chosen.diagonal().any()
    assert chosen.sum() == 2 * min(pairs, n * (n - 1) // 2)


def test_a_small_bank_is_measured_completely_and_a_large_one_in_part():
    assert choose_pairs(called(500), None, 0).sum() == 500 * 499
    assert choose_pairs(called(1000), None, 0).sum() == 2 * int(1000 * np.log(1000) ** 2 / 2)


def test_of_a_large_bank_pairs_are_measured_until_enough_are_similar():
    n = 1000
    first, every = pairs_to_measure(n), n * (n - 1) // 2
    needed = NEEDED * np.log(n)
    assert pairs_needed(n, needed) == first
    assert pairs_needed(n, 2 * needed) == first, "never fewer than were measured"
    assert pairs_needed(n, needed / 4) == pytest.approx(4 * first, rel=1e-3)
    assert pairs_needed(n, 1e-9) == every
    assert pairs_needed(n, 0.0) == first, "where nothing is similar, more of the same does not help"
    assert pairs_needed(200, 0.01) == 200 * 199 // 2


def test_pairs_are_drawn_evenly_from_all_tasks():
    share = choose_pairs(called(1000), None, 0).mean(axis=0)
    assert share.min() > 0.5 * share.mean()
    assert share.max() < 1.6 * share.mean()
    assert (choose_pairs(called(50), 300, 0) != choose_pairs(called(50), 300, 1)).any()


@given(st.integers(3, 20), st.integers(0, 100), st.integers(0, 100), st.integers(0, 19))
def test_more_pairs_are_the_same_and_others_and_a_task_that_joins_leaves_the_others_theirs(n, few, more, joins):
    few, more = sorted((few, more))
    names, joins = called(n), joins % n
    chosen = choose_pairs(names, few, 0)
    assert not (chosen & ~choose_pairs(names, more, 0)).any()
    without = choose_pairs([name for name in names if name != names[joins]], few, 0)
    among_others = np.delete(np.delete(chosen, joins, axis=0), joins, axis=1)
    assert not (among_others & ~without).any()
