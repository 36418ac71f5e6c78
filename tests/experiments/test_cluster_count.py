from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from experiments.bench import Bench
from experiments.cluster_count import choose_cluster_count
from experiments.parts import Parts

import manymetrics as mm
from experiments import cluster_count
from manymetrics.engine import Engine
from manymetrics.learn import prepare

QUICK = mm.Recipe(
    vectors="random",
    width=24,
    window=3,
    task_steps=40,
    metric_steps=60,
    ways=4,
    shots=3,
    queries=12,
    clusters=2,
    learning_rate=0.01,
)


def test_the_number_of_clusters_is_the_one_that_answers_held_out_tasks_best(monkeypatch):
    past = mm.sample_bank(0).split_off()[0]
    families = sorted({name.split("-")[0] for name in past.names} - {"other"})[:2]
    past = past.only(sorted([name for name in past.names if name.split("-")[0] in families][:10]))
    learning = prepare(past, mm.load_vectors(QUICK.vectors), {})
    planted = {4: -1.0, 5: -0.5}  # by the number of metrics: a cluster's, tuned vectors, and two that learn nothing
    asked = []

    def likelihood(metrics, episodes, settings):
        asked.append({episode.task for episode in episodes})
        return planted[len(metrics)]

    monkeypatch.setattr(cluster_count, "answer_likelihood", likelihood)
    with Engine(learning.material) as work:
        tried = {
            count: Parts(Bench(past, learning, past, work, None, "", print), QUICK).candidates(count)
            for count in (1, 2)
        }
        assert choose_cluster_count(tried) == 2
        assert asked[0] == asked[1] != set()
        planted[5] = -1.0
        assert choose_cluster_count(tried) == 1, "of equals the first"
        assert choose_cluster_count({count: replace(one, held_out=()) for count, one in tried.items()}) is None
