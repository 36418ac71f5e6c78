"""What serves + a task's examples -> a classifier: the mix, the fallback, and how a batch is answered."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from manymetrics.classifier import adapt
from manymetrics.classifier.examples import support_set
from manymetrics.errors import InputError
from manymetrics.values import Texts
from manymetrics.weigh import MixSettings

NEW = Texts(["lamp on", "any music", "a meeting", "", "something else entirely"])


@pytest.fixture(scope="module")
def support(shots):
    return support_set(shots.texts, shots.labels)


# --- the mix


def test_every_metric_has_its_weight_and_the_regression_one_too(model, support):
    adapted = adapt(model.serving, support)
    names = [member.name for member in adapted.ensemble.members]
    assert names == ["cluster-0", "cluster-1", "word-vectors", "letters", "regression"]
    assert adapted.mix.weights.sum() == pytest.approx(1)
    assert (adapted.mix.weights >= 0).all()
    assert (adapted.fallback, adapted.fallback_reason) == (None, None)


def test_the_published_mix_is_of_the_clusters_metrics_alone(model, support):
    adapted = adapt(model.serving, support, mix="paper", adaptive=False)
    assert [member.name for member in adapted.ensemble.members] == ["cluster-0", "cluster-1"]
    assert adapted.mix.steps == 40
    np.testing.assert_allclose(adapted.answer(NEW).probabilities.sum(axis=1), 1)
    slow = replace(model.serving, settings=MixSettings(paper_rate=0.01, paper_steps=2))
    chosen = adapt(slow, support, mix="paper", adaptive=False).mix
    assert chosen.steps == 2
    assert np.abs(chosen.weights - 0.5).max() <= 0.021, "two steps of 0.01 from even weights"


def test_the_published_mix_hears_a_classifier_as_it_answers(make_model, shots):
    serving = make_model(shared_labels=("lamp", "meeting", "music")).serving
    skewed = tuple(
        replace(metric, prior=np.array([0.98, 0.01, 0.01])) if hasattr(metric, "prior") else metric
        for metric in serving.metrics
    )
    support = support_set(shots.texts, shots.labels)
    even, other = (adapt(replace(serving, metrics=metrics), support, mix="paper", adaptive=False)
                   for metrics in (serving.metrics, skewed))  # fmt: skip
    np.testing.assert_array_equal(even.mix.weights, other.mix.weights)


def test_one_example_of_each_label_leaves_the_prior_of_the_clusters(model):
    adapted = adapt(model.serving, support_set(["lamp on", "play music"], ["lamp", "music"]))
    np.testing.assert_allclose(adapted.mix.weights, [1 / 6, 1 / 12, 0.25, 0.25, 0.25])  # of two tasks, and of one
    assert adapted.fallback is None
    assert adapted.answer(Texts(["lamp on", "play music"])).likeliest.tolist() == [0, 1]


def test_a_label_with_one_example_among_others_works(model, shots):
    adapted = adapt(model.serving, support_set([*shots.texts, "a lone duck"], [*shots.labels, "duck"]))
    assert adapted.answer(Texts(["a lone duck"])).likeliest.tolist() == [0]


def test_a_shared_label_model_serves_its_labels_and_others(make_model, shots):
    serving = make_model(shared_labels=("lamp", "meeting", "music")).serving
    same, other = (
        adapt(serving, support_set(shots.texts, [change(label) for label in shots.labels])).answer(NEW).probabilities
        for change in (str, str.upper)
    )
    np.testing.assert_allclose(same.sum(axis=1), 1)
    np.testing.assert_allclose(other.sum(axis=1), 1)
    assert not np.allclose(same, other)


def test_a_mix_nobody_knows_is_refused(model, support):
    with pytest.raises(InputError, match=r"There is no mix 'best'\. Choose 'default' or 'paper'\."):
        adapt(model.serving, support, mix="best")


def test_a_model_without_learned_metrics_cannot_be_mixed_as_published(model, rebuild, support):
    with pytest.raises(InputError, match="has no learned metrics, so there is nothing to mix as published"):
        adapt(rebuild(model, metrics=model.metrics[2:]).serving, support, mix="paper")


def test_a_model_whose_metrics_all_learned_from_labels_says_what_it_lacks(model, rebuild, support):
    serving = rebuild(model, metrics=model.metrics[:2]).serving
    for options in ({}, {"adaptive": False}, {"mix": "paper"}):
        with pytest.raises(InputError, match=r"No metric of this model is free of other tasks' labels"):
            adapt(serving, support, **options)


# --- the fallback


def test_a_task_no_cluster_fits_gets_a_model_of_its_own_and_the_reason(picky, support):
    adapted = adapt(picky.serving, support)
    assert "No cluster fits this task" in adapted.fallback_reason
    assert "less than the 107% asked for" in adapted.fallback_reason
    assert "A model trained on the examples alone answers instead" in adapted.fallback_reason
    answers = adapted.answer(Texts(["the lamp", "music please"]))
    assert support.classes[answers.likeliest].tolist() == ["lamp", "music"]
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1, atol=1e-5)
    assert adapt(picky.serving, support, adaptive=False).fallback is None


def test_labels_drawn_by_lot_fall_back(model, rebuild):
    rng = np.random.default_rng(0)
    strict = rebuild(model, settings=MixSettings(threshold=0.4))
    texts = [" ".join(rng.choice(list("abcdefghij"), 4)) for _ in range(40)]
    adapted = adapt(strict.serving, support_set(texts, rng.permutation([0, 1] * 20)))
    assert "the best learned metric answers" in adapted.fallback_reason


def test_the_published_fallback_is_the_published_network(model):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    texts = [f"{'abcdefghijkl'[place]}{place}" for place in range(12)]  # no two alike: nobody can match them
    support = support_set(texts, np.arange(12) // 2)
    adapted = adapt(model.serving, support, mix="paper")
    assert "less than the 20% asked for" in adapted.fallback_reason
    answers = adapted.answer(support.texts)
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1, atol=1e-5)
    assert np.mean(answers.likeliest == support.numbers) > 0.8


# --- answers


def test_what_is_rejected_comes_with_its_reason(by_letters, support):
    adapted = adapt(by_letters.serving, support)
    asked = Texts(["turn on the lamp", "0123 !!! 777"])
    plain = adapted.answer(asked)
    assert plain.rejected.tolist() == [False, False]
    assert plain.reasons == (None, None)
    found = adapted.answer(asked, threshold=0.5)
    assert found.rejected.tolist() == [False, True]
    assert found.reasons[0] is None
    assert f"in scope with a probability of {found.scope[1]:.0%}, less than the 50% asked for" in found.reasons[1]
    wide = adapted.answer(asked, margin=0.999)
    assert wide.rejected.all()
    assert wide.reasons[0].startswith(f"lamp ({wide.probabilities[0].max():.0%}) and ")
    assert wide.reasons[0].endswith("are closer than the margin of 100%.")
    assert (wide.probabilities == plain.probabilities).all()


def test_calibrating_keeps_the_likeliest_label_and_the_published_way_does_not_calibrate(by_letters, support):
    adapted = adapt(by_letters.serving, support)
    raw = adapted.examine(NEW).probabilities
    assert (raw.argmax(axis=1) == adapted.answer(NEW).likeliest).all()
    assert not np.allclose(raw, adapted.answer(NEW).probabilities)
    paper = adapt(by_letters.serving, support, mix="paper", adaptive=False)
    assert paper.temperature is None
    assert (paper.answer(NEW).probabilities == paper.examine(NEW).probabilities).all()


@pytest.mark.parametrize("options", [{}, {"mix": "paper", "adaptive": False}, {"threshold": 1.1}])
def test_a_text_gets_the_same_probabilities_in_any_company(model, rebuild, support, shots, options):
    options = dict(options)
    settings = MixSettings(threshold=options.pop("threshold", -np.inf))
    adapted = adapt(rebuild(model, settings=settings).serving, support, **options)
    long = " ".join(f"word{number}" for number in range(10_000))
    company = Texts([*NEW, long, *shots.texts])
    order = np.random.default_rng(0).permutation(len(company))
    together = adapted.answer(company).probabilities
    np.testing.assert_allclose(adapted.answer(company.take(order)).probabilities, together[order], atol=1e-5)
    for place, text in enumerate(NEW):
        np.testing.assert_allclose(adapted.answer(Texts([text])).probabilities[0], together[place], atol=1e-5)


def test_many_texts_come_in_batches_that_leave_none_out(model, support, monkeypatch):
    adapted = adapt(model.serving, support)
    monkeypatch.setattr("manymetrics.classifier.adapted.TEXTS_AT_ONCE", 4)
    batches = list(adapted.batches(list(NEW) * 2))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert Texts.join(batches) == tuple(NEW) * 2
    monkeypatch.setattr("manymetrics.classifier.adapted.COSINES_AT_ONCE", 3 * len(support))
    assert [len(batch) for batch in adapted.batches(NEW)] == [3, 2]


def test_nothing_is_warned_about_on_the_way(model, support):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt(model.serving, support).answer(NEW)
