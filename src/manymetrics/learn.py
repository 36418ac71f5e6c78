"""From a bank of tasks to a model: Algorithms 1 and 2 of the paper, one line for each stage.

`find_clusters` is Algorithm 2 and the clustering, `specialize_and_weigh` is Algorithm 1. Every stage is done in the
package whose name it carries.
"""

import logging
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from manymetrics.classifier import Predictor, learn_scope_and_calibration
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder, require_registered
from manymetrics.encode.ngrams import CharNgramEncoder
from manymetrics.encode.representation import Fitted, Representation, representation_kind
from manymetrics.encode.sentence import encode_bank
from manymetrics.encode.sources.encoders import load_encoder
from manymetrics.encode.sources.vectors import load_vectors
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Limits, OpenEngine, Progress, engines
from manymetrics.engine.run_job import NO_LIMITS
from manymetrics.episodes import draw_episodes, hold_out
from manymetrics.errors import (
    DataError,
    InputError,
    JobSkipped,
    NotEnoughExamples,
    RecipeError,
    StageFailed,
    TrainingWarning,
)
from manymetrics.measure import combine_evidence, fit_single_tasks, measure_transfer, pairs_needed, pairs_to_measure
from manymetrics.model import Clustering, MetricModel, Origin, describe_predictor, save_origin
from manymetrics.model.change import MIN_OWN_TASKS, add_tasks, check_start, join_models, shared_state
from manymetrics.model.origin import LEARNED
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, filter_pairs, leave_out_unmeasured
from manymetrics.recipe import AUTO, STATIC, Recipe
from manymetrics.specialize import Metric, train_linear_metric, train_metrics
from manymetrics.specialize.metric import FROZEN
from manymetrics.store import Run, check_output_folder
from manymetrics.values import TARGET, ObservedPairs, RunJobs, SharedData, Task, TaskBank, TransferMatrix
from manymetrics.weigh import learn_assigner, tune_gradient

LOG = logging.getLogger("manymetrics")
WORDS, SENTENCE = "word-vectors", "sentence"  # the name of the metric that the base encoder gives as it is
RESERVED = (WORDS, SENTENCE, "letters")  # names that further encoders cannot have
MIN_SHARING = 8  # tasks with the same labels that get metrics of their own: some of them are held out
NO_ENCODERS: Mapping[str, Encoder] = MappingProxyType({})


def learn_metrics(tasks: TaskBank | Iterable[Task] | str | Path, recipe: Recipe | None = None, *,
                  run: str | Path | None = None, workers: int = 1, ray: str | None = None, limits: Limits = NO_LIMITS,
                  vectors: WordVectors | None = None, encoders: Mapping[str, Encoder] | None = None,
                  start: MetricModel | None = None,
                  report: Callable[[Progress], None] | None = None) -> MetricModel:  # fmt: skip
    """Learn a handful of metrics from many past tasks, or from the tasks of a folder that are not marked as targets.

    With a `run` folder every finished job is stored there, and the same call resumes after an interruption. With
    several `workers`, or on a Ray cluster (`ray`: its address, or "auto"), the bits are the same; a script that asks
    for workers needs `if __name__ == "__main__":`. A task whose job fails, or exceeds the `limits`, is left out with a
    warning. Further `encoders`, by name, join the metric of a task as they are. With a model to `start` from, the
    result has its metrics too; a bank of less than eight tasks then trains none of its own.

    Progress is handed to `report`; without one it is shown on stderr, if that is a terminal or a notebook. The logger
    `manymetrics` has a line for each stage.
    """
    bank, recipe, further = past_tasks(tasks), recipe or Recipe(), encoders or NO_ENCODERS
    recipe = recipe if vectors is None else replace(recipe, encoder=STATIC, vectors=vectors.name)
    representation_kind(recipe.representation)
    for name, encoder in further.items():
        if name in RESERVED:
            raise InputError(f"An encoder is named {name!r}, as a metric is already. Give it another name.")
        require_registered(encoder)
    base = vectors or load_base(recipe)
    if start is not None:
        check_start(start, bank, base)
        if len(bank) < MIN_OWN_TASKS:
            return add_tasks(start, bank)
    shared_data = SharedData(in_order(bank, recipe.clusters).without_tests(), base)
    opened = None if run is None else Run.open(run, recipe.as_toml())
    with engines(run=opened, report=report, workers=workers, ray=ray, limits=limits) as open_engine:
        if run is not None:
            check_output_folder(Path(run, "learned"), LEARNED)
        with open_engine(shared_data) as run_jobs:
            shared_data = encode_bank(shared_data, run_jobs)
        model = learn_from(shared_data, recipe, open_engine, further=further, start=start)
        model = MetricModel(model.predictor, replace(model.origin, bank_fingerprint=bank.fingerprint))
        model = model if start is None else join_models(start, model, shared_data.bank)
        shared_data.base.clear_table()
        if run is not None:
            save_origin(model.origin, Path(run, "learned"))
    return model


