import json
from dataclasses import replace

import numpy as np
import pytest

from manymetrics.classifier import Serving, Trust
from manymetrics.classifier.adapted import adapt
from manymetrics.classifier.calibration import Calibration
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.scope import Scope
from manymetrics.classifier.serving import (
    describe_metric,
    describe_settings,
    open_description,
    open_serving,
    open_settings,
    pack_serving,
)
from manymetrics.encode import PhraseEncoder, WordVectors
from manymetrics.errors import DataError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.values import Texts
from manymetrics.weigh import MixSettings

NEW = Texts(["lamp on", "any music", "a meeting", "", "é \x00 😀"])
LABELS = ("lamp", "meeting", "music")


def reopened(serving):
    tensors, about = pack_serving(serving)
    return open_serving(tensors, json.loads(json.dumps(about, allow_nan=False)))


def with_phrases(serving, shots, *, rows=None):
    """With two linear metrics over the phrases of the shots, whose heads have so many rows."""
    rng, words = np.random.default_rng(0), serving.metrics[2].encoder
    encoder = PhraseEncoder.from_texts(words, Texts.join([shots.texts] * 3))
    prior = np.full(3, 1 / 3, dtype=np.float32)
    heads = [Head(rng.standard_normal((rows or encoder.width, 3)).astype("f4"), np.zeros(3, "f4")) for _ in range(2)]
    linear = (
        SharedLabelMetric("phrases-0", "linear", encoder, heads[0], LABELS, prior, ("a", "b"), 0),
        SharedLabelMetric("phrases", "linear", encoder, heads[1], LABELS, prior, ("a", "b", "c")),
    )
    return replace(serving, metrics=(*serving.metrics, *linear))


def test_what_was_packed_opens_with_the_same_answers_to_the_bit(make_model, shots):
    support = support_set(shots.texts, shots.labels)
    plain = make_model().serving
    for serving in (plain, make_model(shared_labels=LABELS).serving, with_phrases(plain, shots)):
        before, after = (adapt(one, support, adaptive=False) for one in (serving, reopened(serving)))
        assert (after.answer(NEW).probabilities == before.answer(NEW).probabilities).all()
        assert (after.mix.weights == before.mix.weights).all()
        assert reopened(serving).fingerprint == serving.fingerprint
        assert [describe_metric(one) for one in reopened(serving).metrics] == [
            describe_metric(one) for one in serving.metrics
        ]


def test_an_encoder_of_several_metrics_is_kept_once(model, shots):
    serving = with_phrases(model.serving, shots)
    twin = WordVectors("random", model.metrics[2].encoder.table, model.metrics[2].encoder.tokenizer)
    serving = replace(serving, metrics=(*serving.metrics, SimilarityMetric("twin", "frozen", twin, "matching", 9.0)))
    again = reopened(serving)
    assert again.metrics[4].encoder is again.metrics[5].encoder
    assert again.metrics[6].encoder is again.metrics[2].encoder
    assert again.metrics[0].encoder.words is again.metrics[2].encoder
    assert len(pack_serving(serving)[1]["encoders"]) == 5  # words, two convolutions, letters, phrases


def test_rate_and_steps_of_the_papers_mix_come_back_and_must_be_there():
    settings = MixSettings(paper_rate=0.003, paper_steps=5)
    told = describe_settings(settings)
    assert open_settings(told) == settings
    for name in ("paper_rate", "paper_steps"):
        with pytest.raises(KeyError):
            open_settings({key: value for key, value in told.items() if key != name})
    for broken in ({"paper_rate": 0.0}, {"paper_steps": -1}, {"paper_steps": 10**9}, {"paper_steps": 2.5}):
        with pytest.raises(DataError):
            open_settings(told | broken)


