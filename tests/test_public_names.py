"""The public names: what is promised to type checkers, what is listed and what is there are the same."""

import importlib
import subprocess
import sys
from importlib.metadata import version

import pytest

import manymetrics as mm
from python_process import run_python

PACKAGES = {"classifier", "client", "collect", "encode", "engine", "evaluation", "model", "report", "store", "values",
            "weigh"}  # fmt: skip


def test_every_name_is_there_and_says_what_it_is():
    assert mm.__version__ == version("manymetrics")
    for name in mm.__all__:
        found = getattr(mm, name)
        assert callable(found), name
        assert found.__name__ == name
        assert found.__doc__, name


def test_names_are_listed_once_and_in_order_where_they_live():
    assert mm.__all__ == sorted(set(mm.__all__))
    assert len(mm.__all__) <= 70
    assert set(dir(mm)) - set(mm.__all__) == PACKAGES
    for name in mm.__all__:
        home = importlib.import_module(mm._HOME_OF[name])
        listed = getattr(home, "__all__", [name])
        assert name in listed, f"{name} is taken from {home.__name__}, which does not list it"


def test_packages_list_the_types_of_results_and_are_loaded_when_they_are_first_used():
    code = (
        "import sys, manymetrics as mm; assert 'manymetrics.classifier' not in sys.modules;"
        "print(mm.classifier.Answers.__name__, mm.evaluation.Estimate.__name__)"
    )
    assert run_python(code) == "Answers Estimate"


def test_every_error_of_the_family_is_public():
    errors = importlib.import_module("manymetrics.errors")
    assert {name for name, value in vars(errors).items() if isinstance(value, type)} <= set(mm.__all__)


def test_a_name_that_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'manymetrics' has no attribute 'learn_metric'"):
        mm.learn_metric  # noqa: B018


def test_type_checkers_know_the_names(tmp_path):
    (tmp_path / "used.py").write_text("import manymetrics as mm\nmm.learn_metrics\nmm.engine.Engine\nmm.learn_metric\n")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(tmp_path / "used.py")]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert 'Module has no attribute "learn_metric"' in found
    assert "Found 1 error" in found
