"""scikit-learn's contract for the text classifier. Its own checks take arrays of numbers, so texts need these."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.learn_scope import make_gibberish
from manymetrics.errors import InputError
from python_process import run_python

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=80)


@pytest.fixture(scope="module")
def classifier(model, shots):
    return FewShotClassifier(model).fit(shots.texts, shots.labels)


# --- parameters


def test_parameters_are_kept_as_they_are_and_make_the_round_trip(model):
    first = FewShotClassifier(model, label_names="nonsense", adaptive=False)
    expected = {"model": model, "adaptive": False, "reject": False, "margin": 0.0, "rejected": "auto",
                "label_names": "nonsense", "steps": 0, "class_prior": None}  # fmt: skip
    assert vars(first) == first.get_params() == clone(first).get_params() == expected
    assert FewShotClassifier().set_params(**first.get_params()).get_params() == expected


def test_a_parameter_that_is_not_there_is_refused_and_nothing_is_set(model):
    classifier = FewShotClassifier(model)
    with pytest.raises(InputError, match=r"FewShotClassifier has no parameter 'depth'\. Its parameters are adaptive, "):
        classifier.set_params(adaptive=False, depth=3)
    assert classifier.adaptive is True


def test_it_shows_what_was_set(model):
    assert repr(FewShotClassifier()) == "FewShotClassifier()"
    assert repr(FewShotClassifier(model, reject=0.3)) == "FewShotClassifier(model=<MetricModel>, reject=0.3)"


def test_scikit_learn_knows_it_for_a_classifier_of_texts(classifier):
    tags = get_tags(classifier)
    assert is_classifier(classifier)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


def test_adapting_and_predicting_load_no_scikit_learn(model_folder, shots):
    code = f"""
