"""The networks that the paper trains on its clusters; window and width tuned where it tunes them.

The paper tunes these while it trains the encoders of clusters, by the validation texts of its past tasks. Here each
cluster's network answers few-shot problems of the tasks of its cluster that it was kept from, and the accuracy on all
of these counts; first the window is chosen, then the width.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from experiments.methods import by_metric
from experiments.problems import answer_problems, draw_problems
from manymetrics.episodes import hold_out
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.values import Clusters, RunJobs, SharedData


@dataclass(frozen=True)
class Network:
    """The shape of a cluster's network."""

    window: int = 5
    width: int = 200


TRIED: Mapping[str, tuple[Any, ...]] = {"window": (5, 3, 7), "width": (200, 100, 400)}


def train_on(clusters: Clusters, shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe,
             network: Network | None = None) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """A metric for each of some clusters, and the tasks that they were kept from; the recipe's unless a network is
    given.
    """
    held_out = hold_out(shared_data.bank, recipe.held_out, seed=recipe.seed, clusters=clusters)
    shape = asdict(network) if network else {}
    phases = replace(recipe, convolution=replace(recipe.convolution, **shape)).phases(shared_data)
    return train_metrics(phases, shared_data, clusters, run_jobs, held_out=held_out, seed=recipe.seed), held_out


def choose_network(clusters: Clusters, shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe) -> Network:
    """The network that answers tasks held out from its cluster most accurately, one setting after the other."""

    @cache
    def score(network: Network) -> float:
        metrics, held_out = train_on(clusters, shared_data, run_jobs, recipe, network)
        return _accuracy(metrics, clusters, held_out, shared_data, recipe)

    best = Network()
    for setting, values in TRIED.items():
        best = max((replace(best, **{setting: value}) for value in values), key=score)
    return best


def _accuracy(metrics: list[Metric], clusters: Clusters, held_out: tuple[str, ...], shared_data: SharedData,
              recipe: Recipe) -> float:  # fmt: skip
    """On problems of the held-out tasks, each answered by the metric of its own cluster; 0 where there are none."""
    answered = []
    for number, group in enumerate(clusters):
        problems = draw_problems(shared_data.bank, sorted(set(held_out) & set(group)), seed=recipe.seed)
        for metric in metrics:
            if metric.cluster == number and len(problems):
                answered += answer_problems(by_metric(metric), problems)
    return float(np.mean([one.accuracy for one in answered])) if answered else 0.0
