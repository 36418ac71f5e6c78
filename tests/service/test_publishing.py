"""Of a model that was learned from shared tasks nothing is published that comes from fewer than three clients."""

from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import normalize
from manymetrics.measure.heads import Head
from manymetrics.model import describe_predictor
from manymetrics.service.domain.shared_tasks import published
from manymetrics.specialize import LabelHead, Metric
from manymetrics.weigh import ClusterAssigner
from planted_model import planted_model

NAMES = tuple(f"task-{letter}" for letter in "abcdefghij")  # in clusters of three, three, two and two tasks


def test_a_model_of_the_operators_own_tasks_is_published_as_it_is(model):
    own, gone = published(model, {}, fewest=3)
    assert (own.fingerprint, list(gone)) == (model.fingerprint, [])


@pytest.fixture
def routed(make_model):
    """Four clusters of tasks that are routed to, and metrics for the labels x and y, and for the labels v and w."""
    own, rng = planted_model(make_model(), tasks=len(NAMES), clusters=4, names=NAMES), np.random.default_rng(0)
    encoder = own.metrics[-1].encoder
    width = encoder.encode([""]).shape[1]
    rows = normalize(rng.standard_normal((2 * len(NAMES), width))).astype(np.float16)
    signals = {"names+texts": {"names": 1.0, "texts": 1.0}}
    routing = ClusterAssigner(NAMES, own.clusters.labels, 4, rows[: len(NAMES)], rows, np.full(len(NAMES), 2), signals)

    def for_labels(labels, *groups):
        head = Head(rng.standard_normal((width, 2)).astype(np.float32), np.zeros(2, np.float32))
        prior = np.full(2, 0.5, np.float32)
        heads = [
            Metric(f"cluster-{at}", "linear", encoder, tasks=tasks, cluster=at, shared=LabelHead(head, labels, prior))
            for at, tasks in enumerate(groups)
        ]
        return mm.Predictor((*heads, own.metrics[-1]))

    by_labels = (for_labels(("x", "y"), NAMES[:3], NAMES[3:6]), for_labels(("v", "w"), NAMES[3:6]))
    predictor = replace(own.predictor, assigner=routing, by_labels=by_labels)
    return mm.MetricModel(predictor, replace(own.origin, **describe_predictor(predictor)))


def test_nothing_of_fewer_than_three_clients_is_published_and_everything_else_stays(routed, tmp_path):
    clients = dict(zip(NAMES[:6], "123121", strict=True))  # the other tasks are the operator's
    small = ("task-d", "task-e", "task-f")
    found, gone = published(routed, clients, fewest=3)
    assert gone == ["cluster-1", "cluster-1 for shared labels", "cluster-0 for shared labels"]
    assert [metric.name for metric in found.metrics] == ["cluster-0", "cluster-2", "cluster-3", "word-vectors"]
    assert [metric.cluster for metric in found.metrics] == [0, 1, 2, None]
    (part,) = found.predictor.by_labels
    assert (part.labels, [metric.name for metric in part.metrics]) == ({"x", "y"}, ["cluster-0", "word-vectors"])
    routing, before = found.predictor.assigner, routed.predictor.assigner
    kept = [place for place, name in enumerate(before.tasks) if name not in small]
    assert (routing.tasks, routing.count) == (tuple(before.tasks[place] for place in kept), 3)
    assert routing.clusters.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert (routing.centroids == before.centroids[kept]).all()
    assert found.held_out == tuple(name for name in routed.held_out if name not in small)
    found.save(tmp_path / "model")
    written = b"".join(path.read_bytes() for path in (tmp_path / "model").iterdir())
    assert b"task-a" in written
    assert not [name for name in (*small, '"v"') if name.encode() in written]
    loaded = mm.load_model(tmp_path / "model")
    assert loaded.fingerprint == found.fingerprint
    loaded.adapt(["a lamp", "a song"], ["lamp", "music"]).predict(["lamp"])
    loaded.adapt(["a lamp", "a song"], ["x", "y"]).predict(["lamp"])


def test_a_model_of_which_all_clusters_are_too_small_is_published_without_them(routed, tmp_path):
    found, _ = published(routed, dict.fromkeys(NAMES, "one"), fewest=3)
    assert (found.predictor.assigner, found.predictor.by_labels, found.clusters.names) == (None, (), ())
    found.save(tmp_path / "model")
    assert mm.load_model(tmp_path / "model").origin.clusters.names == ()