def learn_from(shared_data: SharedData, recipe: Recipe, open_engine: OpenEngine, *,
               further: Mapping[str, Encoder] = NO_ENCODERS,
               start: MetricModel | None = None) -> MetricModel:  # fmt: skip
    """All stages after the encoding of texts: for all tasks, and for those of them that share their labels.

    Labels mean the same in such tasks, so a new task with the same labels is served by what they alone gave. What all
    tasks share is trained on from the model to `start` from.
    """
    by_labels: list[Predictor] = []
    get_ready = representation_kind(recipe.representation).prepare_worker
    with open_engine(shared_data, get_ready=get_ready) as run_jobs:
        clustering = find_clusters(shared_data, run_jobs, recipe)
        model = specialize_and_weigh(shared_data, clustering, run_jobs, recipe, further=further, start=start)
        for group in sharing_labels(shared_data.bank.tasks):
            labels = ", ".join(group[0].labels)
            LOG.info("%d tasks share the labels %s", len(group), labels)
            part, settings = shared_data.only(task.name for task in group), replace(recipe, clusters=None, pairs=None)
            try:
                clustering = find_clusters(part, run_jobs, settings)
                predictor = specialize_and_weigh(part, clustering, run_jobs, settings, further=further).predictor
            except (StageFailed, NotEnoughExamples) as failed:
                message = f"{failed} The {len(group)} tasks with the labels {labels} get no metrics of their own."
                warnings.warn(message, JobSkipped, stacklevel=2)
            else:
                by_labels += [predictor] if predictor.labels else []  # else no metric that knows them was trained
    predictor = replace(model.predictor, by_labels=tuple(by_labels))
    return MetricModel(predictor, replace(model.origin, **describe_predictor(predictor)))


def find_clusters(shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe) -> Clustering:
    """Which tasks help one another: Algorithm 2, and the clustering."""
    # measure: S, and Y on Omega
    representation = recipe.phases(shared_data).single
    single = fit_single_tasks(representation, shared_data, run_jobs, seed=recipe.seed)
    shared_data = shared_data.only(single)
    require_two(shared_data.bank)
    transfer, pairs = measure_until_connected(representation, single, shared_data, run_jobs, recipe)
    transfer, pairs = leave_out_unmeasured(transfer, pairs, fewest=max(2, recipe.clusters or 1))
    # partition: X + E, and the clusters
    for _ in run_jobs.each("partition", [f"{len(shared_data.bank)} tasks"]):  # one step, with its progress reported
        similarity = complete_similarity(pairs, sparsity=recipe.sparsity, n_clusters=recipe.clusters)
        clusters = cluster_tasks(similarity, n_clusters=recipe.clusters, max_clusters=recipe.most_clusters)
    LOG.info("partition: %d tasks in %d clusters", len(clusters.names), len(clusters))
    return Clustering(clusters, transfer, pairs, similarity)


def measure_until_connected(representation: Representation, single: Mapping[str, Fitted], shared_data: SharedData,
                            run_jobs: RunJobs, recipe: Recipe) -> tuple[TransferMatrix, ObservedPairs]:  # fmt: skip
    """*S* and the pairs it makes known; of a large bank more is measured where too few pairs turned out similar."""
    transfer = measure_transfer(representation, single, shared_data, run_jobs, pairs=recipe.pairs, seed=recipe.seed)
    pairs = observe_pairs(transfer, shared_data, recipe)
    n = len(shared_data.bank)
    needed = pairs_needed(n, float(pairs.similar.sum() / n) - 1.0)  # a task is similar to itself
    if recipe.pairs is None and needed > pairs_to_measure(n):
        transfer = measure_transfer(representation, single, shared_data, run_jobs, pairs=needed, seed=recipe.seed,
                                    known=transfer)  # fmt: skip
        pairs = observe_pairs(transfer, shared_data, recipe)
    return transfer, pairs


def observe_pairs(transfer: TransferMatrix, shared_data: SharedData, recipe: Recipe) -> ObservedPairs:
    """*Y* on *Omega*: the pairs that transfer, and by default label names and texts, say something about."""
    joined, parts = transfer, [transfer]
    if recipe.evidence != "transfer":
        evidence = combine_evidence(transfer, shared_data.bank, shared_data.base)
        joined, parts = evidence.joined, [*evidence.parts]
    return filter_pairs(joined, p1=choose_p1(*parts) if recipe.p1 is None else recipe.p1, p2=recipe.p2)


