"""The experiments, which are not installed with the package, and small recipes for them."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import manymetrics
from manymetrics.recipe import ConvolutionSettings, Recipe

sys.path.insert(0, str(Path(manymetrics.__file__).parents[2]))


@pytest.fixture(scope="session")
def network_recipe():
    """Small networks over word vectors that need no file."""
    sizes = {"window": 3, "width": 8, "task_steps": 30, "metric_steps": 30, "learning_rate": 0.02}
    networks = ConvolutionSettings(**sizes)
    words = {"encoder": "words", "vectors": "random"}
    return Recipe(representation="convolution", **words, clusters=2, shots=2, convolution=networks)


@pytest.fixture(scope="session")
def with_networks():
    """A function: a recipe with other settings of its networks."""
    return lambda recipe, **settings: replace(recipe, convolution=replace(recipe.convolution, **settings))
