"""Gradient steps on the examples of a task, on a BERT of a few bytes."""

import pickle

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: no steps can be taken")
import manymetrics as mm
from manymetrics.classifier import own_steps
from manymetrics.errors import InputError
from manymetrics.specialize import Metric
from python_process import run_python
from tiny_sentence import bert_encoder, write_folder

COLOURS = ("red", "green", "blue")
MORE = ("now", "please", "again", "here", "there", "soon")
VOCABULARY = {word: number for number, word in enumerate(("[CLS]", "[UNK]", *COLOURS, *MORE))}
SHOTS = [f"{colour} {word}" for colour in COLOURS for word in MORE[:4]]
LABELS = [shot.split()[0] for shot in SHOTS]
NEW = [f"{colour} {first} {second}" for colour in COLOURS for first in MORE[3:] for second in MORE[3:]]


@pytest.fixture(scope="module")
def predictor():
    return mm.Predictor((Metric("sentence", "frozen", bert_encoder(VOCABULARY)),))


@pytest.fixture(autouse=True)
def faster(monkeypatch):
    """A rate at which a tiny encoder moves within a few steps."""
    for name in ("TRAINING", "CROSS_FITTING"):
        monkeypatch.setattr(own_steps, name, own_steps.replace(getattr(own_steps, name), learning_rate=1e-2))


@pytest.fixture
def moved(predictor):
    return mm.FewShotClassifier(predictor, steps=20).fit(SHOTS, LABELS)


def accuracy(classifier):
    return np.mean([label == text.split()[0] for label, text in zip(classifier.predict(NEW), NEW, strict=True)])


def test_steps_make_answers_more_accurate_and_say_why_they_are_used(predictor, moved):
    unmoved = mm.FewShotClassifier(predictor).fit(SHOTS, LABELS)
    assert unmoved.own_steps_ is None
    assert moved.own_steps_.startswith("20 gradient steps on the examples are used: of 12 examples left out")
    assert moved.weights_ == pytest.approx({"sentence": 0.5, "own-steps": 0.5})
    assert accuracy(moved) >= accuracy(unmoved)
    assert moved.own_steps_ in str(moved.doctor())
    assert "own-steps (own)" in str(moved.explain("red now"))


@pytest.mark.parametrize(("logit", "is_used"), [(1.0, True), (-1.0, False)])
def test_steps_are_used_unless_left_out_examples_become_less_likely(predictor, monkeypatch, logit, is_used):
    labels, unmoved = np.array([0, 1]), np.zeros((2, 3))
    fitted = own_steps.CrossFitted(labels, logit * np.eye(3)[labels], unmoved)
    assert (fitted.gain > 0) == is_used
    monkeypatch.setattr(own_steps, "cross_fit", lambda problem, training, on_step: fitted)
    classifier = mm.FewShotClassifier(predictor, steps=2).fit(SHOTS, LABELS)
    assert ("own-steps" in classifier.weights_) == is_used
    said = "2 gradient steps on the examples are used" if is_used else "Gradient steps are not used"
    assert classifier.own_steps_.startswith(f"{said}: of 2 examples left out in two halves, ")
    if not is_used:
        without = mm.FewShotClassifier(predictor).fit(SHOTS, LABELS)
        assert (classifier.predict_proba(NEW) == without.predict_proba(NEW)).all()


def test_without_an_example_to_leave_out_no_steps_are_used():
    assert own_steps.CrossFitted(np.zeros(0, int), np.zeros((0, 3)), np.zeros((0, 3))).gain == -np.inf


def test_the_same_examples_give_the_same_bits_in_any_order(predictor, moved):
    order = np.random.default_rng(0).permutation(len(SHOTS))
    again = mm.FewShotClassifier(predictor, steps=20).fit([SHOTS[i] for i in order], [LABELS[i] for i in order])
    assert (again.predict_proba(NEW) == moved.predict_proba(NEW)).all()


