"""Models small enough to see through, changed in one place."""

from dataclasses import replace

import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.confidence import FEATURES, Scope
from manymetrics.model import MetricModel


def linear_scope(intercept, **coefficients):
    """A scope model of a few coefficients, by the names of the features; the others are 0."""
    return Scope((intercept, *(coefficients.get(name, 0.0) for name in FEATURES)))


@pytest.fixture(scope="session")
def make_scope():
    return linear_scope


@pytest.fixture(scope="session")
def rebuild():
    """The same model with other metrics or trust."""

    def change(model, **changes):
        return MetricModel(replace(model.predictor, **changes), model.origin)

    return change


@pytest.fixture(scope="session")
def letters_decide():
    """Random vectors of 16 dimensions are all somewhat alike, so the scope is judged by letters alone."""
    return linear_scope(-6.0, letters=20.0)


@pytest.fixture(scope="session")
def by_letters(model, rebuild, letters_decide):
    return rebuild(model, scope=letters_decide)


@pytest.fixture(scope="session")
def picky(make_model, rebuild, letters_decide):
    """A model of which no cluster fits."""
    return rebuild(make_model(blind=True), scope=letters_decide)


@pytest.fixture(scope="session")
def published(make_model, rebuild, letters_decide):
    """A model that answers by the published mix."""
    return rebuild(make_model(published=True), scope=letters_decide)


NEW = ["lamp on", "any music", "the weather", "", "something else entirely"]


@pytest.fixture(scope="session")
def assert_same():
    """Two classifiers have the same state, and the same answers to the bit."""

    def compare(one, other):
        for name in ("examples_", "descriptions_", "counter_examples_", "weights_", "uses_names_", "temperature_"):
            assert getattr(one, name) == getattr(other, name), name
        assert one.classes_.tolist() == other.classes_.tolist()
        assert one.get_params() | {"model": None} == other.get_params() | {"model": None}
        assert (one.predict_proba(NEW) == other.predict_proba(NEW)).all()
        assert (one.scope_proba(NEW) == other.scope_proba(NEW)).all()

    return compare


@pytest.fixture(scope="session")
def classifier(by_letters, shots):
    """Not to be changed by tests."""
    return FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
