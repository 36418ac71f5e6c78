import json
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import centroid_of
from manymetrics.errors import DataError, InputError, ModelError, NotEnoughExamples
from manymetrics.model import MetricModel, TaskCentroids, check_origin_folder, load_model, load_origin, save_origin


def with_centres(model, centroids):
    return MetricModel(model.predictor, replace(model.origin, centroids=centroids))


@pytest.fixture
def placed(model):
    """A model whose tasks' texts lie at three words."""
    words = model.metrics[2].encoder
    rows = np.stack([centroid_of(words, [word]) for word in ("lamp", "music", "meeting")])
    return with_centres(model, TaskCentroids("word-vectors", rows))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_kept_for_reports_is_what_a_model_folder_holds(placed, tmp_path):
    placed.save(tmp_path / "model")
    save_origin(placed.origin, tmp_path / "learned")
    whole, kept = content(tmp_path / "model"), content(tmp_path / "learned")
    assert sorted(kept) == ["checksums.json", "origin.safetensors"]
    assert kept["origin.safetensors"] == whole["origin.safetensors"]


def test_it_comes_back_from_a_model_and_from_a_run_whatever_the_folders_are_called(placed, tmp_path):
    placed.save(tmp_path / "learned")
    save_origin(placed.origin, tmp_path / "copied")
    for found in (
        load_origin(tmp_path / "learned"),
        load_origin(tmp_path / "copied"),
        load_model(tmp_path / "learned"),
    ):
        origin = found.origin if isinstance(found, MetricModel) else found
        assert list(origin.clusters) == [("a", "b"), ("c",)]
        np.testing.assert_array_equal(origin.transfer.scores, placed.transfer.scores)
        np.testing.assert_array_equal(origin.similarity.low_rank, placed.similarity.low_rank)
        np.testing.assert_array_equal(origin.centroids.rows, placed.origin.centroids.rows)
        assert (origin.similarity.steps, origin.similarity.gap, origin.transfer.score) == (7, 1e-7, "accuracy")
        assert (origin.recipe, origin.held_out) == (placed.recipe, ("b",))
        assert (origin.metrics, origin.bank_fingerprint) == (placed.origin.metrics, "f00d")
        assert origin.versions["manymetrics"] == mm.__version__


def test_a_folder_of_something_else_is_not_replaced(placed, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is there already"):
        save_origin(placed.origin, tmp_path)
    placed.save(tmp_path / "model")
    with pytest.raises(InputError, match="is there already"):
        save_origin(placed.origin, tmp_path / "model")


def test_a_finished_run_can_be_reported(tiny_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    model = mm.learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path / "run")
    save_origin(model.origin, tmp_path / "learned")
    assert content(tmp_path / "run" / "learned") == content(tmp_path / "learned")
    assert load_origin(tmp_path / "run" / "learned").bank_fingerprint == tiny_bank.fingerprint
    assert model.nearest_tasks(tiny_bank["colour-1"].train.texts, 1)[0][0] == "colour-1"


# --- where the tasks' texts lie


def test_the_nearest_tasks_come_in_order(placed, tmp_path):
    found = placed.nearest_tasks(["lamp", "lamp music"], 2)
    assert [name for name, _ in found] == ["a", "b"]
    assert 1 >= found[0][1] > found[1][1]
    (nearest, *_) = placed.nearest_tasks(["meeting"])
    assert nearest == ("c", pytest.approx(1, abs=1e-6))
    placed.save(tmp_path / "model")
    assert load_model(tmp_path / "model").nearest_tasks(["lamp", "lamp music"], 2) == found


def test_no_texts_are_near_to_nothing(placed):
    with pytest.raises(NotEnoughExamples, match="Found no texts to compare tasks with"):
        placed.nearest_tasks([])


def test_a_model_without_centres_says_what_it_lacks(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"has no centroids of its tasks' texts\. Learn it again"):
        load_model(tmp_path / "model").nearest_tasks(["lamp"])


def test_centres_that_do_not_fit_are_refused(model):
    for rows in (np.full((3, 16), np.nan, "f4"), np.zeros(3, "f4"), np.zeros((3, 16), int)):
        with pytest.raises(DataError, match="are not one finite row for each task"):
            TaskCentroids("word-vectors", rows)
    with pytest.raises(DataError, match="2 centroids were found for 3 tasks"):
        with_centres(model, TaskCentroids("word-vectors", np.zeros((2, 16), "f4")))
    for centroids in (
        TaskCentroids("word-vectors", np.zeros((3, 4), "f4")),
        TaskCentroids("nobody", np.zeros((3, 16), "f4")),
    ):
        with pytest.raises(ModelError, match=rf"texts are of no metric '{centroids.metric}' of this model"):
            with_centres(model, centroids).nearest_tasks(["lamp"])


def test_a_record_of_another_version_is_refused_before_learning_begins(placed, tmp_path):
    check_origin_folder(tmp_path / "learned")
    save_origin(placed.origin, tmp_path / "learned")
    check_origin_folder(tmp_path / "learned")
    checksums = tmp_path / "learned" / "checksums.json"
    checksums.write_text(json.dumps({**json.loads(checksums.read_text()), "format": 1}))
    with pytest.raises(
        InputError, match=r"learned is there already and is not a record of learning\. Give a new folder"
    ):
        check_origin_folder(tmp_path / "learned")
