import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from manymetrics.collect import sample_bank
from manymetrics.encode import Convolution, Training, random_vectors, read_bank
from manymetrics.engine import Engine
from manymetrics.errors import RecipeError
from manymetrics.measure import (
    choose_pairs,
    measure_transfer,
    open_task_model,
    pairs_enough,
    pairs_to_measure,
    train_task_models,
)
from manymetrics.measure.models import training_parts
from manymetrics.measure.transfer import NEEDED, choose_measure, measure_row
from manymetrics.store import Run
from manymetrics.values import Examples, Task, TaskBank, Unit

SMALL = Convolution(window=3, width=8, dropout=0.2)
SHORT = Training(steps=60, check_every=20, learning_rate=0.02, batch=16)


def at_once(bank):
    """Work done here and now, one unit after the other."""
    return lambda stage, do, units: {unit.name: do(unit, bank) for unit in units}


def random_models(bank, seed=0, width=8):
    """Encoders and heads nobody trained, as bytes."""
    rng = np.random.default_rng(seed)
    tensors = {"filters": (3, 16, width), "bias": (width,)}
    return {
        task.name: save(
            {name: rng.standard_normal(shape).astype(np.float32) for name, shape in tensors.items()}
            | {"head": rng.standard_normal((width, len(task.labels))).astype(np.float32)}
            | {"offset": np.zeros(len(task.labels), dtype=np.float32)}
        )
        for task in bank
    }


@pytest.fixture(scope="module")
def read(tiny_bank, vectors):
    return read_bank(tiny_bank, vectors)


def called(n):
    return [f"task-{number}" for number in range(n)]


