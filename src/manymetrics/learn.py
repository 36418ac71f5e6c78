"""The story: from a bank of tasks to a model with several metrics, one line for each stage.

Paper: Algorithms 1 and 2. Every stage is done in the package whose name it carries.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.classifier import Serving, learn_trust
from manymetrics.collect.diversity import sharing_labels
from manymetrics.encode.encoder import Encoder, centre
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Limits, Progress
from manymetrics.engine.display import shown
from manymetrics.engine.units import NO_LIMITS
from manymetrics.measure import (
    Evidence,
    join_evidence,
    measure_projected_transfer,
    measure_transfer,
    pairs_enough,
    pairs_to_measure,
    train_task_models,
    train_task_projections,
)
from manymetrics.model import Centres, MetricModel, Origin, describe_serving, require_origin_place, save_origin
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, keep_reliable_pairs
from manymetrics.recipe import WORDS as STATIC
from manymetrics.recipe import Recipe
from manymetrics.specialize import (
    Metric,
    train_cluster_projections,
    train_linear_metrics,
    train_metrics,
    train_shared_projection,
    train_word_metric,
)
from manymetrics.specialize.metric import LEARNED, TUNED
from manymetrics.start import (
    Learning,
    at_work,
    hold_out,
    in_order,
    load_base,
    make_ready,
    past_tasks,
    prepare,
)
from manymetrics.store import Run
from manymetrics.store.runs import require_run_place
from manymetrics.values import (
    Clusters,
    Episode,
    ObservedPairs,
    Similarity,
    Task,
    TaskBank,
    TransferMatrix,
    Work,
)
from manymetrics.weigh import (
    MixSettings,
    Routing,
    choose_settings,
    choose_unlearned_metrics,
    draw_episodes,
    learn_routing,
)

LOG = logging.getLogger("manymetrics")


def learn_metrics(
    tasks: TaskBank | Iterable[Task] | str | Path,
    recipe: Recipe | None = None,
    *,
    run: str | Path | None = None,
    workers: int = 1,
    ray: str | None = None,
    limits: Limits = NO_LIMITS,
    vectors: WordVectors | None = None,
    encoders: Mapping[str, Encoder] | None = None,
    report: Callable[[Progress], None] | None = None,
) -> MetricModel:
    """Learn a handful of metrics from many past tasks, or from the tasks of a folder that are not marked as targets.

    With a `run` folder every finished piece of work is kept there, and the same call goes on where it was stopped. With
    several `workers`, or on a Ray cluster (`ray`: its address, or "auto"), the bits are the same; a script that asks
    for workers needs `if __name__ == "__main__":`. A task whose model fails, or exceeds the `limits`, is left out with
    a warning. Further `encoders`, by name, join the mix with what they know already.

    How far it has come is handed to `report`; without one it is shown on stderr, if that is a terminal or a notebook.
    The logger `manymetrics` has a line for each stage.
    """
    recipe = recipe or Recipe()
    if run is not None:
        require_run_place(Path(run))
    bank = in_order(past_tasks(tasks), recipe.clusters)
    if vectors is not None:
        recipe = replace(recipe, encoder=STATIC, vectors=vectors.name)
    learning = prepare(bank, vectors or load_base(recipe), encoders or {})
    with (
        threadpool_limits(1),
        shown(report) as told,
        contextlib.nullcontext() if run is None else Run.open(run, recipe.as_toml()) as kept,
    ):
        if kept is not None:
            require_origin_place(kept.folder / "learned")
        where: dict[str, Any] = {"workers": workers, "ray": ray, "limits": limits, "run": kept, "report": told}
        model = learn_from(make_ready(learning, recipe, **where), recipe, **where)
        if kept is not None:
            save_origin(model.origin, kept.folder / "learned")
            kept.finish()
    return model


def learn_from(learning: Learning, recipe: Recipe, **where: Any) -> MetricModel:
    """All stages behind the encoding of texts: for the whole bank, and for tasks in it that share their labels.

    Such tasks have a meaning of the labels in common, which tasks that differ in them have not. A new task with the
    same labels is served by what they alone gave.
    """
    with at_work(learning, **where) as work:
        model = learn_stages(learning, work, recipe)
    by_labels: list[Serving] = []
    for part in sharing_labels(learning.material.bank.tasks):
        LOG.info("%d tasks share the labels %s", len(part), ", ".join(part[0].labels))
        own = replace(learning, material=learning.material.only(task.name for task in part))
        with at_work(own, **where) as work:
            found = learn_stages(own, work, replace(recipe, clusters=None, pairs=None)).serving
        by_labels += [found] if found.labels else []  # training may have left no metric that knows the labels
    serving = replace(model.serving, by_labels=tuple(by_labels))
    return MetricModel(serving, replace(model.origin, **describe_serving(serving)))


def learn_stages(learning: Learning, work: Work, recipe: Recipe) -> MetricModel:
    """All stages behind the encoding of texts, every task taken alike."""
    learning = with_shared_projection(learning, work, recipe)
    return specialize_and_weigh(learning, find_clusters(learning, work, recipe), work, recipe)


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of a bank once its tasks are clustered."""

    transfer: TransferMatrix
    pairs: ObservedPairs
    similarity: Similarity
    clusters: Clusters


