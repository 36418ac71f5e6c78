from dataclasses import replace

import numpy as np
import pytest

from manymetrics.classifier import Predictor
from manymetrics.classifier.classifier import adapt
from manymetrics.classifier.confidence import Calibration, Scope
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.predictor import dump_predictor, parse_predictor
from manymetrics.encode import Encoder, WordVectors
from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.specialize import Metric
from manymetrics.store import packed
from manymetrics.weigh import GradientSettings
from python_process import run_python

NEW = ["lamp on", "any music", "a meeting", "", "é \x00 😀"]
LABELS = ("lamp", "meeting", "music")


def reopened(predictor):
    return parse_predictor(dump_predictor(predictor))


def changed(predictor, change):
    """The file of a predictor after a change to its JSON values and arrays."""
    tree = packed.read(dump_predictor(predictor))
    change(tree)
    return packed.dump(tree)


def test_what_was_packed_opens_with_the_same_answers_to_the_bit(make_model, shots):
    support = support_set(shots.texts, shots.labels)
    models = [make_model(**options) for options in ({}, {"shared_labels": LABELS}, {"published": True})]
    for predictor in [model.predictor for model in models]:
        before, after = (adapt(one, support, adaptive=False) for one in (predictor, reopened(predictor)))
        assert (after.answer(NEW).probabilities == before.answer(NEW).probabilities).all()
        assert list(map(repr, reopened(predictor).metrics)) == list(map(repr, predictor.metrics))
        assert dump_predictor(reopened(predictor)) == dump_predictor(predictor)


def test_an_encoder_of_several_metrics_is_stored_once(make_model):
    predictor = make_model(shared_labels=LABELS).predictor
    words = predictor.metrics[2].encoder
    twin = WordVectors("random", words.table, words.tokenizer)
    predictor = replace(predictor, metrics=(*predictor.metrics, Metric("twin", "frozen", twin, "matching", 9.0)))
    again = reopened(predictor)
    assert again.metrics[3].encoder is again.metrics[4].encoder is again.metrics[2].encoder
    assert again.metrics[0].encoder.base is again.metrics[2].encoder
    assert len(packed.read(dump_predictor(predictor))["encoders"]) == 4  # words, two projections, letters


def test_reading_runs_no_encoder(make_model, monkeypatch):
    payload = dump_predictor(make_model(shared_labels=LABELS).predictor)
    for kind in Encoder.kinds.values():
        monkeypatch.setattr(kind, "encode", lambda *_: pytest.fail("an encoder was run"))
    assert len(parse_predictor(payload).metrics) == 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("gradient", {"rate": 0.0, "steps": 5}, "a rate of 0.0"),
        ("gradient", {"rate": -1.0, "steps": 5}, "a rate of -1.0"),
        ("gradient", {"rate": 0.1, "steps": -1}, "-1 steps"),
        ("gradient", {"rate": 0.1, "steps": 10**9}, "steps, out of range"),
        ("gradient", {"rate": 0.1, "steps": 2.5}, r"Expected `int`, got `float` - at `\$\.gradient\.steps`"),
        ("letters", 99, "there is no encoder 99"),
        ("letters", "0", "there is no encoder '0'"),
        ("metrics", [{"name": 3, "labels": []}], "Expected `str`, got `int`"),
        ("scope", {"coefficients": [True] * 7}, "Expected `float`, got `bool`"),
        ("calibration", None, "Expected `object`, got `null`"),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused(model, name, value, message):
    with pytest.raises(DataError, match=message):
        parse_predictor(changed(model.predictor, lambda tree: tree["predictor"].update({name: value})))


def test_the_fingerprint_changes_with_everything_that_answers_depend_on(model, make_model):
    predictor, words = model.predictor, model.metrics[2]
    changes = [
        {"gradient": GradientSettings()}, {"gradient": GradientSettings(0.01, 3)}, {"letters": None},
        {"scope": Scope((1.0,) * 7)}, {"calibration": Calibration(max_classes=31)}, {"metrics": predictor.metrics[1:]},
        {"metrics": (*predictor.metrics[:2], replace(words, temperature=9.5))},
    ]  # fmt: skip
    others = [make_model(seed=1), make_model(shared_labels=LABELS), make_model(shared_labels=LABELS, seed=1)]
    prints = {replace(predictor, **change).fingerprint for change in changes} | {one.fingerprint for one in others}
    assert len(prints | {predictor.fingerprint}) == 11
    assert make_model().predictor.fingerprint == predictor.fingerprint


def test_the_fingerprint_is_the_same_in_another_process(model):
    code = "from conftest import handmade_model; print(handmade_model().predictor.fingerprint)"
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed) == model.predictor.fingerprint


def test_a_head_that_does_not_fit_or_cannot_be_used_is_refused(make_model, shots):
    predictor = make_model(shared_labels=LABELS).predictor
    linear, shared = predictor.metrics[3], predictor.metrics[3].shared
    narrow = replace(linear, shared=replace(shared, head=Head(np.zeros((5, 3), "f4"), shared.head.offset)))
    with pytest.raises(ModelError, match="the head of 'shared-labels' does not fit its encoder"):
        adapt(replace(predictor, metrics=(*predictor.metrics[:3], narrow)), support_set(shots.texts, shots.labels))
    with pytest.raises(DataError, match="does not fit them"):
        replace(shared, head=Head(np.zeros((16, 2), "f4"), shared.head.offset))
    for odd in ({"prior": np.array([0.5, 0.5, 0.0], "f4")}, {"prior": np.array([0.5, 0.5, 1e-44], "f4")},
                {"labels": ("lamp", "lamp", "music")}):  # fmt: skip
        with pytest.raises(DataError, match="one has no share or occurs twice"):
            replace(shared, **odd)


def test_a_model_without_a_frozen_encoder_says_what_it_lacks(model, shots):
    learned = replace(model.predictor, metrics=model.metrics[:2])
    with pytest.raises(InputError, match="This model has no metric of a frozen encoder, which scope and fallback need"):
        adapt(learned, support_set(shots.texts, shots.labels))


def test_metrics_need_names_of_their_own(model):
    for metrics in ((), (model.metrics[0], model.metrics[0])):
        with pytest.raises(DataError, match=r"Found metrics named .* Give at least one, each with a name of its own"):
            Predictor(metrics)
