import pickle
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from manymetrics.errors import DataError, InputError, NotEnoughExamples
from manymetrics.weigh import FewShotClassifier, Rules

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=80)


@pytest.fixture(scope="module")
def classifier(model, shots):
    return FewShotClassifier(model).fit(shots.texts, shots.labels)


# --- scikit-learn's contract


def test_parameters_are_read_and_set(model):
    classifier = FewShotClassifier(model, mix="paper", adaptive=False)
    assert classifier.get_params() == {
        "model": model,
        "mix": "paper",
        "adaptive": False,
        "reject": False,
        "margin": 0.0,
        "rejected": None,
    }
    assert classifier.set_params(mix="default").mix == "default"
    assert is_classifier(classifier)


def test_a_clone_shares_the_model_and_knows_no_examples(classifier, model):
    copy = clone(classifier)
    assert copy.model is model
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict(["lamp"])


def test_a_classifier_without_examples_says_so(model):
    with pytest.raises(NotFittedError, match=r"FewShotClassifier instance is not fitted yet\. Call 'fit'"):
        FewShotClassifier(model).predict_proba(["lamp"])


def test_fit_returns_itself_and_changes_no_parameter(model, shots):
    classifier = FewShotClassifier(model)
    assert classifier.fit(shots.texts, shots.labels) is classifier
    assert classifier.get_params() == FewShotClassifier(model).get_params()


def test_classes_are_sorted_and_are_the_columns(classifier, shots):
    assert classifier.classes_.tolist() == ["lamp", "meeting", "music"]
    chances = classifier.predict_proba(NEW)
    assert chances.shape == (5, 3)
    assert classifier.predict(NEW).tolist() == [classifier.classes_[row.argmax()] for row in chances]
    assert classifier.score(shots.texts, shots.labels) > 0.9


def test_the_rows_of_the_examples_may_come_in_any_order(model, shots, classifier):
    order = np.random.default_rng(0).permutation(len(shots))
    mixed = shots.take(order)
    other = FewShotClassifier(model).fit(mixed.texts, mixed.labels)
    np.testing.assert_allclose(other.predict_proba(NEW), classifier.predict_proba(NEW), atol=1e-5)


@pytest.mark.parametrize("kind", [int, float, np.int64, bool])
def test_labels_that_are_numbers_stay_numbers(model, kind):
    labels = [kind(number) for number in (1, 1, 0, 0)]
    classifier = FewShotClassifier(model).fit(["lamp on", "lamp off", "play music", "music"], labels)
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.predict(["lamp", "music"]).tolist() == [1, 0]
    assert classifier.predict(["lamp"]).dtype == np.array(labels).dtype


def test_columns_of_a_data_frame_come_in(model, shots, classifier):
    frame = pd.DataFrame({"text": shots.texts, "label": shots.labels}, index=range(100, 114))
    other = FewShotClassifier(model).fit(frame["text"], frame["label"])
    assert (other.predict_proba(pd.Series(NEW)) == classifier.predict_proba(NEW)).all()
    again = FewShotClassifier(model).fit(np.array(shots.texts), frame["label"].astype("category"))
    assert (again.predict_proba(np.array(NEW, dtype=object)) == classifier.predict_proba(NEW)).all()


def test_texts_may_come_one_by_one(model, shots, classifier):
    other = FewShotClassifier(model).fit(iter(shots.texts), iter(shots.labels))
    assert (other.predict_proba(iter(NEW)) == classifier.predict_proba(NEW)).all()


def test_a_grid_of_mixes_can_be_searched(model, shots):
    grid = {"mix": ["default", "paper"], "adaptive": [False]}
    search = GridSearchCV(FewShotClassifier(model), grid, cv=2).fit(list(shots.texts), list(shots.labels))
    assert search.best_params_["mix"] in ("default", "paper")
    assert search.best_estimator_.model is model
    assert len(search.predict(NEW)) == 5


