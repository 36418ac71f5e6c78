"""scikit-learn's contract for the text classifier. Its own checks take arrays of numbers, so texts need these."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from manymetrics.errors import InputError
from manymetrics.weigh import FewShotClassifier

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]


@pytest.fixture(scope="module")
def classifier(model, shots):
    return FewShotClassifier(model).fit(shots.texts, shots.labels)


def test_adapting_and_predicting_load_no_scikit_learn(model, shots, tmp_path):
    model.save(tmp_path / "model")
    code = f"""
import sys, manymetrics as mm
classifier = mm.load_model({str(tmp_path / "model")!r}).adapt({shots.texts!r}, {shots.labels!r})
print(*classifier.predict(["lamp on", "any music"]), repr(classifier), "sklearn" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lamp", "music", "FewShotClassifier(model=<MetricModel>)", "False"]


def test_the_constructor_keeps_its_arguments_as_they_are_and_makes_nothing_else(model):
    made = FewShotClassifier(model, mix="nonsense", adaptive="perhaps")
    assert vars(made) == made.get_params()
    assert vars(FewShotClassifier()) == FewShotClassifier().get_params()


def test_parameters_make_the_round_trip(model):
    first = FewShotClassifier(model, mix="paper", adaptive=False)
    assert FewShotClassifier().set_params(**first.get_params()).get_params() == first.get_params()
    assert clone(first).get_params() == first.get_params()


def test_a_parameter_that_is_not_there_is_refused_and_nothing_is_set(model):
    classifier = FewShotClassifier(model)
    with pytest.raises(InputError, match=r"FewShotClassifier has no parameter 'depth'\. Its parameters are adaptive, "):
        classifier.set_params(mix="paper", depth=3)
    assert classifier.mix == "default"


def test_it_shows_what_was_set(model):
    assert repr(FewShotClassifier()) == "FewShotClassifier()"
    assert repr(FewShotClassifier(model, mix="paper")) == "FewShotClassifier(model=<MetricModel>, mix='paper')"


def test_scikit_learn_knows_it_for_a_classifier_of_texts(classifier):
    tags = get_tags(classifier)
    assert is_classifier(classifier)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


def test_scores_are_accuracies_and_rows_may_weigh_differently(classifier):
    assert classifier.score(["turn on the lamp", "play some jazz"], ["lamp", "lamp"]) == 0.5
    weighted = classifier.score(["turn on the lamp", "play some jazz"], ["lamp", "lamp"], sample_weight=[3, 1])
    assert weighted == 0.75


def test_scikit_learn_scores_it_by_folds(model, shots):
    texts, labels = np.array(shots.texts), np.array(shots.labels)
    scores = cross_val_score(FewShotClassifier(model), texts, labels, cv=2)
    assert scores.shape == (2,)
    assert (scores > 1 / 3).all()
    logs = cross_val_score(FewShotClassifier(model), texts, labels, cv=2, scoring="neg_log_loss")
    assert np.isfinite(logs).all()


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_scikit_learn_answers_by_folds(model, shots, method):
    answers = cross_val_predict(FewShotClassifier(model), list(shots.texts), list(shots.labels), cv=2, method=method)
    assert len(answers) == len(shots)


def test_a_search_reaches_through_a_pipeline(model, shots):
    pipeline = make_pipeline(FunctionTransformer(), FewShotClassifier(model))
    search = GridSearchCV(pipeline, {"fewshotclassifier__mix": ["default", "paper"]}, cv=2)
    search.fit(list(shots.texts), list(shots.labels))
    assert search.best_params_["fewshotclassifier__mix"] in ("default", "paper")
    assert "FewShotClassifier" in repr(pipeline)
    assert "FewShotClassifier" in pipeline._repr_html_()


def test_scikit_learn_calibrates_it(model, shots):
    texts, labels = np.array(shots.texts), np.array(shots.labels)
    calibrated = CalibratedClassifierCV(FewShotClassifier(model), method="sigmoid", cv=2).fit(texts, labels)
    np.testing.assert_allclose(calibrated.predict_proba(NEW).sum(axis=1), 1)
    frozen = FrozenEstimator(FewShotClassifier(model).fit(texts, labels))
    again = CalibratedClassifierCV(frozen, method="sigmoid", cv=2).fit(texts, labels)
    assert again.predict(["turn on the lamp"]).tolist() == ["lamp"]


@pytest.mark.parametrize("column", [pd.Series, pl.Series, np.array, tuple, list])
def test_columns_of_any_sort_give_the_same_bits(model, shots, classifier, column):
    other = FewShotClassifier(model).fit(column(list(shots.texts)), column(list(shots.labels)))
    assert other.classes_.tolist() == classifier.classes_.tolist()
    assert (other.predict_proba(column(NEW)) == classifier.predict_proba(NEW)).all()
    assert other.score(column(list(shots.texts)), column(list(shots.labels))) > 0.9


def test_a_polars_table_is_told_from_a_column(model, shots):
    with pytest.raises(InputError, match="Found a table where a list of texts was expected"):
        FewShotClassifier(model).fit(pl.DataFrame({"text": shots.texts}), shots.labels)


@pytest.mark.parametrize("column", [pd.Series, pl.Series, list])
def test_labels_that_are_numbers_come_back_as_numbers(model, shots, column):
    numbers = [{"lamp": 7, "music": 30, "meeting": -2}[label] for label in shots.labels]
    classifier = FewShotClassifier(model).fit(shots.texts, column(numbers))
    assert classifier.classes_.tolist() == [-2, 7, 30]
    assert classifier.predict(["turn on the lamp"]).tolist() == [7]


def test_a_pipeline_of_texts_hands_on_its_classes(model, shots):
    pipeline = Pipeline([("classify", FewShotClassifier(model))]).fit(shots.texts, shots.labels)
    assert pipeline.classes_.tolist() == ["lamp", "meeting", "music"]
