"""A thousand tasks of which a tenth of the pairs, at most, is measured; scores are planted, so nothing is trained."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from manymetrics.encode import Fitted, random_vectors
from manymetrics.learn import measure_until_connected
from manymetrics.partition import cluster_tasks, complete_similarity
from manymetrics.recipe import Recipe
from manymetrics.values import Examples, SharedData, Task, TaskBank

TASKS, FAMILIES = 1000, 14  # as in a sample bank of this size


def planted(seed):
    """Families, and scores with the levels, spreads and errors that those of a sample bank of 100 tasks have."""
    rng = np.random.default_rng(seed)
    family = rng.permutation(np.arange(TASKS) % FAMILIES)  # (n,)
    help_given = np.triu(rng.gamma(2.5, 5.5, (TASKS, TASKS)))  # (n, n): in standard deviations
    scores = (family[:, None] == family) * (help_given + help_given.T) + rng.normal(size=(TASKS, TASKS))
    return family, scores * rng.uniform(0.5, 2, TASKS) + rng.normal(size=TASKS)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_thousand_tasks_are_parted_by_a_tenth_of_the_pairs_and_none_is_measured_twice(seed):
    family, scores = planted(seed)
    bank = TaskBank(tuple(Task(f"t{place:04}", Examples(("a", "b"), ("x", f"{place}"))) for place in range(TASKS)))
    place = {name: number for number, name in enumerate(bank.names)}
    asked = []

    def run_jobs(stage, do, jobs):
        asked.extend((job.name, target) for job in jobs for target in job.parts)
        return {
            job.name: json.dumps({name: scores[place[job.name], place[name]] for name in job.parts}).encode()
            for job in jobs
        }

    recipe, shared_data = Recipe.fast(), SharedData(bank.without_tests(), random_vectors(rows=4, dimensions=2))
    single = dict.fromkeys(bank.names, Fitted({"matrix": np.zeros((2, 2), np.float32)}))
    transfer, known = measure_until_connected(recipe.phases(shared_data).single, single, shared_data, run_jobs, recipe)
    share = len(asked) / (TASKS * (TASKS - 1))
    assert np.log(TASKS) ** 2 / TASKS < share <= 0.1
    assert len(set(asked)) == len(asked) == (~np.isnan(transfer.scores)).sum()
    clusters = cluster_tasks(complete_similarity(known), max_clusters=30)
    assert adjusted_rand_score(family, clusters.labels) >= 0.9
