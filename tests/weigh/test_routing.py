"""Whose cluster a new task belongs to, on tasks whose names and texts are planted."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import Encoder, State
from manymetrics.errors import DataError
from manymetrics.specialize import SimilarityMetric
from manymetrics.values import Clusters, Examples, Task, TaskBank, Texts
from manymetrics.weigh import Ensemble, Routing, learn_routing
from manymetrics.weigh.routing import NAMES, TEXTS, route_texts

WORDS = ("joy", "anger", "car", "train", "film", "meal", "other", "thing")


class Words(Encoder, kind="test-routing-words"):
    """The words of a text, counted."""

    def encode(self, texts):
        return np.array([[text.split().count(word) + 1e-3 for word in WORDS] for text in texts], np.float32)

    def state(self):
        return State()

    @classmethod
    def from_state(cls, state):
        return cls()


def task(name, labels, topic):
    texts = tuple(f"{topic} {word}" for word in ("other", "thing", "other thing", "thing thing"))
    return Task(name, Examples(texts, (labels * 2)[:4]))


CLUSTERS = np.array([0, 0, 0, 1, 1, 1])
FEELINGS, VEHICLES = ("joy", "anger"), ("car", "train")


def bank(*, names=True, texts=True):
    """Three tasks about feelings in films, three about vehicles and meals; names or texts may say nothing."""
    rows = []
    for place, cluster in enumerate(CLUSTERS.tolist()):
        labels = (FEELINGS, VEHICLES)[cluster if names else place % 2]
        rows.append(task(f"t{place}", labels, ("film", "meal")[cluster if texts else place % 2]))
    return TaskBank(tuple(rows))


def clusters(labels=CLUSTERS):
    return Clusters(tuple(f"t{place}" for place in range(6)), labels)


@pytest.fixture(scope="module")
def routing():
    return learn_routing(bank(), clusters(), Words())


def test_a_task_whose_labels_are_called_alike_is_taken_for_one_of_their_cluster(routing):
    found = route_texts(routing, Words(), Texts(["film thing"]), Texts(["anger", "joy"]))
    assert found.likeliest == 0
    assert sum(found.clusters) == pytest.approx(1)
    assert set(found.alike) == {"t0", "t1", "t2"}
    other = route_texts(routing, Words(), Texts(["meal thing"]), Texts(["train", "car"]))
    assert other.likeliest == 1
    assert set(other.alike) == {"t3", "t4", "t5"}


def test_what_decided_is_said():
    by_names = learn_routing(bank(texts=False), clusters(), Words())
    found = route_texts(by_names, Words(), Texts(["film other"]), Texts(["car", "train"]))
    assert (found.likeliest, found.reason) == (1, NAMES)
    said = str(replace(found, clusters=(0.25, 0.75)))
    assert said == "taken for a task like t3, t4, t5 with a probability of 75%: its labels are called alike"
    by_texts = learn_routing(bank(names=False), clusters(), Words())
    found = route_texts(by_texts, Words(), Texts(["meal other"]), Texts(["joy", "anger"]))
    assert (found.likeliest, found.reason) == (1, TEXTS)
    assert str(found).endswith(": its texts are alike")


def test_names_alone_and_texts_alone_have_coefficients_of_their_own(routing):
    assert route_texts(routing, Words(), Texts([]), Texts(["car", "train"])).likeliest == 1
    assert route_texts(routing, Words(), Texts(["meal"]), None).likeliest == 1
    assert set(routing.coefficients) == {"names+texts", "names", "texts"}


def test_likeness_that_tells_nothing_routes_nowhere():
    found = learn_routing(bank(names=False, texts=False), clusters(np.array([0, 0, 1, 1, 0, 1])), Words())
    route = route_texts(found, Words(), Texts(["film"]), Texts(["joy", "anger"]))
    assert route is None or max(route.clusters) < 0.75


def test_one_cluster_or_shared_labels_need_no_routing():
    assert learn_routing(bank(), clusters(np.zeros(6, dtype=int)), Words()) is None
    shared = TaskBank(tuple(task(f"t{place}", FEELINGS, "film") for place in range(6)))
    assert learn_routing(shared, clusters(), Words()) is None


def test_tasks_that_are_left_out_leave_no_trace(routing):
    left = routing.without({"t0", "t3"})
    assert left.tasks == ("t1", "t2", "t4", "t5")
    assert (left.count, left.clusters.tolist()) == (2, [0, 0, 1, 1])
    assert len(left.names) == 8
    np.testing.assert_array_equal(left.names[:2], routing.names[2:4])
    nobody = routing.without({"t3", "t4", "t5"})
    assert nobody.route(None, Words().encode(Texts(["car", "train"]))).likeliest == 0


def test_tasks_of_one_source_do_not_speak_for_one_another():
    """Names repeat within sources alone, so they must not count for a source never seen."""
    own = ("joy", "anger"), ("car", "train"), ("film", "meal")
    tasks = [replace(task(f"t{place}", own[place // 2], "other"), source=f"s{place // 2}") for place in range(6)]
    found = learn_routing(TaskBank(tuple(tasks)), clusters(np.array([0, 0, 0, 1, 1, 1])), Words())
    fooled = learn_routing(
        TaskBank(tuple(replace(one, source=one.name) for one in tasks)), clusters(np.array([0, 0, 0, 1, 1, 1])), Words()
    )
    assert found.coefficients["names"][NAMES] < fooled.coefficients["names"][NAMES]


def test_values_that_do_not_fit_together_are_refused(routing):
    for wrong in (
        {"tasks": routing.tasks[:-1]},
        {"clusters": routing.clusters + 1},
        {"labels": routing.labels + 1},
        {"labels": np.array([12, 0, 0, 0, 0, 0])},
        {"centres": routing.centres[:, :3]},
        {"names": np.full_like(routing.names, np.nan)},
        {"coefficients": {"names": {NAMES: float("nan")}}},
        {"coefficients": {"names+texts": {NAMES: 1.0}}},
        {"clusters": routing.clusters.astype(float)},
        {"labels": routing.labels.astype(float)},
    ):
        with pytest.raises(DataError, match="does not fit together"):
            replace(routing, **wrong)


def metric(name, cluster=None, tasks=("t0",)):
    return SimilarityMetric(name, "learned", Words(), "prototypical", 10.0, tasks, cluster)


def test_a_route_is_the_prior_of_the_clusters_metrics(routing):
    examples = bank()["t0"].labelled_train
    route = replace(route_texts(routing, Words(), examples.texts, None), clusters=(0.7, 0.2, 0.1))
    metrics = [metric("cluster-1", 1), metric("other-clusters", None, ("t0", "t1", "t2")),
               replace(metric("frozen"), kind="frozen", tasks=())]  # fmt: skip
    routed = Ensemble(metrics, examples, FEELINGS, regression=False, route=route)
    assert routed.sizes == pytest.approx((0.2, 0.8, 1.0))
    assert Ensemble(metrics, examples, FEELINGS, regression=False).sizes == (1, 3, 1)


def test_a_routing_is_a_value(routing):
    again = Routing(**{name: value for name, value in vars(routing).items() if not name.startswith(("_", "log_"))})
    assert again.route(None, Words().encode(Texts(["car"]))) == routing.route(None, Words().encode(Texts(["car"])))