def specialize_and_weigh(shared_data: SharedData, clustering: Clustering, run_jobs: RunJobs, recipe: Recipe, *,
                         further: Mapping[str, Encoder] = NO_ENCODERS,
                         start: MetricModel | None = None) -> MetricModel:  # fmt: skip
    """A metric for each cluster, and what is learned on held-out tasks: Algorithm 1."""
    bank, base, clusters = shared_data.bank, shared_data.base, clustering.clusters
    phases = recipe.phases(shared_data)
    # specialize: the shared metric and those of the clusters, frozen encoders, the classifier over shared labels
    held_out = hold_out(bank, recipe.held_out, seed=recipe.seed, clusters=None if phases.shared else clusters)
    if phases.shared and recipe.held_out and not held_out:
        message = "No task is held out to validate on: too few tasks have texts beside one example of each label."
        message += " The shared projection is trained for all its steps."
        warnings.warn(message, TrainingWarning, stacklevel=2)
    begin = None if start is None else shared_state(start, phases.shared)
    learned = train_metrics(phases, shared_data, clusters, run_jobs, held_out=held_out, seed=recipe.seed, start=begin)
    known = [] if recipe.is_published else train_linear_metric(shared_data, run_jobs, base=base, held_out=held_out)
    if not learned and not known:
        raise StageFailed(
            "Nothing was learned: neither the shared metric nor one of a cluster could be trained. "
            "The warnings say why. Fix the cause and run the same command again."
        )
    base_name = WORDS if recipe.encoder == STATIC else SENTENCE
    frozen = [Metric(name, FROZEN, encoder) for name, encoder in {base_name: base, **further}.items()]
    letters = CharNgramEncoder.from_texts([text for task in bank for text in task.train.texts])
    predictor = Predictor((*learned, *frozen, *known), letters=letters)
    # weigh: scope and calibration on held-out tasks, by a model that has not seen them
    clustered = tuple(name for name in held_out if name in clusters.names)  # no job of theirs failed
    episodes = draw_episodes(bank, clustered, shots=recipe.shots, seed=recipe.seed)
    if held_out and not episodes:
        message = "No held-out task is left to learn scope and calibration on, so they keep their defaults."
        warnings.warn(message, TrainingWarning, stacklevel=2)
    LOG.info("weigh: scope and calibration on %d episodes of %d held-out tasks", len(episodes), len(clustered))
    assigner = None
    if recipe.is_published:
        predictor = replace(predictor, gradient=tune_gradient(predictor.metrics, episodes, run_jobs.each))
    else:
        assigner = learn_assigner(shared_data.only(clusters.names).bank, clusters, base, run_jobs.each)
        predictor = replace(predictor, assigner=None if assigner is None else assigner.without(held_out))
    scope, calibration = learn_scope_and_calibration(predictor, episodes, seed=recipe.seed, each=run_jobs.each)
    if not recipe.is_published:  # of the held-out tasks too
        known = train_linear_metric(shared_data, run_jobs, base=base) or known
    predictor = replace(predictor, metrics=(*learned, *frozen, *known), scope=scope, calibration=calibration,
                        assigner=assigner)  # fmt: skip
    origin = Origin(**vars(clustering), recipe=recipe, held_out=clustered, bank_fingerprint=bank.fingerprint,
                    **describe_predictor(predictor))  # fmt: skip
    return MetricModel(predictor, origin)


def past_tasks(tasks: TaskBank | Iterable[Task] | str | Path) -> TaskBank:
    """The tasks to learn from: those given, or those of a folder that it does not mark as targets."""
    match tasks:
        case TaskBank():
            return tasks
        case str() | Path():
            bank = load_tasks(tasks)
            return bank.only([name for name in bank.names if bank.role(name) != TARGET])
    listed = tuple(tasks)
    for other in (task for task in listed if type(task) is not Task):
        raise DataError(
            f"Found {str(other)[:40]!r} of type {type(other).__name__} where a task was expected. "
            "Give a folder, a bank, or some of its tasks."
        )
    return TaskBank(listed)


def in_order(bank: TaskBank, n_clusters: int | None) -> TaskBank:
    """The bank with tasks and examples sorted by content: neither their order nor the tasks' names matter."""
    require_two(bank)
    if n_clusters is not None and n_clusters > len(bank):
        raise RecipeError(
            f"The recipe asks for {n_clusters} clusters of {len(bank)} tasks. Ask for fewer, or leave the number open."
        )
    ordered = sorted(bank, key=lambda task: (task.content, task.name))
    tasks = (replace(task, train=task.train.in_order(), valid=task.valid.in_order()) for task in ordered)
    return TaskBank(tuple(tasks), bank.roles, bank.left_out)


def require_two(bank: TaskBank) -> None:
    """Refuse a bank that is too small to learn from, or became so because jobs of its tasks failed."""
    if len(bank) < 2:
        tasks = f"{len(bank)} task{'s' * (len(bank) != 1)}"
        raise NotEnoughExamples(f"Found {tasks} to learn from. Metrics are learned from at least two.")


def sharing_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Groups of at least `MIN_SHARING` tasks with the same labels; none if all tasks have the same."""
    groups = defaultdict(list)
    for task in tasks:
        groups[task.labels].append(task)
    return [group for group in groups.values() if MIN_SHARING <= len(group) < len(tasks)]


def load_base(recipe: Recipe) -> Encoder:
    """The base encoder of a recipe."""
    if recipe.encoder == STATIC:
        return load_vectors(recipe.vectors)
    return load_encoder(recipe.encoder, pooling=None if recipe.pooling == AUTO else recipe.pooling)
