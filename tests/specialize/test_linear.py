import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from manymetrics.encode import random_vectors, read_bank
from manymetrics.specialize import train_linear_metrics
from manymetrics.specialize.linear import fit_linear, train_linear_metric
from manymetrics.values import Clusters, Examples, Task, TaskBank


def test_a_sparse_softmax_regression_is_the_one_scikit_learn_finds():
    rng = np.random.default_rng(0)
    rows = sparse.random_array((300, 40), density=0.2, rng=rng, format="csr", dtype=np.float32)
    labels = (rows @ rng.standard_normal((40, 3))).argmax(axis=1)
    head = fit_linear(rows, labels, classes=3, penalty=0.5)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000).fit(rows, labels)
    np.testing.assert_allclose(head.chances(rows), theirs.predict_proba(rows), atol=5e-3)


def test_phrases_that_do_not_occur_have_no_weight():
    rows = sparse.csr_array(np.array([[1, 0, 0], [0, 0, 1]] * 5, dtype=np.float32))
    head = fit_linear(rows, np.array([0, 1] * 5), classes=2, penalty=0.1)
    assert not head.weights[1].any()
    assert head.weights[0, 0] > 0 > head.weights[0, 1]


def opinion(name, good, bad, labels=("bad", "good")):
    texts = [f"{word} {thing}" for thing in ("lamp", "tea", "shoe", "song") for word in (bad, good)]
    return Task(name, Examples(tuple(texts), labels * 4))


def done_here(stage, do, units, bank):
    return {unit.name: do(unit, bank) for unit in units}


@pytest.fixture
def vectors():
    return random_vectors(rows=512, dimensions=8)


def test_each_cluster_learns_what_its_own_tasks_mean_by_their_labels(vectors):
    tasks = [opinion("a", "nice", "dull"), opinion("b", "nice", "dull"), opinion("c", "dull", "nice")]
    bank = read_bank(TaskBank(tuple(tasks)), vectors)
    clusters = Clusters(("a", "b", "c"), np.array([0, 0, 1]))
    metrics = train_linear_metrics(bank, clusters, lambda *args: done_here(*args, bank))
    assert [(metric.name, metric.kind, metric.tasks) for metric in metrics] == [
        ("phrases-0", "linear", ("a", "b")),
        ("phrases-1", "linear", ("c",)),
        ("phrases", "linear", ("a", "b", "c")),
    ]
    shots, text = vectors.read(["x", "y"]), vectors.read(["nice hat"])
    fitted = [metric.learn(shots, np.array([0, 1]), ("bad", "good")) for metric in metrics]
    assert fitted[0].chances(text)[0, 1] > 0.6
    assert fitted[1].chances(text)[0, 1] < 0.4
    assert 0.5 < fitted[2].chances(text)[0, 1] < fitted[0].chances(text)[0, 1]


def test_one_cluster_has_no_second_metric_of_the_same_tasks(vectors):
    bank = read_bank(TaskBank((opinion("a", "nice", "dull"), opinion("b", "good", "poor"))), vectors)
    clusters = Clusters(("a", "b"), np.array([0, 0]))
    metrics = train_linear_metrics(bank, clusters, lambda *args: done_here(*args, bank))
    assert [metric.name for metric in metrics] == ["phrases-0"]


def test_held_out_tasks_are_not_learned_from(vectors):
    bank = read_bank(TaskBank((opinion("a", "nice", "dull"), opinion("b", "good", "poor"))), vectors)
    clusters = Clusters(("a", "b"), np.array([0, 0]))
    seen = []

    def work(stage, do, units):
        seen.extend(unit.spec["tasks"] for unit in units)
        return {unit.name: train_linear_metric(unit, bank) for unit in units}

    assert train_linear_metrics(bank, clusters, work, held_out=("b",))[0].tasks == ("a",)
    assert seen == [["a"]]


def test_tasks_with_labels_of_their_own_have_no_linear_metric(vectors):
    bank = read_bank(TaskBank((opinion("a", "x", "y"), opinion("b", "x", "y", ("no", "yes")))), vectors)
    clusters = Clusters(("a", "b"), np.array([0, 0]))
    assert train_linear_metrics(bank, clusters, lambda *args: done_here(*args, bank)) == []