def test_a_moved_classifier_is_saved_pickled_and_grown_without_steps_taken_again(
    make_model, moved, tmp_path, monkeypatch
):
    model = mm.MetricModel(moved._predictor(), make_model().origin)
    classifier = model.adapt(SHOTS, LABELS).take_steps(20)
    monkeypatch.setattr("manymetrics.encode.training.low_rank.train_on_shots", None)  # nothing below trains
    classifier.save(tmp_path / "classifier")
    for copy in (mm.load_classifier(tmp_path / "classifier", model), pickle.loads(pickle.dumps(classifier))):  # noqa: S301
        assert (copy.predict_proba(NEW) == classifier.predict_proba(NEW)).all()
        assert copy.own_steps_ == classifier.own_steps_
    grown = classifier.add_examples(["green soon"], ["green"])
    assert grown.weights_["own-steps"] == 0.5
    assert sum(path.stat().st_size for path in (tmp_path / "classifier").iterdir()) < 200_000


def test_an_interrupt_leaves_the_classifier_as_it_was(predictor):
    classifier = mm.FewShotClassifier(predictor).fit(SHOTS, LABELS)
    before = classifier.predict_proba(NEW)

    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classifier.take_steps(20, stop)
    assert classifier.own_steps_ is None
    assert (classifier.predict_proba(NEW) == before).all()


def test_progress_counts_the_steps_of_both_halves_and_of_all_examples(predictor):
    seen = []
    mm.FewShotClassifier(predictor).fit(SHOTS, LABELS).take_steps(4, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 10) for done in range(10)]  # three of each half, and four


@pytest.mark.parametrize("steps", [-1, 1.5, True, "many", 10**6])
def test_what_is_no_number_of_steps_is_refused(predictor, steps):
    with pytest.raises(InputError, match="Give a number from 0 to 1,000, or 'auto'"):
        mm.FewShotClassifier(predictor, steps=steps).fit(SHOTS, LABELS)


def test_auto_says_why_it_takes_none_and_a_number_is_refused(predictor, tmp_path, monkeypatch):
    graph = mm.SentenceEncoder.from_folder(write_folder(tmp_path / "tiny"))
    fixed = mm.Predictor((Metric("sentence", "frozen", graph),))
    assert "is an ONNX file" in mm.FewShotClassifier(fixed, steps="auto").fit(SHOTS, LABELS).own_steps_
    with pytest.raises(InputError, match="is an ONNX file"):
        mm.FewShotClassifier(fixed, steps=5).fit(SHOTS, LABELS)
    single = mm.FewShotClassifier(predictor, steps="auto", label_names=False).fit(["red", "blue"], ["a", "b"])
    assert "no label has two examples" in single.own_steps_
    monkeypatch.setattr(own_steps, "MAX_AUTO_LABELS", 2)
    many = mm.FewShotClassifier(predictor, steps="auto").fit(SHOTS, LABELS)
    assert "with 3 labels they seldom help" in many.own_steps_


def test_without_torch_auto_takes_none_and_a_moved_classifier_answers(make_model, moved, tmp_path):
    model = mm.MetricModel(moved._predictor(), make_model().origin)
    model.save(tmp_path / "model")
    model.adapt(SHOTS, LABELS).take_steps(20).save(tmp_path / "classifier")
    script = """
import manymetrics as mm
model = mm.load_model("model")
print(mm.load_classifier("classifier", model).predict(["red soon"])[0])
print(model.adapt(["red now", "blue now"], ["red", "blue"], steps="auto").own_steps_)
try:
    model.adapt(["red now", "blue now"], ["red", "blue"], steps=3)
except mm.MissingExtra as problem:
    print(problem)
"""
    answer, reason, refusal = run_python(script, torch=False, cwd=tmp_path).splitlines()
    assert answer in COLOURS
    assert "torch is not installed" in reason
    assert "torch, which is not installed" in refusal
