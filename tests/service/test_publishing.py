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


def test_a_model_of_the_operators_own_tasks_is_published_as_it_is(model):
    own, gone = published(model, {}, fewest=3)
    assert (own.fingerprint, list(gone)) == (model.fingerprint, [])


@pytest.fixture
def routed(make_model):
    """Four clusters of tasks that are routed to, and metrics for the labels x and y, and for the labels v and w."""
    own, rng = make_model(), np.random.default_rng(0)
    names = tuple(f"task-{letter}" for letter in "abcdefghi")
    numbers = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3])
    encoder = own.metrics[2].encoder
    width = encoder.encode([""]).shape[1]
    rows = normalize(rng.standard_normal((2 * len(names), width))).astype(np.float16)
    routing = ClusterAssigner(
        names, numbers, 4, rows[:9], rows, np.full(9, 2), {"names+texts": {"names": 1.0, "texts": 1.0}}
    )

    def cluster_metric(number, name):
        tasks = tuple(np.array(names)[numbers == number])
        return Metric(name, "learned", own.metrics[0].encoder, "prototypical", 9.0, tasks, number)

    def for_labels(labels, *groups):
        head = Head(rng.standard_normal((width, 2)).astype(np.float32), np.zeros(2, np.float32))
        prior = np.full(2, 0.5, np.float32)
        heads = [
            Metric(f"cluster-{at}", "linear", encoder, tasks=tasks, cluster=at, shared=LabelHead(head, labels, prior))
            for at, tasks in enumerate(groups)
        ]
        return mm.Predictor((*heads, own.metrics[2]))

    predictor = mm.Predictor(
        (*(cluster_metric(number, f"cluster-{number}") for number in range(4)), *own.metrics[2:]),
        letters=own.predictor.letters,
        assigner=routing,
        by_labels=(for_labels(("x", "y"), names[:3], names[3:5]), for_labels(("v", "w"), names[3:5])),
    )  # fmt: skip
    square = np.eye(len(names))
    origin = replace(
        own.origin, clusters=mm.Clusters(names, numbers), transfer=mm.TransferMatrix(names, square),
        pairs=mm.ObservedPairs(names, square > 0, square > 0),
        similarity=mm.Similarity(names, square, 0 * square, sparsity=0.5, steps=1, gap=0.0),
        held_out=("task-d", "task-a"),
    )  # fmt: skip
    return mm.MetricModel(predictor, replace(origin, **describe_predictor(predictor)))


def test_nothing_of_fewer_than_three_clients_is_published_and_everything_else_stays(routed, tmp_path):
    clients = {f"task-{letter}": client for letter, client in zip("abcdefgh", "12312123", strict=True)}  # i: operator's
    small = ("task-d", "task-e")
    found, gone = published(routed, clients, fewest=3)
    assert gone == ["cluster-1", "cluster-1 for shared labels", "cluster-0 for shared labels"]
    assert [metric.name for metric in found.metrics] == ["cluster-0", "cluster-2", "cluster-3", "word-vectors"]
    assert [metric.cluster for metric in found.metrics] == [0, 1, 2, None]
    (part,) = found.predictor.by_labels
    assert (part.labels, [metric.name for metric in part.metrics]) == ({"x", "y"}, ["cluster-0", "word-vectors"])
    routing, before = found.predictor.assigner, routed.predictor.assigner
    kept = [place for place, name in enumerate(before.tasks) if name not in small]
    assert (routing.tasks, routing.count) == (tuple(before.tasks[place] for place in kept), 3)
    assert routing.clusters.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert (routing.centroids == before.centroids[kept]).all()
    assert found.held_out == ("task-a",)
    found.save(tmp_path / "model")
    written = b"".join(path.read_bytes() for path in (tmp_path / "model").iterdir())
    assert b"task-a" in written
    assert not [name for name in (*small, '"v"') if name.encode() in written]
    loaded = mm.load_model(tmp_path / "model")
    assert loaded.fingerprint == found.fingerprint
    loaded.adapt(["a lamp", "a song"], ["lamp", "music"]).predict(["lamp"])
    loaded.adapt(["a lamp", "a song"], ["x", "y"]).predict(["lamp"])


def test_a_model_of_which_all_clusters_are_too_small_is_published_without_them(routed, tmp_path):
    clients = {f"task-{letter}": "one" for letter in "abcdefghi"}
    found, _ = published(routed, clients, fewest=3)
    assert (found.predictor.assigner, found.predictor.by_labels, found.clusters.names) == (None, (), ())
    found.save(tmp_path / "model")
    assert mm.load_model(tmp_path / "model").origin.clusters.names == ()