import sys, manymetrics as mm
classifier = mm.load_model({str(model_folder)!r}).adapt({tuple(shots.texts)!r}, {shots.labels!r})
print(*classifier.predict(["lamp on", "any music"]), repr(classifier), "sklearn" in sys.modules)
"""
    assert run_python(code) == "lamp music FewShotClassifier(model=<MetricModel>) False"


# --- fitting


def test_a_classifier_without_examples_says_so_and_so_does_a_clone(model, classifier):
    copy = clone(classifier)
    assert copy.model is model
    for empty in (copy, FewShotClassifier(model)):
        for ask in (empty.predict, empty.predict_proba, empty.scope_proba, empty.answer, empty.suggest):
            with pytest.raises(NotFittedError, match=r"FewShotClassifier instance is not fitted yet\. Call 'fit'"):
                ask(["lamp"])
        assert not hasattr(empty, "classes_")


def test_a_classifier_without_a_model_says_how_to_get_one():
    with pytest.raises(InputError, match=r"has no model\. Make it with FewShotClassifier\(load_model\(path\)\)"):
        FewShotClassifier().fit(["a", "b"], [0, 1])


def test_the_fitted_attributes_are_those_of_one_state(classifier, shots):
    adapted = classifier.classifier_
    assert classifier.classes_ is adapted.support.classes
    assert sorted(classifier.examples_) == sorted(zip(shots.texts, shots.labels, strict=True))
    assert list(classifier.weights_.values()) == adapted.weights.tolist()
    assert list(classifier.weights_) == ["cluster-0", "cluster-1", "word-vectors"]
    assert (classifier.temperature_, classifier.fallback_) == (adapted.temperature, None)


@pytest.mark.parametrize("column", [pd.Series, pl.Series, np.array, tuple, iter])
def test_columns_of_any_sort_give_the_same_bits(model, shots, classifier, column):
    other = FewShotClassifier(model).fit(column(list(shots.texts)), column(list(shots.labels)))
    assert (other.predict_proba(column(NEW)) == classifier.predict_proba(NEW)).all()


# --- predicting


def test_classes_are_sorted_and_are_the_columns_and_all_methods_agree(classifier):
    assert classifier.classes_.tolist() == ["lamp", "meeting", "music"]
    answers = classifier.answer(NEW)
    assert answers.probabilities.shape == (5, 3)
    assert (classifier.predict_proba(NEW) == answers.probabilities).all()
    assert (classifier.scope_proba(NEW) == answers.scope).all()
    assert classifier.predict(NEW).tolist() == classifier.classes_[answers.probabilities.argmax(axis=1)].tolist()


def test_scores_are_accuracies_and_rows_may_weigh_differently(classifier, shots):
    asked, truth = ["turn on the lamp", "play some jazz"], ["lamp", "lamp"]
    assert classifier.score(shots.texts, shots.labels) > 0.9
    assert classifier.score(asked, truth) == 0.5
    assert classifier.score(asked, truth, sample_weight=[3, 1]) == 0.75


def test_answers_do_not_depend_on_the_batch_size(classifier, monkeypatch):
    whole = classifier.answer(NEW * 3)
    monkeypatch.setattr("manymetrics.classifier.few_shot.BATCH_SIZE", 4)
    batched = classifier.answer(NEW * 3)
    np.testing.assert_allclose(batched.probabilities, whole.probabilities, atol=1e-6)
    np.testing.assert_allclose(batched.scope, whole.scope, atol=1e-6)
    assert (len(batched.rejected), batched.reasons) == (15, whole.reasons)


@settings(deadline=None, max_examples=80)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4))
@example(["!" * 10**6, "😀" * 250_000, "a" * 10**6])
def test_any_unicode_text_gets_finite_probabilities_that_sum_to_one(classifier, texts):
    probabilities = classifier.predict_proba(texts)
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.lists(ANY_TEXT, min_size=2, max_size=8), st.data())
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_any_unicode_text_can_be_an_example(model, texts, data):
    labels = [0, 1, *data.draw(st.lists(st.integers(0, 2), min_size=len(texts) - 2, max_size=len(texts) - 2))]
    probabilities = FewShotClassifier(model).fit(texts, labels).predict_proba([*texts, "lamp"])
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)


def test_gibberish_never_gets_much_confidence(by_letters, shots):
    nonsense = make_gibberish(300, np.random.default_rng(0))
    assert by_letters.adapt(shots.texts, shots.labels).predict_proba(nonsense).max() < 0.9
    two = by_letters.adapt(["lamp on", "lamp off", "play music", "music"], [0, 0, 1, 1])
    assert two.predict_proba(nonsense).max() < 0.9


def test_no_texts_get_no_answers(classifier):
    assert classifier.predict_proba([]).shape == (0, 3)
    assert len(classifier.predict([])) == 0
    assert classifier.answer([]).reasons == ()


# --- in scikit-learn's hands


def test_a_search_reaches_through_a_pipeline_of_which_it_is_the_last_step(model, shots, classifier):
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.upper() for text in texts]), clone(classifier))
    search = GridSearchCV(pipeline, {"fewshotclassifier__label_names": [True]}, cv=2)
    search.fit(list(shots.texts), list(shots.labels))
    np.testing.assert_allclose(search.predict_proba(NEW), classifier.predict_proba(NEW), atol=1e-6)
    assert search.best_estimator_[-1].model is model
    assert search.classes_.tolist() == ["lamp", "meeting", "music"]
    assert "FewShotClassifier" in repr(pipeline)
    assert "FewShotClassifier" in pipeline._repr_html_()


def test_scikit_learn_scores_and_answers_by_folds(model, shots):
    texts, labels, unfitted = np.array(shots.texts), np.array(shots.labels), FewShotClassifier(model)
    assert (cross_val_score(unfitted, texts, labels, cv=2) > 1 / 3).all()
    assert np.isfinite(cross_val_score(unfitted, texts, labels, cv=2, scoring="neg_log_loss")).all()
    probabilities = cross_val_predict(unfitted, list(texts), list(labels), cv=2, method="predict_proba")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_scikit_learn_calibrates_it(model, shots):
    texts, labels = np.array(shots.texts), np.array(shots.labels)
    calibrated = CalibratedClassifierCV(FewShotClassifier(model), method="sigmoid", cv=2).fit(texts, labels)
    np.testing.assert_allclose(calibrated.predict_proba(NEW).sum(axis=1), 1)
    frozen = FrozenEstimator(FewShotClassifier(model).fit(texts, labels))
    again = CalibratedClassifierCV(frozen, method="sigmoid", cv=2).fit(texts, labels)
    assert again.predict(["turn on the lamp"]).tolist() == ["lamp"]
