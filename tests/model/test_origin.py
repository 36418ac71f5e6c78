import json

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.errors import InputError
from manymetrics.model import load_origin, save_origin
from manymetrics.model.origin import LEARNED, ORIGIN
from manymetrics.store import check_output_folder


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_comes_back_from_a_model_and_from_a_run_whatever_the_folders_are_called(model, tmp_path):
    model.save(tmp_path / "learned")
    save_origin(model.origin, tmp_path / "copied")
    assert sorted(content(tmp_path / "copied")) == ["checksums.json", ORIGIN]
    assert content(tmp_path / "copied")[ORIGIN] == content(tmp_path / "learned")[ORIGIN]
    for origin in (load_origin(tmp_path / "learned"), load_origin(tmp_path / "copied")):
        assert list(origin.clusters) == [("a", "b"), ("c",)]
        np.testing.assert_array_equal(origin.transfer.scores, model.transfer.scores)
        np.testing.assert_array_equal(origin.similarity.low_rank, model.similarity.low_rank)
        assert (origin.similarity.steps, origin.similarity.gap, origin.transfer.score) == (7, 1e-7, "accuracy")
        assert (origin.recipe, origin.held_out) == (model.recipe, ("b",))
        assert (origin.metrics, origin.bank_fingerprint) == (model.origin.metrics, "f00d")
        assert origin.versions["manymetrics"] == mm.__version__


def test_a_folder_of_something_else_is_not_replaced(model, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    model.save(tmp_path / "model")
    for folder in (tmp_path, tmp_path / "model"):
        with pytest.raises(InputError, match="is there already"):
            save_origin(model.origin, folder)


def test_a_finished_run_can_be_reported(tiny_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    model = mm.learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path / "run")
    save_origin(model.origin, tmp_path / "learned")
    assert content(tmp_path / "run" / "learned") == content(tmp_path / "learned")
    assert load_origin(tmp_path / "run" / "learned").bank_fingerprint == tiny_bank.fingerprint


def test_a_record_of_another_version_is_refused_before_learning_begins(model, tmp_path):
    check_output_folder(tmp_path / "learned", LEARNED)
    save_origin(model.origin, tmp_path / "learned")
    check_output_folder(tmp_path / "learned", LEARNED)
    checksums = tmp_path / "learned" / "checksums.json"
    checksums.write_text(json.dumps({**json.loads(checksums.read_text()), "format": 1}))
    with pytest.raises(InputError, match=r"is there already and is not a record of learning\. Give a new folder"):
        check_output_folder(tmp_path / "learned", LEARNED)
