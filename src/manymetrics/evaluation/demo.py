"""The demonstration: everything the package does, on a bank it makes itself, in a few minutes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from manymetrics.collect.sample import planted_family, sample_bank
from manymetrics.engine import Progress
from manymetrics.engine.display import shown
from manymetrics.evaluation.baselines import by_metric, frozen_prototypes, frozen_regression, majority
from manymetrics.evaluation.scoring import Answered, Estimate, means_over_tasks, paired_gain
from manymetrics.evaluation.targets import adapted, answer_targets
from manymetrics.learn import learn_metrics
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.specialize.projections import SHARED
from manymetrics.start import SENTENCE
from manymetrics.values import Clusters, Task


@dataclass(frozen=True)
class DemoRow:
    """One method on the sample bank's unseen tasks."""

    method: str
    accuracy: Estimate
    balanced_accuracy: Estimate
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration showed."""

    rows: tuple[DemoRow, ...]
    gain: Estimate  # RobustTC's accuracy less that of one metric for all, on the same texts
    agreement: float  # adjusted Rand index of the clusters found and the families planted
    model: MetricModel
    targets: tuple[tuple[str, str, float], ...]  # task, heaviest metric, its weight


def run_demo(*, seed: int = 0, workers: int = 1, run: str | Path | None = None,
             report: Callable[[Progress], None] | None = None) -> Demo:  # fmt: skip
    """Make the sample bank, learn from it, and compare on tasks that were not learned from."""
    with shown(report) as told:
        return _run_demo(seed, workers, run, told)


def _run_demo(seed: int, workers: int, run: str | Path | None, report: Callable[[Progress], None]) -> Demo:
    past, new = sample_bank(seed).split_off()
    started = time.perf_counter()
    model = learn_metrics(past, Recipe(seed=seed), run=run, workers=workers, report=report)
    learned = time.perf_counter() - started
    frozen, one = (_metric(model, name) for name in (SENTENCE, SHARED))
    with threadpool_limits(1):
        answers = {
            "majority": answer_targets(majority, new),
            "frozen encoder, prototypes": answer_targets(frozen_prototypes(frozen.encoder), new),
            "frozen encoder, logistic regression": answer_targets(
                frozen_regression(frozen.encoder, balanced=True), new
            ),
            "one metric for all": answer_targets(by_metric(one), new),
            "RobustTC": answer_targets(adapted(model, adaptive=False, names=False), new),
            "RobustTC, with label names": answer_targets(adapted(model), new),
        }
    spent = dict.fromkeys(["one metric for all", "RobustTC", "RobustTC, with label names"], learned)
    rows = tuple(_row(method, answered, spent.get(method, 0.0)) for method, answered in answers.items())
    gain = paired_gain(answers["RobustTC"], answers["one metric for all"])
    heaviest = tuple(_heaviest(model, task) for task in new)
    return Demo(rows, gain, planted_agreement(model.clusters), model, heaviest)


def _metric(model: MetricModel, name: str) -> Metric:
    return next(metric for metric in model.metrics if metric.name == name)


def planted_agreement(clusters: Clusters) -> float:
    """The adjusted Rand index of clusters and planted families, over the tasks that have a family."""
    from sklearn.metrics import adjusted_rand_score  # slow to load, and evaluating does not need it

    families = [planted_family(name) for name in clusters.names]
    placed = [place for place, family in enumerate(families) if family is not None]
    return float(adjusted_rand_score([families[place] for place in placed], clusters.labels[placed]))


def _row(method: str, answered: Sequence[Answered], learned: float) -> DemoRow:
    seconds = learned + sum(one.seconds for one in answered)
    means = means_over_tasks(answered)
    return DemoRow(method, means["accuracy"], means["balanced_accuracy"], seconds)


def _heaviest(model: MetricModel, task: Task) -> tuple[str, str, float]:
    weights = model.adapt(task.train.texts, task.train.labels).weights_
    name = max(weights, key=lambda metric: weights[metric])
    return task.name, name, weights[name]
