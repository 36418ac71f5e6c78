"""A new kind of encoder takes one class: it is learned with, saved, loaded, adapted, and asked like those of ours."""

import numpy as np
import pytest

import manymetrics as mm

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