@given(st.integers(2, 20), st.integers(0, 250), st.integers(0, 99))
def test_as_many_pairs_as_asked_for_are_chosen_in_both_directions(n, pairs, seed):
    chosen = choose_pairs(called(n), pairs, seed)
    assert (chosen == chosen.T).all()
    assert not chosen.diagonal().any()
    assert chosen.sum() == 2 * min(pairs, n * (n - 1) // 2)


def test_a_small_bank_is_measured_whole_and_a_large_one_in_part():
    assert choose_pairs(called(300), None, 0).sum() == 300 * 299
    assert choose_pairs(called(1000), None, 0).sum() == 2 * int(1000 * np.log(1000) ** 2 / 2)


def test_of_a_large_bank_pairs_are_measured_until_enough_are_alike():
    n = 1000
    first, every = pairs_to_measure(n), n * (n - 1) // 2
    needed = NEEDED * np.log(n)
    assert pairs_enough(n, needed) == first
    assert pairs_enough(n, 2 * needed) == first, "never fewer than were measured"
    assert pairs_enough(n, needed / 4) == pytest.approx(4 * first, rel=1e-3)
    assert pairs_enough(n, 1e-9) == every
    assert pairs_enough(n, 0.0) == first, "where nothing is alike, more of the same does not help"
    assert pairs_enough(200, 0.01) == 200 * 199 // 2


def test_pairs_are_drawn_by_lot_from_all_tasks_alike():
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


@pytest.mark.parametrize("score", ["accuracy", "balanced-accuracy", "log-loss", "logme"])
def test_every_score_fills_the_matrix_and_leaves_the_diagonal_missing(read, score):
    transfer = measure_transfer(random_models(read), read, at_once(read), score=score)
    assert transfer.score == score
    assert np.isnan(transfer.scores.diagonal()).all()
    assert np.isfinite(transfer.scores[~np.eye(4, dtype=bool)]).all()


def test_what_was_not_measured_is_missing_and_never_zero(read):
    models = random_models(read)
    del models["animal-1"]
    transfer = measure_transfer(models, read, at_once(read), pairs=3)
    assert np.isnan(transfer.scores[read.names.index("animal-1")]).all()
    chosen = choose_pairs(read.names, 3, 0)
    assert np.isnan(transfer.scores[~chosen]).all()
    assert not (transfer.scores == 0).any()


def test_a_unit_that_failed_for_good_leaves_its_row_missing(read):
    def work(stage, do, units):
        return {unit.name: do(unit, read) for unit in units if unit.name != "colour-0"}

    scores = measure_transfer(random_models(read), read, work).scores
    gone = read.names.index("colour-0")
    assert np.isnan(scores[gone]).all()
    assert np.isfinite(np.delete(scores[:, gone], gone)).all()


def test_direct_scores_are_only_between_tasks_of_the_same_labels(read):
    scores = measure_transfer(random_models(read), read, at_once(read), mode="direct").scores
    family = np.array([name.split("-")[0] for name in read.names])
    same = (family[:, None] == family) & ~np.eye(4, dtype=bool)
    assert np.isfinite(scores[same]).all()
    assert np.isnan(scores[~same]).all()


def test_direct_scores_are_those_of_the_whole_model(read):
    models = random_models(read)
    scores = measure_transfer(models, read, at_once(read), mode="direct", score="accuracy").scores
    source, target = read["animal-0"], read["animal-1"]
    model = open_task_model(source.name, source.labels, read.vectors.table, models["animal-0"])
    answers = model.head.chances(model.encoder.responses(target.valid.tokens)).argmax(axis=1)
    expected = np.mean(answers == target.valid.labels)
    assert scores[read.names.index("animal-0"), read.names.index("animal-1")] == pytest.approx(expected)


@pytest.mark.parametrize("mode", ["heads", "direct"])
def test_a_task_without_valid_examples_is_measured_on_its_train_ones(make_bank, vectors, mode):
    read = read_bank(make_bank(valid=False), vectors)
    scores = measure_transfer(random_models(read), read, at_once(read), mode=mode).scores
    assert np.isfinite(scores[0, 1])


def test_without_valid_examples_no_example_is_answered_by_a_head_that_saw_it(vectors):
    """Twenty different texts with labels drawn by lot: out of fold nobody beats chance, whatever the features."""
    rng = np.random.default_rng(0)
    texts = tuple(f"thing{number} that{number} stuff{number}" for number in range(60))
    noise = Task("noise", Examples(texts, tuple(rng.permutation(["yes", "no"] * 30).tolist())))
    read = read_bank(TaskBank((noise, Task("twin", noise.train))), vectors)
    wide = random_models(read, width=64)  # more features than examples: in fold every answer would be right
    assert measure_transfer(wide, read, at_once(read)).scores[0, 1] < 0.75


def test_a_label_with_one_example_is_measured(vectors):
    lone = Task("lone", Examples(("a b", "a c", "a d", "e f"), ("x", "x", "x", "y")))
    read = read_bank(TaskBank((lone, Task("other", Examples(("p", "q"), ("x", "y"))))), vectors)
    scores = measure_transfer(random_models(read), read, at_once(read)).scores
    assert np.isfinite(scores[0, 1])
    assert np.isfinite(scores[1, 0])


def test_an_unknown_score_or_mode_is_refused(read):
    with pytest.raises(RecipeError, match=r"Found score 'f1' and mode 'heads'\. Choose a score of accuracy"):
        measure_transfer({}, read, at_once(read), score="f1")
    with pytest.raises(RecipeError, match="a mode of heads, direct"):
        measure_transfer({}, read, at_once(read), mode="both")


def test_a_units_parts_are_its_targets_and_their_content(read):
    units = []

    def work(stage, do, found):
        units.extend(found)
        return {}

    measure_transfer(random_models(read), read, work)
    assert [unit.name for unit in units] == list(read.names)
    assert units[0].parts == {name: read[name].fingerprint for name in read.names[1:]}
    assert json.dumps(units[0].spec)


@pytest.mark.parametrize("score", ["accuracy", "logme"])
def test_a_cell_is_the_same_to_the_bit_whatever_is_measured_beside_it(vectors, score):
    read = read_bank(TaskBank(sample_bank(0, tasks=16).tasks[:6]), vectors)
    models = random_models(read, width=40)
    whole = measure_transfer(models, read, at_once(read), score=score).scores
    units = []
    measure_transfer(models, read, lambda stage, do, found: units.extend(found) or {}, score=score)
    for name, mark in units[0].parts.items():
        cell = json.loads(measure_row(replace(units[0], parts={name: mark}), read))
        assert cell == {name: whole[0, read.names.index(name)]}


class Counting:
    """An engine with a run that notes what it was asked to do."""

    def __init__(self, read, folder):
        self.read, self.folder, self.done = read, folder, {}

    def __call__(self, stage, do, units):
        def noted(unit, shared):
            self.done.setdefault(stage, {})[unit.name] = sorted(unit.parts)
            return do(unit, shared)

        with Run.open(self.folder) as run, Engine(self.read, run=run) as engine:
            return engine(stage, noted, units)


def redone(bank, vectors, folder, *, pairs=None):
    """What is computed for a bank beyond what the folder holds, and S."""
    read = read_bank(bank, vectors)
    work = Counting(read, folder)
    models = train_task_models(read, work, convolution=SMALL, training=replace(SHORT, steps=2), seed=0)
    return work.done, measure_transfer(models, read, work, pairs=pairs).scores


def test_one_task_changed_or_added_redoes_its_training_its_row_and_its_column_and_nothing_else(
    make_bank, vectors, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    bank = make_bank(3)
    before, changed, later = bank.tasks[:5], bank.tasks[1], bank.tasks[5]
    others = [task.name for task in before if task.name != changed.name]
    redone(TaskBank(before), vectors, tmp_path)
    shorter = Task(changed.name, changed.train.take(range(1, 18)), changed.valid, changed.test)
    after = [shorter if task.name == changed.name else task for task in before]

    done, _ = redone(TaskBank(tuple(after)), vectors, tmp_path)
    assert done["measure-models"] == {changed.name: []}
    assert done["measure-transfer"] == {changed.name: sorted(others), **{name: [changed.name] for name in others}}

    done, scores = redone(TaskBank((*after, later)), vectors, tmp_path)
    assert done["measure-models"] == {later.name: []}
    assert done["measure-transfer"] == {
        later.name: sorted(task.name for task in after),
        **{task.name: [later.name] for task in after},
    }
    _, straight = redone(TaskBank((*after, later)), vectors, tmp_path / "straight")
    assert np.array_equal(scores, straight, equal_nan=True)

    done, _ = redone(TaskBank((*after, later)), vectors, tmp_path)
    assert done == {}
    done, _ = redone(TaskBank((*after, later)), vectors, tmp_path, pairs=7)
    assert done == {}, "fewer pairs are among those measured"


def test_training_stops_on_valid_examples_or_on_a_fifth_of_train(read, make_bank, vectors):
    train, held = training_parts(read.tasks[0], np.random.default_rng(0))
    assert (len(train), len(held)) == (18, 9)
    bare = read_bank(make_bank(valid=False), vectors).tasks[0]
    train, held = training_parts(bare, np.random.default_rng(0))
    assert np.bincount(held.labels).tolist() == [1, 1, 1]
    assert len(train) == 15


def test_encoders_serve_tasks_of_their_own_family_better(make_bank, vectors):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    read = read_bank(make_bank(3, size=8), vectors)
    models = train_task_models(read, at_once(read), convolution=SMALL, training=SHORT, seed=0)
    scores = measure_transfer(models, read, at_once(read), score="log-loss").scores
    family = np.array([name.split("-")[0] for name in read.names])
    within = (family[:, None] == family) & ~np.eye(6, dtype=bool)
    across = family[:, None] != family
    assert scores[within].mean() > scores[across].mean() + 0.1


def test_a_task_model_learned_its_task_and_only_depends_on_its_unit(tiny_bank, vectors):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    read, alone = read_bank(tiny_bank, vectors), read_bank(tiny_bank.only(["colour-1"]), vectors)
    options = {"convolution": SMALL, "training": SHORT, "seed": 3}
    payload = train_task_models(read, at_once(read), **options)["colour-1"]
    assert payload == train_task_models(alone, at_once(alone), **options)["colour-1"]
    task = read["colour-1"]
    model = open_task_model(task.name, task.labels, vectors.table, payload)
    answers = model.head.chances(model.encoder.responses(task.train.tokens)).argmax(axis=1)
    assert np.mean(answers == task.train.labels) > 0.9


def test_units_of_other_seeds_and_knobs_differ(read):
    specs = []

    def work(stage, do, units):
        specs.append(json.dumps(Unit(units[0].name, units[0].spec).spec, sort_keys=True))
        return {}

    for seed, convolution, training in ((0, SMALL, SHORT), (1, SMALL, SHORT), (0, Convolution(), SHORT)):
        train_task_models(read, work, convolution=convolution, training=training, seed=seed)
    assert len(set(specs)) == 3


def test_tasks_that_share_their_labels_are_compared_by_the_answers_themselves_others_by_features():
    same = read_bank(
        TaskBank(tuple(_labelled(name, "yes", "no") for name in "ab")), random_vectors(rows=64, dimensions=8)
    )
    other = read_bank(
        TaskBank((_labelled("a", "yes", "no"), _labelled("b", "up", "down"))), random_vectors(rows=64, dimensions=8)
    )
    assert choose_measure(same, "auto", "auto") == ("log-loss", "direct")
    assert choose_measure(same, "logme", "auto") == ("logme", "heads")
    assert choose_measure(other, "auto", "auto") == ("logme", "heads")
    assert choose_measure(other, "accuracy", "auto") == ("accuracy", "heads")


def _labelled(name, *labels):
    return Task(name, Examples(("a", "b", "c", "d"), labels * 2))
