"""A new kind of encoder, or of representation, takes one class: it is learned with, saved and loaded like ours."""

from dataclasses import dataclass

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import ProjectionEncoder, normalize

ASKED = ["the crimson here", "some emerald", "azure so very", "", "nothing of it"]


class HashedWords(mm.Encoder, kind="test-hashed-words"):
    """How often each word occurs, by a hash of the word, times a weight for each place."""

    def __init__(self, weights):
        self.weights = weights

    def encode(self, texts):
        rows = np.zeros((len(texts), len(self.weights)), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                rows[row, sum(word.encode("utf-8", "replace")) % len(self.weights)] += 1
        return rows * self.weights

    def state(self):
        return mm.encode.State({"weights": self.weights}, {"about": "words by their hash"})

    @classmethod
    def from_state(cls, state):
        return cls(state.tensors["weights"])


@pytest.fixture(scope="module")
def model(tiny_bank, tiny_recipe, vectors):
    mine = HashedWords(np.linspace(1, 2, 97, dtype=np.float32))
    return mm.learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, encoders={"hashed-words": mine})


@pytest.fixture(scope="module")
def task(tiny_bank):
    return tiny_bank["colour-0"].train


def test_its_metric_joins_the_others(model):
    (metric,) = [metric for metric in model.metrics if metric.name == "hashed-words"]
    assert (metric.kind, metric.tasks, metric.cluster) == ("frozen", (), None)
    assert {"word-vectors", "projection"} < {metric.name for metric in model.metrics}
    assert "hashed-words" in {told["name"] for told in model.origin.metrics}


def test_a_model_with_it_answers_the_same_after_saving_and_loading(model, task, tmp_path):
    model.save(tmp_path / "model")
    again = mm.load_model(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    before, after = (one.adapt(task.texts, task.labels) for one in (model, again))
    assert (after.predict_proba(ASKED) == before.predict_proba(ASKED)).all()
    assert after.weights_ == before.weights_
    assert after.predict(ASKED[:3]).tolist() == ["red", "green", "blue"]


def test_it_can_be_all_that_a_model_has_beside_what_learned_from_labels(model, task, tmp_path):
    mine = [metric for metric in model.metrics if metric.tasks or metric.name == "hashed-words"]
    small = mm.MetricModel(mm.Predictor(tuple(mine)), model.origin)
    small.save(tmp_path / "model")
    classifier = mm.load_model(tmp_path / "model").adapt(task.texts, task.labels)
    assert classifier.predict(ASKED[:1]).tolist() == ["red"]
    assert [type(one).__name__ for one in classifier.classifier_.scope.encoders] == ["HashedWords"]


# --- a new representation


@dataclass(frozen=True, eq=False)
class RidgeRepresentation(mm.Representation, kind="test-ridge"):
    """Ridge regression from embeddings to the mean embedding of their label; solved, not trained by steps."""

    base: mm.Encoder
    score_name = "accuracy"

    def fit(self, tasks, validation, *, start, rng):
        rows, targets = zip(*(self._towards_means(task) for task in tasks), strict=True)
        rows, targets = np.concatenate(rows), np.concatenate(targets)  # (texts, width) each
        matrix = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ (targets - rows))
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
