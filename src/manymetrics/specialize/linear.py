"""A bank whose tasks share their labels -> a linear classifier over these labels.

Where the tasks of the bank and new tasks have the same labels, one logistic regression over the embeddings of all past
texts answers them before the first shot.
"""

import warnings
from collections.abc import Collection

import numpy as np

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.representation import Fitted
from manymetrics.errors import JobSkipped, StageFailed
from manymetrics.measure.heads import fit_head
from manymetrics.specialize.metric import LINEAR, LabelHead, Metric
from manymetrics.values import Examples, Job, RunJobs, SharedData

STAGE = "specialize-linear"
NAME = "shared-labels"


def train_linear_metric(shared_data: SharedData, run_jobs: RunJobs, *, base: Encoder,
                        held_out: Collection[str] = ()) -> list[Metric]:  # fmt: skip
    """Train on all tasks that are not held out; an empty list where tasks differ in their labels."""
    labels = shared_data.bank.shared_labels
    if labels is None:
        return []
    tasks = {task.name: task.content for task in shared_data.bank if task.name not in held_out}
    job = Job(NAME, {"tasks": tasks, "encoder": base.fingerprint})
    try:
        payloads = run_jobs(STAGE, fit_linear_metric, [job])
    except StageFailed as failed:
        warnings.warn(f"{failed} The model has no classifier over the shared labels.", JobSkipped, stacklevel=2)
        return []
    shared = LabelHead.of(Fitted.parse(payloads[NAME]))
    return [Metric(NAME, LINEAR, base, tasks=tuple(tasks), shared=shared)]


def fit_linear_metric(job: Job, shared_data: SharedData) -> bytes:
    """Fit on the train and valid texts of some tasks."""
    bank, encoder = shared_data.bank, shared_data.encoders[job.spec["encoder"]]
    tasks = [bank[name] for name in job.spec["tasks"]]
    examples = Examples.join([part for task in tasks for part in (task.train, task.valid)])
    n_classes = len(tasks[0].labels)
    head = fit_head(encoder.encode(examples.texts), examples.numbers, classes=n_classes)
    shares = (np.bincount(examples.numbers, minlength=n_classes) + 1) / (len(examples) + n_classes)
    tensors = {"head": head.weights, "offset": head.offset, "prior": shares.astype(np.float32)}
    return Fitted(tensors, classes=tasks[0].labels).dump()
