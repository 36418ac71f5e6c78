"""The experiments, which are not installed with the package, and small recipes for them."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import manymetrics
from manymetrics.collect import write_bank
from manymetrics.recipe import ConvolutionSettings, Recipe
from manymetrics.values import TaskBank
from tiny_sentence import asked_of

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


@pytest.fixture
def run_whole(tmp_path):
    """A function: a command's results, and what it shows, on a bank with an encoder that knows its words."""

    def run(command, bank, *options, targets=(), family=None, **settings):
        pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
        write_bank(TaskBank(tuple(bank), dict.fromkeys(targets, "target")), tmp_path / "data")
        if family:
            entries = [{"name": name, "family": family(name), "role": "target" if name in targets else None}
                       for name in bank.names]  # fmt: skip
            (tmp_path / "data" / "manifest.json").write_text(json.dumps(entries))
        sizes = {"projection_steps": 40, "own_steps": 20, **settings}
        asked = [*asked_of(tmp_path, bank, **sizes), *options]
        found = json.loads(CliRunner().invoke(command, [*asked, "--json"], catch_exceptions=False).stdout)
        assert [json.loads(path.read_text("utf-8")) for path in (tmp_path / "out").glob("*.json")] == [found]
        return found, CliRunner().invoke(command, [*asked, "--quiet"], catch_exceptions=False).stdout

    return run
