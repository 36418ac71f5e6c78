import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from manymetrics.encode import Features, LetterEncoder, random_vectors
from manymetrics.specialize import train_linear_metrics
from manymetrics.specialize.linear import fit_linear
from manymetrics.values import Clusters, Examples, Material, Task, TaskBank, Texts

WORDS = random_vectors(rows=512, dimensions=8)


def test_a_sparse_softmax_regression_is_the_one_scikit_learn_finds():
    rng = np.random.default_rng(0)
    rows = sparse.random_array((300, 40), density=0.2, rng=rng, format="csr", dtype=np.float32)
    labels = (rows @ rng.standard_normal((40, 3))).argmax(axis=1)
    head = fit_linear(rows, labels, classes=3, penalty=0.5)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000).fit(rows, labels)
    np.testing.assert_allclose(head.probabilities(rows), theirs.predict_proba(rows), atol=5e-3)


def test_phrases_that_do_not_occur_have_no_weight():
    rows = sparse.csr_array(np.array([[1, 0, 0], [0, 0, 1]] * 5, dtype=np.float32))
    head = fit_linear(rows, np.array([0, 1] * 5), classes=2, penalty=0.1)
    assert not head.weights[1].any()
    assert head.weights[0, 0] > 0 > head.weights[0, 1]


def opinion(name, good, bad, labels=("bad", "good")):
    texts = [f"{word} {thing}" for thing in ("lamp", "tea", "shoe", "song") for word in (bad, good)]
    return Task(name, Examples(tuple(texts), labels * 4))


def train(tasks, clusters, work=None, **options):
    """The linear metrics of some tasks, each trained here and now."""
    material = Material(TaskBank(tuple(tasks)), {WORDS.fingerprint: WORDS})

    def at_once(stage, do, units):
        return {unit.name: do(unit, material) for unit in units}

    clusters = Clusters(material.bank.names, np.array(clusters))
    return train_linear_metrics(material, clusters, work or at_once, base=WORDS, **options)


def test_each_cluster_learns_what_its_own_tasks_mean_by_their_labels():
    tasks = [opinion("a", "nice", "dull"), opinion("b", "nice", "dull"), opinion("c", "dull", "nice")]
    metrics = train(tasks, [0, 0, 1])
    assert [(metric.name, metric.kind, metric.tasks, metric.cluster) for metric in metrics] == [
        ("phrases-0", "linear", ("a", "b"), 0),
        ("phrases-1", "linear", ("c",), 1),
        ("phrases", "linear", ("a", "b", "c"), None),
    ]
    shots, text = Features(Texts(["x", "y"])), Features(Texts(["nice hat"]))
    fitted = [metric.learn(shots, np.array([0, 1]), ("bad", "good")) for metric in metrics]
    own, other, common = (each.probabilities(text)[0, 1] for each in fitted)
    assert own > 0.6
    assert other < 0.4
    assert 0.5 < common < own


def test_metrics_over_phrases_share_one_encoder():
    metrics = train([opinion("a", "nice", "dull"), opinion("b", "good", "poor")], [0, 1])
    assert len({metric.encoder for metric in metrics}) == 1


def test_one_cluster_has_no_second_metric_of_the_same_tasks():
    metrics = train([opinion("a", "nice", "dull"), opinion("b", "good", "poor")], [0, 0])
    assert [metric.name for metric in metrics] == ["phrases-0"]


def test_held_out_tasks_are_not_learned_from():
    tasks, seen = [opinion("a", "nice", "dull"), opinion("b", "good", "poor")], []
    (metric,) = train(tasks, [0, 0], held_out=("b",))
    assert metric.tasks == ("a",)
    train(tasks, [0, 0], lambda stage, do, units: seen.extend(units) or {}, held_out=("b",))
    assert [unit.spec["tasks"] for unit in seen] == [["a"]]
    fitted = metric.learn(Features(Texts(["x", "y"])), np.array([0, 1]), ("bad", "good"))
    nice, good = fitted.probabilities(Features(Texts(["nice", "good"])))[:, 1]
    assert nice > 0.6
    assert good == pytest.approx(0.5, abs=0.01), "a word of the held-out task alone says nothing"


def test_a_metric_whose_training_failed_is_missing_and_the_others_are_there():
    tasks = [opinion("a", "nice", "dull"), opinion("b", "good", "poor")]
    material = Material(TaskBank(tuple(tasks)), {WORDS.fingerprint: WORDS})
    metrics = train(tasks, [0, 1], lambda stage, do, units: {units[1].name: do(units[1], material)})
    assert [(metric.name, metric.cluster, metric.tasks) for metric in metrics] == [("phrases-1", 1, ("b",))]


def test_tasks_with_labels_of_their_own_have_no_linear_metric():
    assert train([opinion("a", "x", "y"), opinion("b", "x", "y", ("no", "yes"))], [0, 0]) == []


def test_a_cluster_that_is_held_out_whole_has_no_metric_and_nothing_fails():
    tasks = [opinion("a", "nice", "dull"), opinion("b", "nice", "dull"), opinion("c", "dull", "nice")]
    metrics = train(tasks, [0, 0, 1], held_out=("c",))
    assert [(metric.name, metric.tasks) for metric in metrics] == [("phrases-0", ("a", "b")), ("phrases", ("a", "b"))]


def test_over_a_sentence_encoder_rows_and_phrases_have_metrics_of_their_own():
    tasks = [opinion("a", "nice", "dull"), opinion("b", "good", "poor")]
    base = LetterEncoder(np.ones(2**10, np.float32))  # stands for any encoder that is no table of word vectors
    material = Material(TaskBank(tuple(tasks)), {base.fingerprint: base})
    clusters = Clusters(("a", "b"), np.array([0, 1]))
    metrics = train_linear_metrics(
        material, clusters, lambda stage, do, units: {unit.name: do(unit, material) for unit in units}, base=base
    )
    names = [(metric.name, metric.kind, metric.cluster) for metric in metrics]
    assert names[:3] == [("rows-0", "linear", 0), ("rows-1", "linear", 1), ("rows", "linear", None)]
    assert names[3:] == [("phrases-0", "phrases", 0), ("phrases-1", "phrases", 1), ("phrases", "phrases", None)]
    assert len({metric.encoder for metric in metrics}) == 2
    for metric in (metrics[0], metrics[3]):
        fitted = metric.learn(Features(Texts(["x", "y"])), np.array([0, 1]), ("bad", "good"))
        nice, dull = fitted.probabilities(Features(Texts(["nice", "dull"])))[:, 1]
        assert nice > 0.6
        assert dull < 0.4
