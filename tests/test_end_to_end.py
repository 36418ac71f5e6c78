from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.errors import NotEnoughExamples
from manymetrics.values import Examples, Task, TaskBank

QUICK = mm.Recipe.fast(vectors="random", clusters=2, shots=3, own_steps=10, projection_steps=200)


@pytest.fixture(scope="module")
def sample():
    """Two families of the sample bank, and a target of each."""
    past, new = mm.sample_bank(0).split_off()
    families = sorted({name.split("-")[0] for name in past.names} - {"other"})[:2]
    kept = [name for family in families for name in past.names if name.startswith(family)][:10]
    return past.only(kept), TaskBank(tuple(task for task in new if task.name.split("-")[0] in families))


@pytest.fixture(scope="module")
def learned(sample):
    return mm.learn_metrics(sample[0], QUICK)


def test_from_a_bank_to_answers_on_unseen_tasks(sample, learned, tmp_path):
    past, new = sample
    assert sorted(learned.clusters.names) == sorted(past.names)
    names = [metric.name for metric in learned.metrics]
    assert (names[0], names[-1]) == ("projection", "word-vectors")
    assert set(names[1:-1]) <= {"cluster-0", "cluster-1"}
    assert learned.predictor.letters is not None
    taught = {name for metric in learned.metrics for name in metric.tasks}
    assert taught == set(past.names) - set(learned.held_out)
    assert learned.origin.bank_fingerprint == past.fingerprint
    learned.save(tmp_path / "model")
    evaluation = mm.evaluate(mm.load_model(tmp_path / "model"), new)
    assert [target.answered.task for target in evaluation.targets] == list(new.names)
    mean, majority = evaluation.mean()["accuracy"], evaluation.mean(of_majority=True)["accuracy"]
    assert mean.low <= mean.value <= mean.high
    assert mean.low > majority.high


def test_no_letter_of_a_test_split_reaches_the_scope_model(tiny_bank, tiny_recipe, vectors):
    blind = TaskBank(tuple(Task(task.name, task.train, task.valid) for task in tiny_bank))
    seeing, blind = (mm.learn_metrics(bank, tiny_recipe, vectors=vectors).predictor for bank in (tiny_bank, blind))
    assert (seeing.letters.rarity == blind.letters.rarity).all()
    assert seeing.fingerprint == blind.fingerprint


def test_another_seed_learns_another_model(tiny_bank, tiny_recipe, vectors):
    one, other = (
        mm.learn_metrics(tiny_bank, replace(tiny_recipe, seed=seed), vectors=vectors).metrics[0] for seed in (0, 1)
    )
    assert (one.encoder.matrix != other.encoder.matrix).any()


def test_tasks_that_share_their_labels_share_a_classifier(make_bank, tiny_recipe, vectors):
    colours = [task for task in make_bank(9, size=12) if task.name.startswith("colour")]
    model = mm.learn_metrics(colours[:8], tiny_recipe, vectors=vectors)
    assert model.metrics[-1].labels == ("blue", "green", "red")
    task = colours[8]
    answers = model.adapt(task.train.texts, task.train.labels).predict(task.test.texts)
    assert np.mean(answers == np.array(task.test.labels)) > 0.7


@pytest.mark.parametrize("objective", ["matching", "prototypical"])
def test_every_objective_of_networks_goes_through(tiny_bank, tiny_networks, vectors, objective):
    pytest.importorskip("torch", reason="torch is not installed: no network trains")
    recipe = replace(tiny_networks, convolution=replace(tiny_networks.convolution, objective=objective))
    model = mm.learn_metrics(tiny_bank, recipe, vectors=vectors)
    assert model.metrics[0].rule == objective
    assert model.transfer.score == "accuracy"
    assert model.predictor.gradient is not None
    task = tiny_bank["colour-0"]
    adapted = model.adapt(task.train.texts, task.train.labels, adaptive=False)
    assert set(adapted.weights_) == {"cluster-0", "cluster-1"}


def test_one_task_is_too_few_to_learn_from(tiny_bank):
    for tasks, found in ((tiny_bank.tasks[:1], "1 task"), ([], "0 tasks")):
        with pytest.raises(
            NotEnoughExamples, match=rf"Found {found} to learn from\. Metrics are learned from at least"
        ):
            mm.learn_metrics(tasks, QUICK)


def test_texts_without_any_known_word_can_be_learned_from(tiny_recipe, vectors):
    odd = Examples(("", "   ", "\x00", "😀", "\u200b", "…"), ("x", "y") * 3)
    tasks = [Task(name, odd) for name in "ab"]
    model = mm.learn_metrics(tasks, tiny_recipe, vectors=vectors)
    assert np.isfinite(model.adapt(odd.texts, odd.labels).predict_proba(odd.texts)).all()
