"""Models small enough to see through, changed in one place."""

from dataclasses import replace

import pytest

from manymetrics.classifier import FewShotClassifier, Trust
from manymetrics.classifier.scope import Scope
from manymetrics.model import MetricModel
from manymetrics.weigh import MixSettings


@pytest.fixture(scope="session")
def rebuild():
    """The same model with other metrics, settings or trust."""

    def change(model, **changes):
        return MetricModel(replace(model.serving, **changes), model.origin)

    return change


@pytest.fixture(scope="session")
def by_letters(model, rebuild):
    """Random vectors of 16 dimensions are all somewhat alike, so this model judges the scope by letters alone."""
    return rebuild(model, trust=Trust(Scope(-3.0, {"letters": (10.0, 0.0)}, 0.0, 0.0)))


@pytest.fixture(scope="session")
def picky(by_letters, rebuild):
    """A model of which no cluster ever fits."""
    return rebuild(by_letters, settings=MixSettings(threshold=1.1))


@pytest.fixture(scope="session")
def classifier(by_letters, shots):
    """Not to be changed by tests."""
    return FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
