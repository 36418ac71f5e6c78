import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from scipy.special import logsumexp

from manymetrics.collect import sample_bank
from manymetrics.encode import Convolution, Training
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
from manymetrics.measure.transfer import NEEDED, choose_score, measure_row
from manymetrics.store import Run
from manymetrics.values import Examples, Material, Task, TaskBank, Texts

SMALL = Convolution(window=3, width=8, dropout=0.2)
SHORT = Training(steps=60, check_every=20, learning_rate=0.02, batch=16)


def at_once(material):
    """Work done here and now, one unit after the other."""
    return lambda stage, do, units: {unit.name: do(unit, material) for unit in units}


def material_of(bank, words):
    return Material(bank, {words.fingerprint: words})


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


def measure(bank, words, models=None, *, work=None, **options):
    """S of a bank, from models nobody trained unless there are others."""
    material = material_of(bank, words)
    models = random_models(bank) if models is None else models
    return measure_transfer(models, material, work or at_once(material), words=words, **options)


def called(n):
    return [f"task-{number}" for number in range(n)]


@given(st.integers(2, 20), st.integers(0, 250), st.integers(0, 99))
def test_as_many_pairs_as_asked_for_are_chosen_in_both_directions(n, pairs, seed):
    chosen = choose_pairs(called(n), pairs, seed)
    assert (chosen == chosen.T).all()
    assert not chosen.diagonal().any()
    assert chosen.sum() == 2 * min(pairs, n * (n - 1) // 2)


def test_a_small_bank_is_measured_whole_and_a_large_one_in_part():
    assert choose_pairs(called(500), None, 0).sum() == 500 * 499
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


@pytest.mark.parametrize("score", ["accuracy", "logme"])
def test_a_score_of_features_fills_the_matrix_and_leaves_the_diagonal_missing(tiny_bank, vectors, score):
    transfer = measure(tiny_bank, vectors, score=score)
    assert transfer.score == score
    assert transfer.names == tiny_bank.names
    assert np.isnan(transfer.scores.diagonal()).all()
    assert np.isfinite(transfer.scores[~np.eye(4, dtype=bool)]).all()


def test_what_was_not_measured_is_missing_and_never_zero(tiny_bank, vectors):
    models = random_models(tiny_bank)
    del models["animal-1"]
    scores = measure(tiny_bank, vectors, models, pairs=3).scores
    assert np.isnan(scores[tiny_bank.names.index("animal-1")]).all()
    assert np.isnan(scores[~choose_pairs(tiny_bank.names, 3, 0)]).all()
    assert not (scores == 0).any()


def test_what_was_measured_before_is_taken_over_and_not_measured_again(tiny_bank, vectors):
    first = measure(tiny_bank, vectors, pairs=3)
    marked = replace(first, scores=first.scores + 100)
    asked = []

    def work(stage, do, units):
        asked.extend((unit.name, target) for unit in units for target in unit.parts)
        return at_once(material_of(tiny_bank, vectors))(stage, do, units)

    scores = measure(tiny_bank, vectors, work=work, before=marked).scores
    there = np.isfinite(first.scores)
    assert (scores[there] == marked.scores[there]).all()
    assert np.array_equal(scores[~there], measure(tiny_bank, vectors).scores[~there], equal_nan=True)
    assert len(asked) == 4 * 3 - there.sum() == 6


def test_a_unit_that_failed_for_good_leaves_its_row_missing(tiny_bank, vectors):
    def work(stage, do, units):
        return at_once(material_of(tiny_bank, vectors))(stage, do, [unit for unit in units if unit.name != "colour-0"])

    scores, gone = measure(tiny_bank, vectors, work=work).scores, tiny_bank.names.index("colour-0")
    assert np.isnan(scores[gone]).all()
    assert np.isfinite(np.delete(scores[:, gone], gone)).all()


def test_whole_models_are_compared_only_between_tasks_of_the_same_labels(tiny_bank, vectors):
    scores = measure(tiny_bank, vectors, score="log-loss").scores
    family = np.array([name.split("-")[0] for name in tiny_bank.names])
    same = (family[:, None] == family) & ~np.eye(4, dtype=bool)
    assert np.isfinite(scores[same]).all()
    assert np.isnan(scores[~same]).all()
    no_pair = tiny_bank.only(["animal-0", "colour-0"])
    assert np.isnan(measure(no_pair, vectors, score="log-loss").scores).all()


def test_a_log_loss_is_that_of_the_whole_model_as_it_is(tiny_bank, vectors):
    models = random_models(tiny_bank)
    scores = measure(tiny_bank, vectors, models, score="log-loss").scores
    model = open_task_model(tiny_bank["animal-0"], vectors, models["animal-0"])
    assert (model.name, model.labels) == ("animal-0", ("bird", "cat", "fish"))
    target = tiny_bank["animal-1"].labelled_valid
    logits = (model.encoder.encode(target.texts) @ model.head.weights).astype(np.float64)
    expected = (logits[np.arange(len(target)), target.labels] - logsumexp(logits, axis=1)).mean()
    found = scores[tiny_bank.names.index("animal-0"), tiny_bank.names.index("animal-1")]
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_task_without_valid_examples_is_measured_on_its_train_ones(make_bank, vectors):
    bare = make_bank(valid=False)
    found = {score: measure(bare, vectors, score=score).scores[0, 1] for score in ("accuracy", "logme", "log-loss")}
    assert np.isfinite(list(found.values())).all(), found


def test_without_valid_examples_no_example_is_answered_by_a_head_that_saw_it(vectors):
    """Sixty different texts with labels drawn by lot: out of fold nobody beats chance, whatever the features."""
    rng = np.random.default_rng(0)
    texts = tuple(f"thing{number} that{number} stuff{number}" for number in range(60))
    noise = Task("noise", Examples(texts, tuple(rng.permutation(["yes", "no"] * 30).tolist())))
    bank = TaskBank((noise, Task("twin", noise.train)))
    wide = random_models(bank, width=64)  # more features than examples: in fold every answer would be right
    assert measure(bank, vectors, wide, score="accuracy").scores[0, 1] < 0.75


def test_a_label_with_one_example_is_measured(vectors):
    lone = Task("lone", Examples(("a b", "a c", "a d", "e f"), ("x", "x", "x", "y")))
    bank = TaskBank((lone, Task("other", Examples(("p", "q"), ("x", "y")))))
    for score in ("accuracy", "logme", "log-loss"):
        assert np.isfinite(measure(bank, vectors, score=score).scores[[0, 1], [1, 0]]).all(), score


def test_an_unknown_score_is_refused(tiny_bank, vectors):
    with pytest.raises(RecipeError, match=r"There is no score 'f1'\. Choose one of auto, accuracy, log-loss, logme\."):
        measure(tiny_bank, vectors, score="f1")


def test_a_units_parts_are_its_targets_and_their_content(tiny_bank, vectors):
    units = []
    measure(tiny_bank, vectors, work=lambda stage, do, found: units.extend(found) or {})
    assert [unit.name for unit in units] == list(tiny_bank.names)
    assert units[0].parts == {name: tiny_bank[name].fingerprint for name in tiny_bank.names[1:]}
    assert units[0].spec["words"] == vectors.fingerprint
    assert json.dumps(units[0].spec)


@pytest.mark.parametrize("score", ["accuracy", "logme"])
def test_a_cell_is_the_same_to_the_bit_whatever_is_measured_beside_it(vectors, score):
    bank = TaskBank(sample_bank(0, tasks=16).tasks[:6])
    models = random_models(bank, width=40)
    whole = measure(bank, vectors, models, score=score).scores
    units = []
    measure(bank, vectors, models, work=lambda stage, do, found: units.extend(found) or {}, score=score)
    for name, mark in units[0].parts.items():
        cell = json.loads(measure_row(replace(units[0], parts={name: mark}), material_of(bank, vectors)))
        assert cell == {name: whole[0, bank.names.index(name)]}


def test_texts_that_were_cut_before_are_not_cut_again_for_each_row(make_bank, vectors, monkeypatch):
    bank = make_bank(valid=False)
    for task in bank:
        vectors.tokens(task.train.texts)

    def refuse(*_):
        raise AssertionError("these texts were cut before")

    monkeypatch.setattr(type(vectors.tokenizer), "cut", refuse)
    assert np.isfinite(measure(bank, vectors, score="logme").scores[0, 1])


class Counting:
    """An engine with a run that notes what it was asked to do."""

    def __init__(self, material, folder):
        self.material, self.folder, self.done = material, folder, {}

    def __call__(self, stage, do, units):
        def noted(unit, shared):
            self.done.setdefault(stage, {})[unit.name] = sorted(unit.parts)
            return do(unit, shared)

        with Run.open(self.folder) as run, Engine(self.material, run=run) as engine:
            return engine(stage, noted, units)


def redone(bank, words, folder, *, pairs=None):
    """What is computed for a bank beyond what the folder holds, and S."""
    material = material_of(bank, words)
    work = Counting(material, folder)
    training = replace(SHORT, steps=2)
    models = train_task_models(material, work, words=words, convolution=SMALL, training=training, seed=0)
    return work.done, measure_transfer(models, material, work, words=words, pairs=pairs).scores


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


def test_encoders_serve_tasks_of_their_own_family_better(make_bank, vectors):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    material = material_of(make_bank(3, size=8), vectors)
    sizes = {"convolution": SMALL, "training": SHORT, "seed": 0}
    models = train_task_models(material, at_once(material), words=vectors, **sizes)
    scores = measure(material.bank, vectors, models, score="logme").scores
    family = np.array([name.split("-")[0] for name in material.bank.names])
    within = (family[:, None] == family) & ~np.eye(6, dtype=bool)
    across = family[:, None] != family
    assert scores[within].mean() > scores[across].mean() + 0.05


def labelled(name, *labels):
    return Task(name, Examples(Texts("abcd"), labels * 2))


def test_tasks_that_share_their_labels_are_compared_by_the_answers_themselves_others_by_features(vectors):
    same = TaskBank((labelled("a", "yes", "no"), labelled("b", "yes", "no")))
    other = TaskBank((labelled("a", "yes", "no"), labelled("b", "up", "down")))
    assert choose_score(same, "auto") == measure(same, vectors).score == "log-loss"
    assert choose_score(same, "logme") == "logme"
    assert choose_score(other, "auto") == measure(other, vectors).score == "logme"
    assert choose_score(other, "accuracy") == "accuracy"
