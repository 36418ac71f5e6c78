"""Clusters of past tasks -> a metric for each, and what is chosen for them on tasks held out from their training."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from safetensors.numpy import load

from experiments.intervals import source_of
from experiments.metric_answers import ask, drawn_from, judge, log_likelihood
from experiments.partings import Parting
from experiments.problems import draw_problems
from manymetrics.encode.projection import ProjectionEncoder
from manymetrics.encode.settings import PROTOTYPICAL, ProjectionTraining
from manymetrics.measure.heads import Head
from manymetrics.measure.projections import open_projection
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.linear import OF_ROWS, PENALTY, train_linear_metric
from manymetrics.specialize.metric import LEARNED, LINEAR
from manymetrics.specialize.projections import train_projection
from manymetrics.start import Learning
from manymetrics.values import Clusters, Floats, TaskBank, Unit, Work
from manymetrics.weigh import hold_out_tasks
from manymetrics.weigh.selection import LIKELIHOOD_TEMPERATURES, PRIOR_SHOTS

STAGE = "several"
HELD_OUT = 0.2  # of a cluster's tasks, that its metric stops on
LOOK = 50  # episodes of a projection between two looks at held-out tasks
RATES = (1e-4, 3e-4, 1e-3)  # of its steps


@dataclass(frozen=True, eq=False)
class Trained:
    """The metrics of some clusters by the clusters' numbers, and the tasks that none learned from."""

    metrics: Mapping[int, Metric]
    sizes: Floats  # (clusters,): tasks of each
    held_out: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Training:
    """What metrics are learned from, who does the work, and the recipe with its seed."""

    learning: Learning
    work: Work
    recipe: Recipe

    @property
    def bank(self) -> TaskBank:
        """All tasks."""
        return self.learning.material.bank

    @property
    def shared_labels(self) -> bool:
        """Whether metrics are linear classifiers."""
        return self.bank.shared_labels is not None

    def train(self, parting: Parting, past: Sequence[str], steps: int, rate: float) -> Trained:
        """A metric for each cluster; some tasks of each are kept from it."""
        groups = parting.among(past)
        places = {number: place for place, number in enumerate(groups)}
        names = sorted(past)
        clusters = Clusters(tuple(names), np.array([places[parting.own[name]] for name in names]))
        sources = {task.name: source_of(task) for task in self.bank}
        held_out = hold_out_tasks(clusters, sources, HELD_OUT, seed=self.recipe.seed)
        units = [
            self._unit(f"{parting.name} {number}", group, held_out, steps, rate) for number, group in groups.items()
        ]
        payloads = self.work(STAGE, train_linear_metric if self.shared_labels else train_projection, units)
        make = self._linear if self.shared_labels else self._projection
        metrics = {number: make(unit.name, payloads[unit.name]) for number, unit in zip(groups, units, strict=True)}
        return Trained(metrics, np.array([float(len(group)) for group in groups.values()]), held_out)

    def _unit(self, name: str, group: Sequence[str], held_out: Sequence[str], steps: int, rate: float) -> Unit:
        base, prints = self.learning.base.fingerprint, {task: self.bank[task].fingerprint for task in group}
        kept = {task: one for task, one in prints.items() if task not in held_out}
        if self.shared_labels:
            spec = {"penalty": PENALTY, "tasks": list(kept), "bank": kept, "encoder": base, "features": OF_ROWS}
            return Unit(name, spec)
        training = ProjectionTraining(steps, LOOK, rate, self.recipe.projection_dropout)
        spec = {"seed": self.recipe.seed, "encoder": base, "training": asdict(training), "tasks": kept}
        return Unit(name, {**spec, "held_out": {task: one for task, one in prints.items() if task in held_out}})

    def _projection(self, name: str, payload: bytes) -> Metric:
        found = open_projection(payload)
        encoder = ProjectionEncoder(self.learning.base, found.matrix)
        return SimilarityMetric(name, LEARNED, encoder, PROTOTYPICAL, found.temperature)

    def _linear(self, name: str, payload: bytes) -> Metric:
        tensors, labels = load(payload), self.bank.shared_labels or ()
        head = Head(tensors["head"], tensors["offset"])
        return SharedLabelMetric(name, LINEAR, self.learning.base, head, labels, tensors["prior"])

    def choose_rate(self, parting: Parting, past: Sequence[str], steps: int) -> float:
        """The rate under which own clusters' metrics answer held-out tasks most accurately; of equals the slowest."""
        if self.shared_labels:
            return RATES[0]  # linear classifiers have none
        accuracies = []
        for rate in RATES:
            trained = self.train(parting, past, steps, rate)
            problems = draw_problems(self.bank, trained.held_out, seed=self.recipe.seed, draws=1)
            own = (ask([trained.metrics[parting.own[drawn_from(task)]]], task) for task in problems)
            accuracies.append(_mean_or([judge(one.alone(0))["accuracy"] for one in own]))
        return RATES[int(np.argmax(accuracies))]

    def choose_freedom(self, trained: Trained) -> float:
        """How far shots may move the weights: what makes the right answers of held-out tasks likeliest."""
        problems = draw_problems(self.bank, trained.held_out, seed=self.recipe.seed, draws=1)
        grid = LIKELIHOOD_TEMPERATURES if self.shared_labels else PRIOR_SHOTS
        asked = [ask(list(trained.metrics.values()), task) for task in problems]
        likelihoods = [
            _mean_or([
                log_likelihood(one.mixed(trained.sizes, freedom, shared_labels=self.shared_labels), one.answers)
                for one in asked
            ])
            for freedom in grid
        ]  # fmt: skip
        return grid[int(np.argmax(likelihoods))]


def _mean_or(values: Sequence[float], otherwise: float = 0.0) -> float:
    """The mean; where there is none, as when no task could be held out, the same for all that is compared."""
    return float(np.mean(values)) if values else otherwise
