"""The demonstration: learn from a generated bank and compare methods on new tasks, in a few minutes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from manymetrics.collect import planted_family, sample_bank
from manymetrics.engine import Progress
from manymetrics.engine.progress import each_with_progress, shown
from manymetrics.evaluation.baselines import Method, frozen_prototypes, frozen_regression, majority
from manymetrics.evaluation.scoring import Answered, Estimate, means_over_tasks, paired_gain
from manymetrics.evaluation.targets import adapted, answer_targets
from manymetrics.learn import SENTENCE, learn_metrics
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.specialize.cluster_metrics import SHARED
from manymetrics.values import Clusters, Task

STAGE = "compare"
OURS, OURS_WITH_NAMES = "RobustTC", "RobustTC, with label names"
ONE_METRIC = "one metric for all, logistic regression"


@dataclass(frozen=True)
class DemoRow:
    """One method on the new tasks of the sample bank."""

    method: str
    accuracy: Estimate
    balanced_accuracy: Estimate
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration."""

    rows: tuple[DemoRow, ...]
    gain: Estimate  # in accuracy over a logistic regression on one metric for all tasks, on the same texts
    agreement: float  # adjusted Rand index of the clusters and the planted families
    model: MetricModel
    targets: tuple[tuple[str, str, float], ...]  # task, the metric with the largest weight, this weight


def run_demo(
    *, seed: int = 0, workers: int = 1, run: str | Path | None = None, report: Callable[[Progress], None] | None = None
) -> Demo:
    """Generate the sample bank, learn from it, and compare methods on tasks that were not learned from."""
    past, new = sample_bank(seed).split_off()
    with shown(report) as on_progress:
        started = time.perf_counter()
        model = learn_metrics(past, Recipe(seed=seed), run=run, workers=workers, report=on_progress)
        learning_time = time.perf_counter() - started
        methods = _methods(model)
        with threadpool_limits(1):
            answers = {
                name: answer_targets(methods[name], new) for name in each_with_progress(STAGE, [*methods], on_progress)
            }
    learned = (ONE_METRIC, OURS, OURS_WITH_NAMES)
    rows = tuple(_row(name, tasks, learning_time * (name in learned)) for name, tasks in answers.items())
    gain = paired_gain(answers[OURS], answers[ONE_METRIC])
    targets = tuple(_largest_weight(model, task) for task in new)
    return Demo(rows, gain, planted_agreement(model.clusters), model, targets)


def _methods(model: MetricModel) -> dict[str, Method]:
    encoders = {metric.name: metric.encoder for metric in model.metrics}
    return {
        "majority": majority,
        "frozen encoder, prototypes": frozen_prototypes(encoders[SENTENCE]),
        "frozen encoder, logistic regression": frozen_regression(encoders[SENTENCE], balanced=True),
        ONE_METRIC: frozen_regression(encoders[SHARED], balanced=True),
        OURS: adapted(model, adaptive=False, names=False),
        OURS_WITH_NAMES: adapted(model),
    }


def planted_agreement(clusters: Clusters) -> float:
    """The adjusted Rand index of clusters and planted families; a task without a family is a family by itself."""
    from sklearn.metrics import adjusted_rand_score  # slow to import, and evaluating does not need it

    families = [planted_family(name) or name for name in clusters.names]
    return float(adjusted_rand_score(families, clusters.labels))


def _row(method: str, answered: Sequence[Answered], learning_time: float) -> DemoRow:
    seconds = learning_time + sum(task.seconds for task in answered)
    means = means_over_tasks(answered)
    return DemoRow(method, means["accuracy"], means["balanced_accuracy"], seconds)


def _largest_weight(model: MetricModel, task: Task) -> tuple[str, str, float]:
    weights = model.adapt(task.train.texts, task.train.labels).weights_
    name = max(weights, key=lambda metric: weights[metric])
    return task.name, name, weights[name]