def find_clusters(learning: Learning, work: Work, recipe: Recipe) -> Found:
    """Which tasks help one another: the first half of the method, Algorithm 2 and the clustering."""
    models = train_own_encoders(learning, work, recipe)
    learning = replace(learning, material=learning.material.only(models))
    transfer, pairs = measure_enough(learning, models, work, recipe)
    similarity = complete_similarity(pairs, sparsity=recipe.sparsity, clusters=recipe.clusters)
    clusters = cluster_tasks(similarity, clusters=recipe.clusters, most=recipe.most_clusters)
    LOG.info("partition: %d tasks in %d clusters", len(clusters.names), len(clusters))
    return Found(transfer, pairs, similarity, clusters)


def train_own_encoders(learning: Learning, work: Work, recipe: Recipe) -> dict[str, bytes]:
    """Each task's own encoder: a network over word vectors, or a step away from a sentence encoder."""
    material, seed = learning.material, recipe.seed
    if isinstance(learning.base, WordVectors):
        return train_task_models(material, work, words=learning.base, **recipe.task_training(), seed=seed)
    return train_task_projections(material, work, base=learning.base, training=recipe.own_training(), seed=seed)


def with_shared_projection(learning: Learning, work: Work, recipe: Recipe) -> Learning:
    """With the projection of all tasks but those held out, where learning stands on a sentence encoder."""
    if isinstance(learning.base, WordVectors):
        return learning
    training, held_out = recipe.projection_training()["shared"], hold_out(learning, recipe)
    shared = train_shared_projection(learning.material, work, base=learning.base, training=training,
                                     held_out=held_out, seed=recipe.seed)  # fmt: skip
    return replace(learning, shared=shared)


def measure_enough(
    learning: Learning, models: Mapping[str, bytes], work: Work, recipe: Recipe
) -> tuple[TransferMatrix, ObservedPairs]:
    """*S* and the pairs it makes known; of a large bank more is measured where too few turned out to be alike."""

    def measure(pairs: int | None, before: TransferMatrix | None = None) -> tuple[TransferMatrix, ObservedPairs]:
        knobs: dict[str, Any] = {"pairs": pairs, "seed": recipe.seed, "before": before}
        if isinstance(learning.base, WordVectors):
            knobs |= {"words": learning.base, "score": recipe.score}
            transfer = measure_transfer(models, learning.material, work, **knobs)
        else:
            transfer = measure_projected_transfer(models, learning.material, work, base=learning.base, **knobs)
        alone = recipe.evidence == "transfer"
        evidence = Evidence(transfer, (transfer,)) if alone else join_evidence(transfer, bank, learning.base)
        p1 = choose_p1(*evidence.parts) if recipe.p1 is None else recipe.p1
        return transfer, keep_reliable_pairs(evidence.joined, p1=p1, p2=recipe.p2)

    bank = learning.material.bank
    n = len(bank)
    transfer, known = measure(recipe.pairs)
    enough = pairs_enough(n, float(known.alike.sum() / n) - 1.0)  # a task is like itself
    return measure(enough, transfer) if recipe.pairs is None and enough > pairs_to_measure(n) else (transfer, known)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Metrics that some tasks were kept from, episodes drawn from these, and the settings chosen on them."""

    held_out: tuple[str, ...]
    episodes: list[Episode]
    learned: list[Metric]
    linear: list[Metric]
    tuned: list[Metric]
    unlearned: list[Metric]
    routing: Routing | None  # that knows nothing of the held-out tasks
    settings: MixSettings = field(default_factory=MixSettings)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Everything that is mixed."""
        return (*self.learned, *self.linear, *self.tuned, *self.unlearned)


