"""Clusters -> metrics: one that all tasks share, one for each cluster, and a classifier over labels that all share.

Paper: section 3.2.1.
    a metric's encoder     f_k
    tasks of a cluster     C_k

Training stops on held-out tasks: of all clusters for the shared metric, of its own cluster for a cluster's. A cluster's
training starts from the shared state; where no number of steps makes its held-out tasks more probable, it has no metric
of its own. Where a cluster has no held-out task, all steps are taken. Where the shared training failed, the clusters
start untrained, and there is no shared metric. Some representations have no shared state at all. Where all tasks are
one cluster, its metric is a shared one too, unless it would repeat the shared training.

Where the tasks of the bank and new tasks have the same labels, one logistic regression over the embeddings of all past
texts answers them before the first shot.
"""

import warnings
from collections.abc import Callable, Collection

import numpy as np

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.representation import Fitted, Phases, Representation, open_representation
from manymetrics.errors import JobSkipped, StageFailed, TrainingWarning
from manymetrics.measure.heads import fit_head
from manymetrics.specialize.metric import LEARNED, LINEAR, TUNED, LabelHead, Metric
from manymetrics.store import packed
from manymetrics.values import Clusters, Examples, Job, RunJobs, SharedData

STAGE, LINEAR_STAGE = "specialize", "specialize-linear"
SHARED = Representation.shared_name  # the name of the metric of all tasks, unless it is a classifier
ENCODER = "encoder"  # the name of the metric of the only cluster
SHARED_LABELS = "shared-labels"  # the name of the classifier over labels that all tasks share


def train_metrics(phases: Phases, shared_data: SharedData, clusters: Clusters, run_jobs: RunJobs, *,
                  held_out: Collection[str] = (), seed: int = 0,
                  start: Fitted | None = None) -> list[Metric]:  # fmt: skip
    """The shared metric, where there is one, and the metrics of the clusters whose own training improves on it.

    The shared training begins with `start`, if it is given.
    """

    def job(name: str, representation: Representation, group: Collection[str], inputs: tuple[bytes, ...]) -> Job:
        contents = {task.name: task.content for task in shared_data.bank if task.name in group}
        tasks = {name: content for name, content in contents.items() if name not in held_out}
        stop_on = {name: content for name, content in contents.items() if name in held_out}
        spec = {"seed": seed, **representation.spec(), "tasks": tasks, "held_out": stop_on}
        return Job(name, spec, inputs)

    metrics: list[Metric] = []
    inputs: tuple[bytes, ...] = ()
    if phases.shared is not None:
        name = phases.shared.shared_name
        shared_job = job(name, phases.shared, shared_data.bank.names, () if start is None else (packed.dump(start),))
        payloads = _run_or_skip(run_jobs, STAGE, train_metric, [shared_job], "the shared metric")
        if payloads:
            fitted, inputs = packed.parse(payloads[name], Fitted), (payloads[name],)
            if not fitted.n_steps and start is None:
                warnings.warn(
                    f"The shared {name} is not trained: no number of steps made the answers of the held-out tasks "
                    "more probable.",
                    TrainingWarning,
                    stacklevel=2,
                )
            metrics.append(make_metric(name, TUNED, phases.shared, fitted, tasks=tuple(shared_job.spec["tasks"])))
    is_one = phases.shared is not None and len(clusters) == 1
    repeats_shared = is_one and phases.shared is not None and phases.shared.kind == phases.cluster.kind
    jobs = {
        number: job(f"cluster-{number}", phases.cluster, group, inputs)
        for number, group in enumerate(clusters)
        if not repeats_shared and set(group) - set(held_out)
    }
    without = None if phases.shared is None else "metrics of single clusters"
    payloads = _run_or_skip(run_jobs, STAGE, train_metric, list(jobs.values()), without)
    for number, trained in jobs.items():
        if trained.name in payloads and (fitted := packed.parse(payloads[trained.name], Fitted)).n_steps:
            name, kind, cluster = (ENCODER, TUNED, None) if is_one else (trained.name, LEARNED, number)
            tasks = tuple(trained.spec["tasks"])
            metrics.append(make_metric(name, kind, phases.cluster, fitted, tasks=tasks, cluster=cluster))
    return metrics


def train_linear_metric(shared_data: SharedData, run_jobs: RunJobs, *, base: Encoder,
                        held_out: Collection[str] = ()) -> list[Metric]:  # fmt: skip
    """A classifier trained on all tasks that are not held out; an empty list where tasks differ in their labels."""
    if shared_data.bank.shared_labels is None:
        return []
    tasks = {task.name: task.content for task in shared_data.bank if task.name not in held_out}
    job = Job(SHARED_LABELS, {"tasks": tasks, "encoder": base.fingerprint})
    payloads = _run_or_skip(run_jobs, LINEAR_STAGE, fit_linear_metric, [job], "the classifier over the shared labels")
    heads = [LabelHead.of(packed.parse(payload, Fitted)) for payload in payloads.values()]
    return [Metric(SHARED_LABELS, LINEAR, base, tasks=tuple(tasks), shared=head) for head in heads]


def _run_or_skip(run_jobs: RunJobs, stage: str, function: Callable[[Job, SharedData], bytes], jobs: list[Job],
                 without: str | None) -> dict[str, bytes]:  # fmt: skip
    """The results of jobs; none, with a warning, where all of them failed and a model can do without."""
    try:
        return run_jobs(stage, function, jobs) if jobs else {}
    except StageFailed as failed:
        if without is None:
            raise
        warnings.warn(f"{failed} The model comes out without {without}.", JobSkipped, stacklevel=3)
        return {}


def train_metric(job: Job, shared_data: SharedData) -> bytes:
    """Train on the job's tasks, from the state given to it if there is one."""
    representation, seed, bank = open_representation(job.spec, shared_data.base), job.spec["seed"], shared_data.bank
    drawn = [representation.episode(bank[name], seed=seed) for name in job.spec["held_out"]]
    fitted = representation.fit(
        [bank[name] for name in job.spec["tasks"]],
        [episode for episode in drawn if episode is not None],
        start=packed.parse(job.inputs[0], Fitted) if job.inputs else None,
        rng=job.rng(seed),
    )
    return packed.dump(fitted)


def fit_linear_metric(job: Job, shared_data: SharedData) -> bytes:
    """Fit a classifier on the train and valid texts of some tasks."""
    bank, encoder = shared_data.bank, shared_data.base
    tasks = [bank[name] for name in job.spec["tasks"]]
    examples = Examples.join([part for task in tasks for part in (task.train, task.valid)])
    n_classes = len(tasks[0].labels)
    head = fit_head(encoder.encode(examples.texts), examples.numbers, classes=n_classes)
    shares = (np.bincount(examples.numbers, minlength=n_classes) + 1) / (len(examples) + n_classes)
    tensors = {"head": head.weights, "offset": head.offset, "prior": shares.astype(np.float32)}
    return packed.dump(Fitted(tensors, classes=tasks[0].labels))


def make_metric(name: str, kind: str, representation: Representation, fitted: Fitted, *,
                tasks: tuple[str, ...], cluster: int | None = None) -> Metric:  # fmt: skip
    """The metric of a trained state: a classifier over its classes if it has any, else by similarity."""
    encoder = representation.encoder(fitted)
    if fitted.classes:
        return Metric(name, kind, encoder, tasks=tasks, cluster=cluster, shared=LabelHead.of(fitted))
    return Metric(name, kind, encoder, representation.rule, fitted.temperature, tasks, cluster,
                  share=1.0 if cluster is None else representation.share)  # fmt: skip