def test_examples_can_be_cross_validated(model, shots):
    answers = cross_val_predict(FewShotClassifier(model), np.array(shots.texts), np.array(shots.labels), cv=2)
    assert set(answers) <= set(shots.labels)
    assert np.mean(answers == np.array(shots.labels)) > 0.5


def test_it_stands_at_the_end_of_a_pipeline(model, shots, classifier):
    shout = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    pipeline = Pipeline([("shout", shout), ("classify", FewShotClassifier(model))])
    pipeline.fit(list(shots.texts), list(shots.labels))
    np.testing.assert_allclose(pipeline.predict_proba(NEW), classifier.predict_proba(NEW), atol=1e-6)


def test_a_refit_forgets_the_examples_before(model, shots, classifier):
    again = FewShotClassifier(model).fit(["yes", "no", "yeah", "nope"], [1, 0, 1, 0]).fit(shots.texts, shots.labels)
    assert (again.predict_proba(NEW) == classifier.predict_proba(NEW)).all()


def test_a_fitted_classifier_can_be_sent_to_another_process(classifier):
    sent = pickle.loads(pickle.dumps(classifier))  # noqa: S301 - as scikit-learn does it with n_jobs=2
    assert (sent.predict_proba(NEW) == classifier.predict_proba(NEW)).all()


# --- the mix


def test_every_metric_has_its_weight_by_name(classifier):
    assert list(classifier.weights_) == ["cluster-0", "cluster-1", "word-vectors", "letters", "together"]
    assert sum(classifier.weights_.values()) == pytest.approx(1)
    assert all(weight >= 0 for weight in classifier.weights_.values())
    assert classifier.fallback_ is None
    assert classifier.n_examples_ == 14


def test_the_published_mix_is_of_the_clusters_metrics_alone(model, shots):
    classifier = model.adapt(shots.texts, shots.labels, mix="paper", adaptive=False)
    assert list(classifier.weights_) == ["cluster-0", "cluster-1"]
    assert classifier.mix_.steps == 40
    np.testing.assert_allclose(classifier.predict_proba(NEW).sum(axis=1), 1)


def test_one_example_of_each_label_leaves_the_prior(model):
    classifier = model.adapt(["lamp on", "play music"], ["lamp", "music"])
    assert list(classifier.weights_.values()) == pytest.approx([4 / 15, 2 / 15, 0.2, 0.2, 0.2])  # of two tasks, one
    assert classifier.fallback_ is None
    assert classifier.predict(["lamp on", "play music"]).tolist() == ["lamp", "music"]


def test_a_label_with_one_example_among_others_works(model, shots):
    texts, labels = [*shots.texts, "a lone duck"], [*shots.labels, "duck"]
    assert model.adapt(texts, labels).predict(["a lone duck"]).tolist() == ["duck"]


def test_a_task_no_cluster_fits_gets_a_model_of_its_own_and_the_reason(model, shots):
    picky = replace(model, rules=Rules({}, 5.0, threshold=1.1))
    classifier = picky.adapt(shots.texts, shots.labels)
    assert "No cluster fits this task" in classifier.fallback_
    assert "less than the 107% asked for" in classifier.fallback_
    assert "A model trained on the examples alone answers instead" in classifier.fallback_
    assert classifier.predict(["the lamp", "music please"]).tolist() == ["lamp", "music"]
    np.testing.assert_allclose(classifier.predict_proba(NEW).sum(axis=1), 1, atol=1e-5)
    assert picky.adapt(shots.texts, shots.labels, adaptive=False).fallback_ is None


def test_labels_drawn_by_lot_fall_back(model):
    rng = np.random.default_rng(0)
    strict = replace(model, rules=Rules({}, 5.0, threshold=0.4))
    texts = [" ".join(rng.choice(list("abcdefghij"), 4)) for _ in range(40)]
    classifier = strict.adapt(texts, rng.permutation([0, 1] * 20))
    assert "the best learned metric answers" in classifier.fallback_


