"""The story: from a bank of tasks to a model with several metrics, one line for each stage.

Paper: Algorithms 1 and 2. Every stage is done in the package whose name it carries.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.classifier import Serving, learn_trust
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder, centre, require_registered
from manymetrics.encode.rows import remember_rows
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sentence_sources import load_encoder
from manymetrics.encode.sources import load_vectors
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Engine, Limits, Progress
from manymetrics.engine.display import shown
from manymetrics.engine.units import NO_LIMITS
from manymetrics.errors import DataError, InputError, NotEnoughExamples, RecipeError
from manymetrics.measure import (
    Evidence,
    get_ready_to_train,
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
    tune_encoder,
)
from manymetrics.specialize.metric import LEARNED, TUNED
from manymetrics.store import Run
from manymetrics.store.runs import require_run_place
from manymetrics.values import (
    TARGET,
    Clusters,
    Episode,
    Material,
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
    hold_out_tasks,
    learn_routing,
)

LOG = logging.getLogger("manymetrics")
WORDS, SENTENCE = "word-vectors", "sentence"  # the name of the metric that an encoder gives as it is


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
        with at_work(learning, recipe, **where) as (learning, work):
            model = learn_from(learning, work, recipe)
        if kept is not None:
            save_origin(model.origin, kept.folder / "learned")
            kept.finish()
    return model


def past_tasks(tasks: TaskBank | Iterable[Task] | str | Path) -> TaskBank:
    """The tasks to learn from: those given, or those of a folder that it does not mark as targets."""
    if not isinstance(tasks, str | Path):
        return tasks if isinstance(tasks, TaskBank) else TaskBank(tuple(_checked(tasks)))
    bank = load_tasks(tasks)
    return bank.only([name for name in bank.names if bank.role(name) != TARGET])


def _checked(tasks: Iterable[Task]) -> Iterator[Task]:
    for task in tasks:
        if not isinstance(task, Task):
            raise DataError(
                f"Found {str(task)[:40]!r} of type {type(task).__name__} where a task was expected. "
                "Give a folder, a bank, or some of its tasks."
            )
        yield task


def load_base(recipe: Recipe) -> WordVectors | SentenceEncoder:
    """What a recipe stands on."""
    return load_vectors(recipe.vectors) if recipe.encoder == STATIC else load_encoder(recipe.encoder)


@dataclass(frozen=True, eq=False)
class Learning:
    """What a learning starts from."""

    material: Material  # the bank without its test examples
    base: WordVectors | SentenceEncoder
    encoders: Mapping[str, Encoder]  # by the names of the metrics they give as they are, the base's among them
    bank_fingerprint: str
    shared: bytes = b""  # the projection that all tasks share, where learning stands on a sentence encoder

    @property
    def words(self) -> WordVectors:
        """The word vectors that networks stand on."""
        if not isinstance(self.base, WordVectors):
            raise InputError("Networks stand on word vectors, and this learning on a sentence encoder.")
        return self.base

    @property
    def base_name(self) -> str:
        """The name of the metric that the base gives as it is."""
        return WORDS if isinstance(self.base, WordVectors) else SENTENCE


def prepare(bank: TaskBank, base: WordVectors | SentenceEncoder, encoders: Mapping[str, Encoder]) -> Learning:
    """Check what is given; with word vectors, cut the bank's texts into tokens, once for all who look at them."""
    for name, encoder in encoders.items():
        if name in (WORDS, SENTENCE, "letters"):
            raise InputError(f"An encoder is named {name!r}, as a metric is already. Give it another name.")
        require_registered(encoder)
    material = Material(bank.without_tests(), {base.fingerprint: base})
    if isinstance(base, WordVectors):
        for task in material.bank:
            base.tokens(task.train.texts)
            base.tokens(task.valid.texts)
    learning = Learning(material, base, {}, bank.fingerprint)
    return replace(learning, encoders={learning.base_name: base, **encoders})


@contextlib.contextmanager
def at_work(learning: Learning, recipe: Recipe, **where: Any) -> Iterator[tuple[Learning, Engine]]:
    """All that comes before the stages, and where these are worked on: the encoder is tuned, texts are encoded."""
    if isinstance(learning.base, SentenceEncoder):
        if recipe.tuning_steps:
            with Engine(learning.material, **where) as work:
                learning = with_tuned_base(learning, learning.base, work, recipe)
        with Engine(learning.material, **where) as work:
            remember_rows(learning.material, learning.base, work)
    else:
        where["get_ready"] = get_ready_to_train
    with Engine(learning.material, **where) as work:
        yield learning, work


def learn_from(learning: Learning, work: Work, recipe: Recipe) -> MetricModel:
    """All stages behind the encoding of texts."""
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


def with_tuned_base(learning: Learning, base: SentenceEncoder, work: Work, recipe: Recipe) -> Learning:
    """With the sentence encoder tuned on all tasks but those held out, where that pays on these."""
    tuned = tune_encoder(learning.material, work, base=base, steps=recipe.tuning_steps,
                         held_out=hold_out(learning, recipe), seed=recipe.seed)  # fmt: skip
    others = {name: one for name, one in learning.encoders.items() if name != learning.base_name}
    return replace(prepare(learning.material.bank, tuned, others), bank_fingerprint=learning.bank_fingerprint)


def with_shared_projection(learning: Learning, work: Work, recipe: Recipe) -> Learning:
    """With the projection of all tasks but those held out, where learning stands on a sentence encoder."""
    if isinstance(learning.base, WordVectors):
        return learning
    training, held_out = recipe.projection_training()["shared"], hold_out(learning, recipe)
    shared = train_shared_projection(learning.material, work, base=learning.base, training=training,
                                     held_out=held_out, seed=recipe.seed)  # fmt: skip
    return replace(learning, shared=shared)


def hold_out(learning: Learning, recipe: Recipe, clusters: Clusters | None = None) -> tuple[str, ...]:
    """The tasks kept from training: a share of each cluster, or of all tasks where nothing is known of clusters yet."""
    bank = learning.material.bank
    sources = {task.name: task.source for task in bank}
    together = Clusters(bank.names, np.zeros(len(bank), dtype=np.int64))
    return hold_out_tasks(clusters or together, sources, recipe.held_out, seed=recipe.seed)


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


def in_order(bank: TaskBank, clusters: int | None) -> TaskBank:
    """The bank with its tasks in the order of their names, so that the order they came in does not matter."""
    if len(bank) < 2:
        found = f"{len(bank)} task{'s' * (len(bank) != 1)}"
        raise NotEnoughExamples(f"Found {found} to learn from. Metrics are learned from at least two.")
    if clusters is not None and clusters > len(bank):
        raise RecipeError(
            f"The recipe asks for {clusters} clusters of {len(bank)} tasks. Ask for fewer, or leave the number open."
        )
    return bank.only(sorted(bank.names))
