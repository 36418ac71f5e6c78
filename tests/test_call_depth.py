"""How much of the package a prediction and a learning pass through: functions and modules, counted in a trace."""

import inspect
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
import manymetrics as mm
from planted_bank import planted_bank, planted_task
from tiny_sentence import vocabulary_of, write_folder

PACKAGE = str(Path(mm.__file__).parent)
SETTINGS = {"projection_steps": 20, "own_steps": 5, "p1": 0.1, "p2": 0.1, "shots": 2, "clusters": 2}


def functions_called(do):
    """The functions of the package that are called, each with its file; bodies of classes and modules are none."""
    called = set()

    def note(frame, event, argument):
        code = frame.f_code
        is_ours = code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")
        if event == "call" and is_ours and code.co_flags & inspect.CO_OPTIMIZED:
            called.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
    return called


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """The functions of learning a model from files and saving it, and those of predicting a text."""
    folder, bank = tmp_path_factory.mktemp("walks"), planted_bank(6, size=10)
    mm.write_bank(bank, folder / "bank")
    write_folder(folder / "tiny", pooling="mean", vocabulary=vocabulary_of(list(bank)), width=48)
    recipe = mm.Recipe(encoder=str(folder / "tiny"), **SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learning = functions_called(lambda: mm.learn_metrics(folder / "bank", recipe).save(folder / "model"))
        task = planted_task("new", "colour", size=4, seed=99)
        classifier = mm.load_model(folder / "model").adapt(task.train.texts, task.train.labels)
        classifier.predict(["a text that opens the session"])
        predicting = functions_called(lambda: classifier.predict(["the crimson here"]))
    return {"learning": learning, "predicting": predicting}


@pytest.mark.parametrize(("walk", "functions", "modules"), [("learning", 308, 42), ("predicting", 30, 9)])
def test_a_walk_through_the_package_is_short(walks, walk, functions, modules):
    called = walks[walk]
    assert len(called) <= functions, sorted(called)
    assert len({file for file, _ in called}) <= modules
