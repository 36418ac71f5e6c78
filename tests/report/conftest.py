"""Folders to report on: a model of any number of planted clusters."""

import pytest

from planted_model import planted_model


@pytest.fixture
def plant(model):
    return lambda **options: planted_model(model, **options)
