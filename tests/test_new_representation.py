"""A new kind of representation, a ridge regression from embeddings to the means of their labels: from bank to model."""

from dataclasses import dataclass

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import ProjectionEncoder, normalize

PENALTY = 1.0


@dataclass(frozen=True, eq=False)
class RidgeRepresentation(mm.Representation, kind="test-ridge"):
    """Embeddings are moved towards the mean embedding of their label; solved, not trained by steps."""

    base: mm.Encoder
    score_name = "accuracy"

    def fit(self, tasks, validation, *, start, rng):
        rows, targets = zip(*(self._towards_means(task) for task in tasks), strict=True)
        rows, targets = np.concatenate(rows), np.concatenate(targets)  # (texts, width) each
        matrix = np.linalg.solve(rows.T @ rows + PENALTY * np.eye(rows.shape[1]), rows.T @ (targets - rows))
        fitted = mm.Fitted({"matrix": matrix.astype(np.float32)}, n_steps=1)
        return fitted if not start or self._mean(fitted, validation) >= self._mean(start, validation) else start

    def score(self, fitted, episode):
        encoder = self.encoder(fitted)
        support, query = (normalize(encoder.encode(part.texts)) for part in (episode.support, episode.query))
        belongs = np.eye(len(episode.support.classes))[episode.support.numbers]
        predicted = (query @ normalize(belongs.T @ support).T).argmax(axis=1)
        return float(np.mean(predicted == episode.query.numbers))

    def encoder(self, fitted):
        return ProjectionEncoder(self.base, fitted.tensors["matrix"])

    def _towards_means(self, task):
        rows, labels = normalize(self.base.encode(task.train.texts)), task.train.numbers
        return rows, normalize(np.eye(len(task.labels))[labels].T @ rows)[labels]

    def _mean(self, fitted, episodes):
        return np.mean([self.score(fitted, episode) for episode in episodes]) if episodes else 0.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_is_learned_with_a_new_representation_saved_and_loaded(make_bank, vectors, tmp_path):
    bank, recipe = make_bank(5), mm.Recipe.fast(representation="test-ridge", clusters=2, shots=2)
    model = mm.learn_metrics(bank.only(bank.names[1:]), recipe, vectors=vectors, run=tmp_path / "run")
    assert model.transfer.score == "accuracy"
    assert {metric.name for metric in model.metrics} >= {"projection", "cluster-0", "cluster-1"}
    model.save(tmp_path / "model")
    loaded = mm.load_model(tmp_path / "model")
    assert loaded.origin.recipe.representation == "test-ridge"
    task = bank.tasks[0]
    first, again = (one.adapt(task.train.texts, task.train.labels) for one in (model, loaded))
    np.testing.assert_array_equal(first.predict_proba(task.test.texts), again.predict_proba(task.test.texts))
    assert np.mean(again.predict(task.test.texts) == np.array(task.test.labels)) > 0.6