def test_the_published_fallback_is_the_published_network(model):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    numbers = np.arange(12) // 2
    texts = [f"{'abcdefghijkl'[place]}{place}" for place in range(12)]  # no two alike: nobody can match them
    classifier = model.adapt(texts, numbers, mix="paper")
    if classifier.fallback_ is None:
        pytest.skip("the random encoders happened to match a fifth of the texts")
    assert "less than the 20% asked for" in classifier.fallback_
    np.testing.assert_allclose(classifier.predict_proba(texts).sum(axis=1), 1, atol=1e-5)
    assert np.mean(classifier.predict(texts) == numbers) > 0.8


def test_a_shared_label_model_serves_its_labels_and_others(make_model, shots):
    model = make_model(shared_labels=("lamp", "meeting", "music"))
    same = model.adapt(shots.texts, shots.labels)
    other = model.adapt(shots.texts, [label.upper() for label in shots.labels])
    for classifier in (same, other):
        np.testing.assert_allclose(classifier.predict_proba(NEW).sum(axis=1), 1)
    assert not np.allclose(same.predict_proba(NEW), other.predict_proba(NEW))


# --- any text in, probabilities out


@settings(deadline=None, max_examples=80)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4))
def test_any_unicode_text_gets_finite_probabilities_that_sum_to_one(classifier, texts):
    chances = classifier.predict_proba(texts)
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.lists(ANY_TEXT, min_size=2, max_size=8), st.data())
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_any_unicode_text_can_be_an_example(model, texts, data):
    labels = [0, 1, *data.draw(st.lists(st.integers(0, 2), min_size=len(texts) - 2, max_size=len(texts) - 2))]
    chances = FewShotClassifier(model).fit(texts, labels).predict_proba([*texts, "lamp"])
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"mix": "paper", "adaptive": False}, {"threshold": 1.1}])
def test_a_text_gets_the_same_chances_in_any_company(model, shots, options):
    options = dict(options)
    model = replace(model, rules=Rules({}, 5.0, options.pop("threshold", -np.inf)))
    classifier = model.adapt(shots.texts, shots.labels, **options)
    long = " ".join(f"word{number}" for number in range(10_000))
    company = [*NEW, long, *shots.texts]
    order = np.random.default_rng(0).permutation(len(company))
    together = classifier.predict_proba(company)
    shuffled = classifier.predict_proba([company[row] for row in order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-5)
    for place, text in enumerate(NEW):
        np.testing.assert_allclose(classifier.predict_proba([text])[0], together[place], atol=1e-5)


def test_many_texts_are_answered_in_portions_alike(classifier, monkeypatch):
    whole = classifier.predict_proba(NEW * 3)
    monkeypatch.setattr("manymetrics.weigh.classifier.TEXTS_AT_ONCE", 4)
    np.testing.assert_allclose(classifier.predict_proba(NEW * 3), whole, atol=1e-6)


def test_no_texts_get_no_answers(classifier):
    assert classifier.predict_proba([]).shape == (0, 3)
    assert len(classifier.predict([])) == 0


def test_asking_does_not_change_the_answer(classifier):
    before = classifier.predict_proba(NEW)
    classifier.predict(["word " * 500, "\x00"])
    assert (classifier.predict_proba(NEW) == before).all()


@pytest.mark.parametrize("text", ["!" * 10**6, "😀" * 250_000, "a" * 10**6])
def test_a_text_of_a_million_characters_is_answered_in_a_few_seconds(classifier, text):
    started = time.process_time()
    assert np.isfinite(classifier.predict_proba([text])).all()
    assert time.process_time() - started < 5


# --- what cannot be used is refused in one clear sentence


@pytest.mark.parametrize(
    ("texts", "labels", "kind", "message"),
    [
        (["a", "b"], ["x", None], DataError, r"Found the label None in row 1\. Every example needs a label"),
        (["a", "b"], ["x", np.nan], DataError, "Found the label nan in row 1"),
        (["a", "b"], [1.0, float("nan")], DataError, "Found the label nan in row 1"),
        (["a", "b"], pd.Series(["x", None]), DataError, "Found the label .* in row 1"),
        (["a", "b"], pd.Series(["x", None], dtype="string"), DataError, "Found the label .* in row 1"),
        (["a", "b"], pd.array([1, None], dtype="Int64"), DataError, "Found the label .* in row 1"),
        (["a", "b"], [pd.NaT, "x"], DataError, "Found the label NaT in row 0"),
        (["a", "b", "c"], ["x", "y"], DataError, r"Found 3 texts and 2 labels\. Give one label for each text\."),
        (["a", "b"], ["x", "x"], NotEnoughExamples, r"Found 2 examples of one label, 'x'\. A classifier needs"),
        (["a"], ["x"], NotEnoughExamples, "Found 1 example of one label, 'x'"),
        ([], [], NotEnoughExamples, "Found no examples"),
        (["a", "b"], ["x", 1], DataError, "Some labels are strings and some are not"),
        ("text", ["x", "y"], DataError, r"Found one text where a list of texts was expected.*\[text\]"),
        (["a", None], ["x", "y"], DataError, "Found None of type NoneType in row 1 where a text was expected"),
        (["a", np.nan], ["x", "y"], DataError, "Found nan of type float in row 1"),
        ([b"a", "b"], ["x", "y"], DataError, "Found b'a' of type bytes in row 0"),
        ([["a"], ["b"]], ["x", "y"], DataError, r"Found \['a'\] of type list in row 0"),
        (np.array([["a"], ["b"]]), ["x", "y"], DataError, "of type ndarray in row 0 where a text was expected"),
        (pd.DataFrame({"text": ["a", "b"]}), ["x", "y"], DataError, "Found a table .* one column"),
        (["a", "b"], np.array([["x"], ["y"]]), DataError, r"Found the label .* in row 0\. .* strings or numbers"),
        (["a", "b"], [("x", 1), ("y", 2)], DataError, r"Found the label \('x', 1\) in row 0"),
        (["a", "b"], [{"x"}, {"y"}], DataError, r"Found the label \{'x'\} in row 0"),
        (["a", "b"], "xy", DataError, "Found one label where a list of labels was expected"),
        (None, ["x", "y"], DataError, "Found None where a list of texts was expected"),
        (["a", "b"], None, DataError, "Found None where a list of labels was expected"),
    ],
)
def test_examples_that_cannot_be_used_are_refused(model, texts, labels, kind, message):
    with pytest.raises(kind, match=message):
        FewShotClassifier(model).fit(texts, labels)


def test_five_thousand_labels_are_refused(model):
    texts = [str(number) for number in range(5000)]
    with pytest.raises(
        InputError, match=r"Found 5000 labels, and at most 1000.*Are the label and the text columns swapped\?"
    ):
        FewShotClassifier(model).fit(texts, texts)


def test_texts_that_cannot_be_answered_are_refused(classifier):
    with pytest.raises(DataError, match="Found one text where a list of texts was expected"):
        classifier.predict("lamp")
    with pytest.raises(DataError, match="Found 3 of type int in row 1"):
        classifier.predict(["lamp", 3])
    with pytest.raises(DataError, match=r"Found a table .* one column"):
        classifier.predict(pd.DataFrame({"text": ["lamp", "music"]}))


def test_a_classifier_without_a_model_says_how_to_get_one():
    with pytest.raises(InputError, match=r"has no model\. Make it with FewShotClassifier\(load_model\(path\)\)"):
        FewShotClassifier().fit(["a", "b"], [0, 1])


def test_a_mix_nobody_knows_is_refused(model):
    with pytest.raises(InputError, match=r"There is no mix 'best'\. Choose 'default' or 'paper'\."):
        FewShotClassifier(model, mix="best").fit(["a", "b"], [0, 1])


def test_nothing_is_warned_about_on_the_way(model, shots):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.adapt(shots.texts, shots.labels).predict_proba(NEW)
