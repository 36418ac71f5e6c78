"""The story: from a bank of tasks to a model with several metrics, one line for each stage.

Paper: Algorithms 1 and 2. Every stage is done in the room whose name it carries.
"""

import contextlib
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.encode.centres import task_centres
from manymetrics.encode.reading import ReadBank, read_bank
from manymetrics.encode.sources import load_vectors
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Engine, Limits, Progress
from manymetrics.engine.units import NO_LIMITS
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.measure import (
    get_ready_to_train,
    measure_transfer,
    pairs_enough,
    pairs_to_measure,
    train_task_models,
)
from manymetrics.partition import cluster_tasks, complete_similarity, keep_reliable_pairs
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_linear_metrics, train_metrics, train_word_metric
from manymetrics.store import MetricModel, Run, save_learned
from manymetrics.values import Clusters, ObservedPairs, Similarity, Task, TaskBank, TransferMatrix, Work
from manymetrics.weigh import (
    Rules,
    answer_likelihood,
    choose_rules,
    choose_unlearned_metrics,
    draw_problems,
    hold_out_tasks,
    learn_trust,
)
from manymetrics.weigh.lessons import Parts
from manymetrics.weigh.selection import Drawn


def learn_metrics(
    tasks: TaskBank | Iterable[Task],
    recipe: Recipe | None = None,
    *,
    run: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    limits: Limits = NO_LIMITS,
    vectors: WordVectors | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> MetricModel:
    """Learn a handful of metrics from many past tasks.

    With a `run` folder every finished piece of work is kept there, and the same call goes on where it was stopped. With
    several `workers`, or on a Ray `cluster` (its address, or "auto"), the bits are the same; a script that asks for
    workers needs `if __name__ == "__main__":`. A task whose model fails, or exceeds the `limits`, is left out with a
    warning.
    """
    recipe = recipe or Recipe()
    bank = _in_order(tasks, recipe.clusters)
    if vectors is not None:
        recipe = replace(recipe, vectors=vectors.name)
    read = read_bank(bank, vectors or load_vectors(recipe.vectors))
    with threadpool_limits(1), contextlib.nullcontext() if run is None else Run.open(run, recipe) as kept:
        with Engine(
            read,
            workers=workers,
            cluster=cluster,
            limits=limits,
            get_ready=get_ready_to_train,
            run=kept,
            report=report,
        ) as work:
            found = find_clusters(read, work, recipe)
            model = specialize_and_weigh(read, found, work, recipe)
        if kept is not None:
            save_learned(model, kept.folder / "learned")
            kept.finish()
    return model


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of a bank once its tasks are clustered."""

    transfer: TransferMatrix
    similarity: Similarity
    clusters: Clusters


def find_clusters(read: ReadBank, work: Work, recipe: Recipe) -> Found:
    """Which tasks help one another: the first half of the method, Algorithm 2 and the clustering."""
    models = train_task_models(read, work, **recipe.task_training(), seed=recipe.seed)
    read = _only(read, models)
    transfer, pairs = _measure_enough(read, models, work, recipe)
    similarity = complete_similarity(pairs, sparsity=recipe.sparsity, clusters=recipe.clusters)
    return Found(transfer, similarity, cluster_tasks(similarity, clusters=recipe.clusters, most=recipe.most_clusters))


def _measure_enough(
    read: ReadBank, models: dict[str, bytes], work: Work, recipe: Recipe
) -> tuple[TransferMatrix, ObservedPairs]:
    """*S* and the pairs it makes known; of a large bank more is measured where too few turned out to be alike."""

    def measure(pairs: int | None, before: TransferMatrix | None = None) -> tuple[TransferMatrix, ObservedPairs]:
        knobs = {**recipe.transfer_scores(), "pairs": pairs}
        transfer = measure_transfer(models, read, work, **knobs, seed=recipe.seed, before=before)
        return transfer, keep_reliable_pairs(transfer, p1=recipe.p1, p2=recipe.p2)

    n = len(read.names)
    transfer, known = measure(recipe.pairs)
    enough = pairs_enough(n, float(known.alike.sum() / n) - 1.0)  # a task is like itself
    return measure(enough, transfer) if recipe.pairs is None and enough > pairs_to_measure(n) else (transfer, known)


@dataclass(frozen=True, eq=False)
class Tried:
    """Metrics that some tasks were kept from, the problems drawn from these, and the rules chosen on them."""

    held_out: tuple[str, ...]
    problems: list[Drawn]
    learned: list[Metric]
    linear: list[Metric]
    tuned: list[Metric]
    unlearned: list[Metric]
    rules: Rules

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Everything that is mixed."""
        return (*self.learned, *self.linear, *self.tuned, *self.unlearned)


def specialize_and_weigh(read: ReadBank, found: Found, work: Work, recipe: Recipe) -> MetricModel:
    """A metric for each cluster and the rules to mix them by: the second half, Algorithm 1 for any clusters."""
    tried = _try_metrics(read, found.clusters, work, recipe)
    trust = learn_trust(Parts(read.vectors, tried.metrics, tried.rules), tried.problems, seed=recipe.seed)
    linear = train_linear_metrics(read, found.clusters, work)  # once more, with every task
    metrics = replace(tried, linear=linear).metrics
    return MetricModel(
        read.vectors, metrics, tried.rules, found.clusters, found.transfer, found.similarity, recipe, tried.held_out,
        read.fingerprint, centres=task_centres(_only(read, found.clusters.names)), trust=trust,
    )  # fmt: skip


def choose_cluster_count(read: ReadBank, work: Work, recipe: Recipe, counts: Sequence[int]) -> int | None:
    """*K* by trial: the number of clusters whose metrics, mixed, make right answers on held-out tasks likeliest.

    Compared on the tasks that were held out under every number; None where there are none. Of equals the smallest.
    """
    tried = []
    for count in counts:
        tell = replace(recipe, clusters=count)
        tried.append(_try_metrics(read, find_clusters(read, work, tell).clusters, work, tell))
    common = set.intersection(*(set(one.held_out) for one in tried))
    if not common:
        return None
    scores = [
        answer_likelihood(one.metrics, [drawn for drawn in one.problems if drawn.task in common], one.rules)
        for one in tried
    ]
    return counts[int(np.argmax(scores))]


def _try_metrics(read: ReadBank, clusters: Clusters, work: Work, recipe: Recipe) -> Tried:
    held_out = hold_out_tasks(clusters, recipe.held_out, seed=recipe.seed)
    learned = train_metrics(read, clusters, work, **recipe.metric_training(), held_out=held_out, seed=recipe.seed)
    linear = train_linear_metrics(read, clusters, work, held_out=held_out)
    tuned = train_word_metric(read, clusters, work, **recipe.word_training(), held_out=held_out, seed=recipe.seed)
    problems = draw_problems(read, held_out, shots=recipe.shots, seed=recipe.seed)
    unlearned = choose_unlearned_metrics(read, problems)
    rules = choose_rules((*learned, *linear, *tuned, *unlearned), problems, clusters)
    return Tried(held_out, problems, learned, linear, tuned, unlearned, rules)


def _only(read: ReadBank, names: Container[str]) -> ReadBank:
    """The tasks of these names, without those that were left out on the way."""
    return replace(read, tasks=tuple(task for task in read if task.name in names))


def _in_order(tasks: TaskBank | Iterable[Task], clusters: int | None) -> TaskBank:
    """The bank with its tasks in the order of their names, so that the order they came in does not matter."""
    bank = tasks if isinstance(tasks, TaskBank) else TaskBank(tuple(tasks))
    if len(bank) < 2:
        raise NotEnoughExamples(
            f"Found {len(bank)} task{'s' * (len(bank) != 1)} to learn from. Metrics are learned from at least two."
        )
    if clusters is not None and clusters > len(bank):
        raise RecipeError(
            f"The recipe asks for {clusters} clusters of {len(bank)} tasks. Ask for fewer, or leave the number open."
        )
    return bank.only(sorted(bank.names))
