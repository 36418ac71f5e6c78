"""A thousand tasks of which a tenth of the pairs, at most, is measured; scores are planted, so nothing is trained."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from manymetrics.encode import random_vectors
from manymetrics.learn import measure_enough
from manymetrics.partition import cluster_tasks, complete_similarity
from manymetrics.recipe import Recipe
from manymetrics.start import Learning
from manymetrics.values import Examples, Material, Task, TaskBank

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

    def work(stage, do, units):
        asked.extend((unit.name, target) for unit in units for target in unit.parts)
        return {
            unit.name: json.dumps({name: scores[place[unit.name], place[name]] for name in unit.parts}).encode()
            for unit in units
        }

    learning = Learning(Material(bank, {}), random_vectors(rows=4, dimensions=2), {}, "")
    transfer, known = measure_enough(learning, dict.fromkeys(bank.names, b""), work, Recipe.fast())
    share = len(asked) / (TASKS * (TASKS - 1))
    assert np.log(TASKS) ** 2 / TASKS < share <= 0.1
    assert len(set(asked)) == len(asked) == (~np.isnan(transfer.scores)).sum()
    clusters = cluster_tasks(complete_similarity(known), most=30)
    assert adjusted_rand_score(family, clusters.labels) >= 0.9
