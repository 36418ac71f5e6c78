"""Whose cluster a new task belongs to, on tasks whose names and texts are planted."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.errors import DataError
from manymetrics.values import Clusters, Examples, Task, TaskBank
from manymetrics.weigh import learn_assigner
from manymetrics.weigh.assignment import NAMES, TEXTS
from planted_numbers import StatelessEncoder

WORDS = ("joy", "anger", "car", "train", "film", "meal", "other", "thing")


class Words(StatelessEncoder, kind="test-routing-words"):
    """The words of a text, counted."""

    def encode(self, texts):
        return np.array([[text.split().count(word) + 1e-3 for word in WORDS] for text in texts], np.float32)


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
def assigner():
    return learn_assigner(bank(), clusters(), Words())


def test_a_task_is_assigned_to_the_cluster_whose_label_names_are_similar(assigner):
    found = assigner.assign(Words(), ["film thing"], ["anger", "joy"])
    assert found.most_probable == 0
    assert sum(found.clusters) == pytest.approx(1)
    assert set(found.similar_tasks) == {"t0", "t1", "t2"}
    other = assigner.assign(Words(), ["meal thing"], ["train", "car"])
    assert other.most_probable == 1
    assert set(other.similar_tasks) == {"t3", "t4", "t5"}


def test_the_reason_of_an_assignment_is_given():
    by_names = learn_assigner(bank(texts=False), clusters(), Words())
    found = by_names.assign(Words(), ["film other"], ["car", "train"])
    assert (found.most_probable, found.reason) == (1, NAMES)
    said = str(replace(found, clusters=(0.25, 0.75)))
    assert said == "assigned to the cluster of t3, t4, t5 (75%): its label names are similar"
    by_texts = learn_assigner(bank(names=False), clusters(), Words())
    found = by_texts.assign(Words(), ["meal other"], ["joy", "anger"])
    assert (found.most_probable, found.reason) == (1, TEXTS)
    assert str(found).endswith(": its texts are similar")


def test_names_alone_and_texts_alone_have_coefficients_of_their_own(assigner):
    assert assigner.assign(Words(), [], ["car", "train"]).most_probable == 1
    assert assigner.assign(Words(), ["meal"], None).most_probable == 1
    assert set(assigner.coefficients) == {"names+texts", "names", "texts"}


def test_similarity_that_separates_no_clusters_assigns_nothing():
    found = learn_assigner(bank(names=False, texts=False), clusters(np.array([0, 0, 1, 1, 0, 1])), Words())
    assignment = found.assign(Words(), ["film"], ["joy", "anger"])
    assert assignment is None or max(assignment.clusters) < 0.75


def test_one_cluster_or_shared_labels_need_no_routing():
    assert learn_assigner(bank(), clusters(np.zeros(6, dtype=int)), Words()) is None
    shared = TaskBank(tuple(task(f"t{place}", FEELINGS, "film") for place in range(6)))
    assert learn_assigner(shared, clusters(), Words()) is None


def test_tasks_that_are_left_out_leave_no_trace(assigner):
    left = assigner.without({"t0", "t3"})
    assert left.tasks == ("t1", "t2", "t4", "t5")
    assert (left.count, left.clusters.tolist()) == (2, [0, 0, 1, 1])
    assert len(left.names) == 8
    np.testing.assert_array_equal(left.names[:2], assigner.names[2:4])
    nobody = assigner.without({"t3", "t4", "t5"})
    assert nobody.assign(Words(), [], ["car", "train"]).most_probable == 0


def test_tasks_of_one_source_are_left_out_together():
    """Names repeat within sources alone, so they must not count for a source never seen."""
    own = ("joy", "anger"), ("car", "train"), ("film", "meal")
    tasks = [replace(task(f"t{place}", own[place // 2], "other"), source=f"s{place // 2}") for place in range(6)]
    found = learn_assigner(TaskBank(tuple(tasks)), clusters(), Words())
    apart = TaskBank(tuple(replace(one, source=one.name) for one in tasks))
    fooled = learn_assigner(apart, clusters(), Words())
    assert found.coefficients["names"][NAMES] < fooled.coefficients["names"][NAMES]


def test_values_that_do_not_fit_together_are_refused(assigner):
    for wrong in (
        {"tasks": assigner.tasks[:-1]},
        {"clusters": assigner.clusters + 1},
        {"labels": assigner.labels + 1},
        {"labels": np.array([12, 0, 0, 0, 0, 0])},
        {"centroids": assigner.centroids[:, :3]},
        {"names": np.full_like(assigner.names, np.nan)},
        {"coefficients": {"names": {NAMES: float("nan")}}},
        {"coefficients": {"names+texts": {NAMES: 1.0}}},
        {"clusters": assigner.clusters.astype(float)},
        {"labels": assigner.labels.astype(float)},
    ):
        with pytest.raises(DataError, match="have inconsistent shapes"):
            replace(assigner, **wrong)
