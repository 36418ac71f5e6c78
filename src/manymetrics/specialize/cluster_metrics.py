"""Clusters -> metrics: one that all tasks share, and one for each cluster.

Paper: section 3.2.1.
    a metric's encoder     f_k
    tasks of a cluster     C_k

Training stops on held-out tasks: of all clusters for the shared metric, of its own cluster for a cluster's. A cluster's
training starts from the shared state; where no number of steps makes its held-out tasks more probable, it has no metric
of its own. Where a cluster has no held-out task, all steps are taken. Where the shared training failed, the clusters
start untrained, and there is no shared metric. Some representations have no shared state at all. Where all tasks are
one cluster, its metric is a shared one too, unless it would repeat the shared training.
"""

import warnings
from collections.abc import Collection

from manymetrics.encode.representation import Fitted, Phases, Representation, open_representation
from manymetrics.errors import JobSkipped, StageFailed, TrainingWarning
from manymetrics.specialize.metric import LEARNED, TUNED, LabelHead, Metric
from manymetrics.values import Clusters, Job, RunJobs, SharedData

STAGE = "specialize"
SHARED = "projection"  # the name of the shared metric
ENCODER = "encoder"  # the name of the metric of the only cluster


def train_metrics(phases: Phases, shared_data: SharedData, clusters: Clusters, run_jobs: RunJobs, *,
                  held_out: Collection[str] = (), seed: int = 0,
                  start: Fitted | None = None) -> list[Metric]:  # fmt: skip
    """The shared metric, where there is one, and the metrics of the clusters whose own training improves on it.

    The shared training begins with `start`, if it is given.
    """
    metrics: list[Metric] = []
    shared = None
    if phases.shared is not None:
        tasks = tuple(name for name in shared_data.bank.names if name not in held_out)
        shared = _train_shared(phases.shared, shared_data, run_jobs, held_out=held_out, seed=seed, start=start)
        if shared is not None:
            metrics.append(make_metric(SHARED, TUNED, phases.shared, shared, tasks=tasks))
    inputs = () if shared is None else (shared.dump(),)
    is_one = phases.shared is not None and len(clusters) == 1
    repeats_shared = phases.shared is not None and phases.shared.kind == phases.cluster.kind
    jobs = {
        number: Job(f"cluster-{number}", _spec(phases.cluster, shared_data, group, held_out, seed), inputs)
        for number, group in enumerate(clusters)
        if not (is_one and repeats_shared) and set(group) - set(held_out)
    }
    payloads = _train_clusters(run_jobs, list(jobs.values()), optional=phases.shared is not None)
    for number, job in jobs.items():
        if job.name in payloads and (fitted := Fitted.parse(payloads[job.name])).n_steps:
            name, kind, cluster = (ENCODER, TUNED, None) if is_one else (job.name, LEARNED, number)
            tasks = tuple(job.spec["tasks"])
            metrics.append(make_metric(name, kind, phases.cluster, fitted, tasks=tasks, cluster=cluster))
    return metrics


def _train_shared(representation: Representation, shared_data: SharedData, run_jobs: RunJobs, *,
                  held_out: Collection[str], seed: int, start: Fitted | None) -> Fitted | None:  # fmt: skip
    """The state trained on all tasks that are not held out; None, with a warning, where training failed."""
    inputs = () if start is None else (start.dump(),)
    job = Job(SHARED, _spec(representation, shared_data, shared_data.bank.names, held_out, seed), inputs)
    try:
        fitted = Fitted.parse(run_jobs(STAGE, train_metric, [job])[SHARED])
    except StageFailed as failed:  # its only job; the clusters have metrics of their own
        warnings.warn(f"{failed} The model comes out without the shared metric.", JobSkipped, stacklevel=3)
        return None
    if not fitted.n_steps and start is None:
        warnings.warn(
            "The shared projection is not trained: no number of steps made the answers of the held-out tasks more "
            "probable.",
            TrainingWarning,
            stacklevel=3,
        )
    return fitted


def _train_clusters(run_jobs: RunJobs, jobs: list[Job], *, optional: bool) -> dict[str, bytes]:
    """The states of the clusters; none, with a warning, where all of them failed and a model can do without."""
    try:
        return run_jobs(STAGE, train_metric, jobs) if jobs else {}
    except StageFailed as failed:
        if not optional:
            raise
        warnings.warn(f"{failed} The model comes out without metrics of single clusters.", JobSkipped, stacklevel=3)
        return {}


def _spec(representation: Representation, shared_data: SharedData, group: Collection[str], held_out: Collection[str],
          seed: int) -> dict[str, object]:  # fmt: skip
    """What a job depends on: the representation, the tasks to train on and those to stop on."""
    contents = {task.name: task.content for task in shared_data.bank if task.name in group}
    return {
        "seed": seed,
        **representation.spec(),
        "tasks": {name: content for name, content in contents.items() if name not in held_out},
        "held_out": {name: content for name, content in contents.items() if name in held_out},
    }


def train_metric(job: Job, shared_data: SharedData) -> bytes:
    """Train on the job's tasks, from the state given to it if there is one."""
    representation, seed, bank = open_representation(job.spec, shared_data.encoders), job.spec["seed"], shared_data.bank
    drawn = [representation.episode(bank[name], seed=seed) for name in job.spec["held_out"]]
    return representation.fit(
        [bank[name] for name in job.spec["tasks"]],
        [episode for episode in drawn if episode is not None],
        start=Fitted.parse(job.inputs[0]) if job.inputs else None,
        rng=job.rng(seed),
    ).dump()


def make_metric(name: str, kind: str, representation: Representation, fitted: Fitted, *,
                tasks: tuple[str, ...], cluster: int | None = None) -> Metric:  # fmt: skip
    """The metric of a trained state: a classifier over its classes if it has any, else by similarity."""
    encoder = representation.encoder(fitted)
    if fitted.classes:
        return Metric(name, kind, encoder, tasks=tasks, cluster=cluster, shared=LabelHead.of(fitted))
    return Metric(name, kind, encoder, representation.rule, fitted.temperature, tasks, cluster,
                  share=1.0 if cluster is None else representation.share)  # fmt: skip
