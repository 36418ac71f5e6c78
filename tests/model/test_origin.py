import json
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.errors import InputError
from manymetrics.model import load_origin, save_origin
from manymetrics.model.origin import LEARNED, ORIGIN, model_card
from manymetrics.recipe import Recipe
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


def test_the_card_says_what_the_model_is(model):
    card = model_card(model.origin)
    assert card.startswith("---\nlibrary_name: manymetrics\n")
    assert "3 metrics, learned from 3 tasks in 2 clusters" in card
    assert "| 0 | 2 | a, b |\n| 1 | 1 | c |" in card
    assert "- bank: `f00d`\n- word vectors: random; seed 0\n" in card
    recipe = Recipe(encoder="bge-small", seed=3)
    assert "- sentence encoder: bge-small; seed 3\n" in model_card(replace(model.origin, recipe=recipe))


def test_names_of_tasks_are_no_markup_in_the_card(model):
    names = ("<script>x</script>", "a | b", "[link](http://example.org)")
    clusters = replace(model.origin.clusters, names=names)
    card = model_card(replace(model.origin, clusters=clusters))
    assert "<script>" not in card
    assert "| 0 | 2 | &lt;script&gt;x&lt;/script&gt;, a \\| b |" in card
    assert "[link](" not in card
