"""Clusters of past tasks -> their encoders, trained as the package trains them, and the clusters of a new task."""

from dataclasses import dataclass

import numpy as np

from experiments.methods import FROZEN_TEMPERATURE
from experiments.partings import Parting
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.episodes import hold_out
from manymetrics.learn import base_name
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.specialize.metric import FROZEN
from manymetrics.values import Clusters, RunJobs, SharedData, Task
from manymetrics.weigh import Assignment, ClusterAssigner, learn_assigner
from manymetrics.weigh.assignment import TEXTS, assign_texts


@dataclass(frozen=True, eq=False)
class ClusterMetrics:
    """The frozen encoder, the one of all tasks and those of the clusters whose own training pays."""

    metrics: tuple[Metric, ...]
    numbers: tuple[int, ...]  # of the clusters, in the order of the probabilities of a route
    assigner: ClusterAssigner | None

    def from_shots(self, problem: Task) -> Assignment | None:
        """The clusters that a problem may belong to, by the texts of its shots."""
        return assign_texts(self.assigner, self.metrics[0].encoder, problem.train.texts, None)

    def only(self, number: int) -> Assignment:
        """The route of a task that is known to be of one cluster; of none, if no past task is of it."""
        return Assignment(tuple(float(one == number) for one in self.numbers), (), TEXTS)


def train_clusters(shared_data: SharedData, parting: Parting, run_jobs: RunJobs, recipe: Recipe) -> ClusterMetrics:
    """What the package makes of clusters of past tasks."""
    base = shared_data.base
    groups = parting.among(shared_data.bank.names)
    places = {number: place for place, number in enumerate(groups)}
    names = tuple(sorted(shared_data.bank.names))
    clusters = Clusters(names, np.array([places[parting.own[name]] for name in names]))
    held_out = hold_out(shared_data.bank, recipe.held_out, seed=recipe.seed)
    trained = train_metrics(
        recipe.phases(shared_data), shared_data, clusters, run_jobs, held_out=held_out, seed=recipe.seed
    )
    frozen = Metric(base_name(recipe), FROZEN, base, PROTOTYPICAL, FROZEN_TEMPERATURE)
    return ClusterMetrics((frozen, *trained), tuple(groups), learn_assigner(shared_data.bank, clusters, base))
