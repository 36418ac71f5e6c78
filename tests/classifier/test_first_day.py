"""What people meet on a first day: examples that say nothing, odd labels, paths, pickles and notebooks."""

import pickle

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.values import Examples, Task, TaskBank

WORDS = ["blorp", "quindle", "fazzit", "morble", "trindo", "wexel", "pandle", "grumix", "sotter", "vink"]


def random_task(classes, shots, seed=0):
    """Invented words under random labels: nothing can be learned from it."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 4)) for _ in range(classes * shots)]
    return texts, [f"label {number}" for number in rng.permutation(np.repeat(np.arange(classes), shots))]


def test_a_task_of_random_words_under_random_labels_fits_no_metric_and_could_be_chance(model):
    classifier = model.adapt(*random_task(3, 10))
    assert classifier.fallback_.startswith("No metric fits this task: its 30 examples answer one another no better")
    assert "This could be chance" in str(classifier.doctor())


def test_shuffled_labels_are_chance_and_the_right_ones_are_not(model, shots):
    texts, labels = list(shots.texts) * 2, list(shots.labels) * 2
    texts = [f"{text} {number}" for number, text in enumerate(texts)]
    assert not model.adapt(texts, labels).doctor().is_chance
    shuffled = [np.random.default_rng(seed).permutation(labels) for seed in range(4)]
    found = [model.adapt(texts, other).doctor().is_chance for other in shuffled]
    assert sum(found) >= 3  # luck is above chance now and then


@pytest.mark.parametrize(
    "labels",
    [
        [2**63, 2**63 + 1, 2**63, 2**63 + 1],
        [2**53 + 1, float(2**53), 2**53 + 1, float(2**53)],
        ["a", "a\0", "a", "a\0"],
        ["x" * 100_000 + "a", "x" * 100_000 + "b"] * 2,
    ],
    ids=["large numbers", "a number and a float", "a NUL at the end", "very long"],
)
def test_labels_that_look_similar_stay_distinct(model, labels):
    texts = ["turn on the lamp", "play some jazz", "lamp on please", "put on music"]
    classifier = model.adapt(texts, labels)
    assert classifier.classes_.tolist() == sorted(set(labels))
    assert classifier.predict(["turn on the lamp please", "play jazz"]).tolist() == labels[:2]


def test_a_pickled_classifier_of_a_saved_model_is_small_and_the_same(model, shots, tmp_path):
    model.save(tmp_path / "model")
    classifier = mm.load_model(tmp_path / "model").adapt(shots.texts, shots.labels, ["buy a boat"])
    pickled = pickle.dumps(classifier)
    assert len(pickled) < 5_000
    again = pickle.loads(pickled)  # noqa: S301 - our own
    assert (again.predict_proba(["lamp"]) == classifier.predict_proba(["lamp"])).all()
    assert again.counter_examples_ == ("buy a boat",)
    whole = pickle.loads(pickle.dumps(model.adapt(shots.texts, shots.labels)))  # noqa: S301 - nowhere saved: all of it
    assert (whole.predict_proba(["lamp"]) == model.adapt(shots.texts, shots.labels).predict_proba(["lamp"])).all()


def test_a_pickle_whose_model_was_replaced_says_so(model, make_model, shots, tmp_path):
    model.save(tmp_path / "model")
    pickled = pickle.dumps(mm.load_model(tmp_path / "model").adapt(shots.texts, shots.labels))
    make_model(seed=7).save(tmp_path / "model")
    with pytest.raises(mm.ModelError, match="holds another model than the one that was pickled"):
        pickle.loads(pickled)  # noqa: S301 - our own


def test_what_is_shown_at_a_prompt_is_short_and_holds_no_text_of_a_client(model, shots):
    private = "my card is 4111"
    task = Task("bank", Examples((private, "b", "c", "d"), ("x", "y", "x", "y")))
    bank = TaskBank((task,))
    assert repr(bank) == "<TaskBank of 1 tasks, 0 of them targets, 4 texts>"
    assert repr(task) == "<Task 'bank': 2 labels, 4 train, 0 valid, 0 test>"
    for value in (bank, task, task.train, model, model.adapt(shots.texts, shots.labels)):
        assert len(repr(value)) < 300
        assert private not in repr(value)


def test_notebooks_show_tables_in_which_nothing_is_markup(model):
    names = TaskBank((Task("<script>x</script>", Examples(("a", "b"), ("1", "2"))),))
    assert "&lt;script&gt;" in names._repr_html_()
    assert "<MetricModel" not in model._repr_html_()
