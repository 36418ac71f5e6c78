from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode.centres import centre
from manymetrics.errors import InputError, ModelError, NotEnoughExamples
from manymetrics.store import load_learned, load_model, save_learned


@pytest.fixture
def placed(model):
    """A model whose tasks' texts lie at three words."""
    words = ("lamp", "music", "meeting")
    return replace(model, centres=np.stack([centre(model.vectors.read([word]), model.vectors.table) for word in words]))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_kept_for_reports_is_what_a_model_folder_holds(placed, tmp_path):
    placed.save(tmp_path / "model")
    save_learned(placed, tmp_path / "learned")
    whole, kept = content(tmp_path / "model"), content(tmp_path / "learned")
    assert sorted(kept) == ["checksums.json", "config.json", "measured.safetensors"]
    assert all(kept[name] == whole[name] for name in ("config.json", "measured.safetensors"))


@pytest.mark.parametrize("kept", ["model", "learned"])
def test_it_comes_back_from_a_model_and_from_a_run(placed, tmp_path, kept):
    placed.save(tmp_path / "model")
    save_learned(placed, tmp_path / "learned")
    learned = load_learned(tmp_path / kept)
    assert list(learned.clusters) == [("a", "b"), ("c",)]
    np.testing.assert_array_equal(learned.transfer.scores, placed.transfer.scores)
    np.testing.assert_array_equal(learned.similarity.low_rank, placed.similarity.low_rank)
    np.testing.assert_array_equal(learned.centres, placed.centres)
    assert (learned.recipe, learned.rules, learned.held_out) == (placed.recipe, placed.rules, ("b",))
    assert [metric["name"] for metric in learned.metrics] == [metric.name for metric in placed.metrics]
    assert learned.versions["manymetrics"] == mm.__version__


def test_a_second_learning_replaces_the_first(placed, make_model, tmp_path):
    save_learned(make_model(seed=9), tmp_path / "learned")
    save_learned(placed, tmp_path / "learned")
    save_learned(placed, tmp_path / "fresh")
    assert content(tmp_path / "learned") == content(tmp_path / "fresh")


def test_a_folder_of_something_else_is_not_replaced(placed, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is there already"):
        save_learned(placed, tmp_path)


def test_damage_is_noticed(placed, tmp_path):
    save_learned(placed, tmp_path / "learned")
    path = tmp_path / "learned" / "measured.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"measured\.safetensors is damaged"):
        load_learned(tmp_path / "learned")


def test_a_finished_run_can_be_reported(tiny_bank, tiny_recipe, vectors, tmp_path):
    for name in ("one", "two"):
        model = mm.learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path / name)
    assert content(tmp_path / "one" / "learned") == content(tmp_path / "two" / "learned")
    assert load_learned(tmp_path / "one" / "learned").bank == model.bank
    assert model.nearest_tasks(tiny_bank["colour-1"].train.texts, 1)[0][0] == "colour-1"


def test_the_nearest_tasks_come_in_order(placed, tmp_path):
    found = placed.nearest_tasks(["lamp", "lamp music"], 2)
    assert [name for name, _ in found] == ["a", "b"]
    assert 1 >= found[0][1] > found[1][1]
    assert placed.nearest_tasks(["meeting"]) == [
        ("c", pytest.approx(1, abs=1e-6)),
        *placed.nearest_tasks(["meeting"], 3)[1:],
    ]
    placed.save(tmp_path / "model")
    assert load_model(tmp_path / "model").nearest_tasks(["lamp", "lamp music"], 2) == found


def test_no_texts_are_near_to_nothing(placed):
    with pytest.raises(NotEnoughExamples, match="Found no texts to be near to"):
        placed.nearest_tasks([])


def test_an_old_model_loads_and_says_what_it_lacks(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"does not know where its tasks' texts lie\. Learn it again"):
        load_model(tmp_path / "model").nearest_tasks(["lamp"])


@pytest.mark.parametrize("centres", [np.zeros((2, 16), "f4"), np.full((3, 16), np.nan, "f4"), np.zeros((3, 4), "f4")])
def test_centres_that_do_not_fit_are_refused(model, tmp_path, centres):
    replace(model, centres=centres).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"does not hold together: .*centres"):
        load_model(tmp_path / "model")