def test_settings_and_trust_come_back_even_where_they_are_infinite(model):
    trust = Trust(Scope(0.1, {"letters": (1.0, -2.0)}, 3.0, 4.0), Calibration(1.0, 2.0, 3.0, 4.0))
    exponents = {"learned": (0.5, -1.0, 2.0), "regression": (1e6, 0.0, -1e-3)}
    told = {"exponents": exponents, "exponents_without_names": {"letters": (0.0, 1.0, 2.0)}, "names_count": True}
    for threshold in (-np.inf, np.inf, np.float64(0.3)):
        settings = MixSettings(
            {"learned": 0.5}, prior_shots=2.0, likelihood_temperature=3.0, threshold=threshold, **told
        )
        serving = replace(model.serving, settings=settings, trust=trust)
        assert reopened(serving).settings == serving.settings
        assert reopened(serving).trust == trust


def test_the_fingerprint_tells_apart_all_that_answers_depend_on(model, make_model):
    serving, words = model.serving, model.metrics[2]
    others = [
        replace(serving, settings=MixSettings()),
        replace(serving, settings=replace(serving.settings, names_count=True)),
        replace(serving, settings=replace(serving.settings, exponents={"letters": (0.0, 0.0, 1.0)})),
        replace(serving, trust=Trust(Scope(offset=1.0))),
        replace(serving, metrics=serving.metrics[:3]),
        replace(serving, metrics=(*serving.metrics[:2], replace(words, temperature=9.5), serving.metrics[3])),
        make_model(seed=1).serving,
        make_model(shared_labels=LABELS).serving,
        make_model(shared_labels=LABELS, seed=1).serving,
    ]
    assert len({one.fingerprint for one in [serving, *others]}) == 10
    assert make_model().serving.fingerprint == serving.fingerprint


def test_a_head_that_does_not_fit_or_cannot_be_used_is_refused(model, make_model, shots):
    with pytest.raises(DataError, match="the head of phrases-0 does not fit its encoder and labels"):
        reopened(with_phrases(model.serving, shots, rows=5))
    serving = make_model(shared_labels=LABELS).serving
    second = serving.metrics[1]
    for broken in (
        replace(second, head=Head(np.full((8, 3), np.nan, "f4"), second.head.offset)),
        replace(second, head=Head(second.head.weights, np.full(3, 1e38, "f4"))),
        replace(second, prior=np.array([0.5, 0.5, 0.0], "f4")),
        replace(second, prior=np.array([0.5, 0.5, 1e-44], "f4")),
        replace(second, labels=("lamp", "lamp", "music")),
    ):
        with pytest.raises(DataError, match="the head of cluster-1 holds values that cannot be used"):
            reopened(replace(serving, metrics=(serving.metrics[0], broken, *serving.metrics[2:])))


def test_metrics_need_names_of_their_own(model):
    for metrics in ((), (model.metrics[0], model.metrics[0])):
        with pytest.raises(DataError, match=r"Found metrics named .* Give at least one, each with a name of its own"):
            Serving(metrics)


def test_a_metric_of_a_type_that_cannot_be_opened_is_not_packed(model):
    class Mine:
        name, kind, encoder, tasks, cluster = "mine", "frozen", model.metrics[2].encoder, (), None

    with pytest.raises(ModelError, match="A metric of type Mine cannot be saved"):
        pack_serving(Serving((*model.metrics, Mine())))


def test_a_description_holds_each_value_of_its_type(model):
    told = describe_metric(model.metrics[0])
    assert open_description(told) == told
    for name, value in (
        ("name", 3),
        ("kind", ["learned"]),
        ("tasks", "ab"),
        ("tasks", [1]),
        ("cluster", "0"),
        ("cluster", True),
        ("rule", None),
        ("temperature", "9.0"),
        ("temperature", float("nan")),
        ("labels", {"lamp": 1}),
    ):
        with pytest.raises(DataError, match=rf"'{name}' is a value of type \w+ where .* expected"):
            open_description(told | {name: value})


def test_exponents_that_are_no_three_numbers_are_refused():
    told = describe_settings(MixSettings(exponents={"letters": (0.0, 1.0, 2.0)}))
    assert open_settings(told).exponents == {"letters": (0.0, 1.0, 2.0)}
    for broken in ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0], []):
        with pytest.raises(DataError, match="exponents are not three numbers for each group of metrics"):
            open_settings(told | {"exponents": {"letters": broken}})