def specialize_and_weigh(learning: Learning, found: Found, work: Work, recipe: Recipe) -> MetricModel:
    """A metric for each cluster and the settings to mix them by: the second half, Algorithm 1 for any clusters."""
    tried = train_candidates(learning, found.clusters, work, recipe)
    trust = learn_trust(Serving(tried.metrics, tried.settings, routing=tried.routing), tried.episodes, seed=recipe.seed)
    if tried.linear:
        linear = train_linear_metrics(learning.material, found.clusters, work, base=learning.base)  # with every task
        tried = replace(tried, linear=linear)
    bank = learning.material.only(found.clusters.names).bank
    serving = Serving(tried.metrics, tried.settings, trust, learn_routing(bank, found.clusters, learning.base))
    centres = Centres(learning.base_name, np.stack([centre(learning.base, task.train.texts) for task in bank]))
    return MetricModel(
        serving,
        Origin(
            found.clusters, found.transfer, found.pairs, found.similarity, recipe, tried.held_out,
            learning.bank_fingerprint, **describe_serving(serving), centres=centres,
        ),
    )  # fmt: skip


def train_candidates(learning: Learning, clusters: Clusters, work: Work, recipe: Recipe) -> Candidates:
    """Metrics of all kinds, some tasks held out, and the settings that mix them best on these."""
    tried = draw_candidates(learning, clusters, work, recipe)
    LOG.info("weigh: settings chosen on %d episodes of %d held-out tasks", len(tried.episodes), len(tried.held_out))
    return replace(tried, settings=choose_settings(tried.metrics, tried.episodes, clusters, tried.routing))


def draw_candidates(learning: Learning, clusters: Clusters, work: Work, recipe: Recipe) -> Candidates:
    """Metrics of all kinds, some tasks held out, and episodes of these to choose the settings on."""
    material, seed = learning.material, recipe.seed
    static = isinstance(learning.base, WordVectors)
    held_out = hold_out(learning, recipe, clusters if static else None)
    trained = _train_static if static else _train_projections
    learned, linear, tuned = trained(learning, clusters, work, recipe, held_out)
    episodes = draw_episodes(material.bank, held_out, shots=recipe.shots, seed=seed)
    unlearned = choose_unlearned_metrics(material.bank, learning.encoders, episodes)
    routing = learn_routing(material.only(clusters.names).bank, clusters, learning.base)
    routing = None if routing is None else routing.without(held_out)
    return Candidates(held_out, episodes, learned, linear, tuned, unlearned, routing)


Trained = tuple[list[Metric], list[Metric], list[Metric]]  # of clusters, linear ones, of all tasks


def _train_static(
    learning: Learning, clusters: Clusters, work: Work, recipe: Recipe, held_out: tuple[str, ...]
) -> Trained:
    """Networks over word vectors, linear classifiers where tasks share their labels, tuned words where they do not."""
    material, common = learning.material, dict[str, Any](words=learning.words, held_out=held_out)
    learned = train_metrics(material, clusters, work, **recipe.metric_training(), **common, seed=recipe.seed)
    linear = train_linear_metrics(material, clusters, work, base=learning.base, held_out=held_out)
    tuned = train_word_metric(material, clusters, work, **recipe.word_training(), **common, seed=recipe.seed)
    return learned, linear, tuned


def _train_projections(
    learning: Learning, clusters: Clusters, work: Work, recipe: Recipe, held_out: tuple[str, ...]
) -> Trained:
    """The shared projection, and the clusters' own where they pay; linear classifiers where tasks share labels."""
    metrics = train_cluster_projections(
        learning.material,
        clusters,
        work,
        base=learning.base,
        shared=learning.shared,
        training=recipe.projection_training()["cluster"],
        held_out=held_out,
        seed=recipe.seed,
    )
    linear = train_linear_metrics(learning.material, clusters, work, base=learning.base, held_out=held_out)
    return [one for one in metrics if one.kind == LEARNED], linear, [one for one in metrics if one.kind == TUNED]
