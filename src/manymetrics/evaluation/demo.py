"""The demonstration: learn from a generated bank and evaluate on new tasks, in a few minutes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manymetrics.collect import planted_family, sample_bank
from manymetrics.engine import Progress
from manymetrics.engine.progress import shown
from manymetrics.evaluation.targets import Evaluation, evaluate
from manymetrics.learn import learn_metrics
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.values import Clusters


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration."""

    model: MetricModel
    evaluation: Evaluation  # of the model on the new tasks
    agreement: float  # adjusted Rand index of the clusters and the planted families


def run_demo(
    *, seed: int = 0, workers: int = 1, run: str | Path | None = None, report: Callable[[Progress], None] | None = None
) -> Demo:
    """Generate the sample bank, learn from it, and evaluate on tasks that were not learned from."""
    past, new = sample_bank(seed).split_off()
    with shown(report) as on_progress:
        model = learn_metrics(past, Recipe(seed=seed), run=run, workers=workers, report=on_progress)
        evaluation = evaluate(model, new, report=on_progress)
    return Demo(model, evaluation, planted_agreement(model.clusters))


def planted_agreement(clusters: Clusters) -> float:
    """The adjusted Rand index of clusters and planted families; a task without a family is a family by itself."""
    from sklearn.metrics import adjusted_rand_score  # slow to import, and evaluating does not need it

    families = [planted_family(name) or name for name in clusters.names]
    return float(adjusted_rand_score(families, clusters.labels))
