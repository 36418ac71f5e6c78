"""Task projections -> S, for a learning that stands on a frozen encoder: each task's own small step away from it.

A few small steps tell families of tasks apart; more of them fit the task's own texts and blur the picture. All start
from the encoder as it is: what tasks have in common would drown what they have not.

Paper: section 3.1, with other representations. Names here and there:
    a task's projection     the single-task encoder of task i
    transfer.scores[i, j]   s_ij: the mean log-likelihood of task j's valid examples, from prototypes of a few of its
                            train examples, under the projection of task i and one temperature for all
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoder import Encoder, unit_rows
from manymetrics.encode.projection import (
    START_TEMPERATURE,
    FittedProjection,
    Problem,
    TaskRows,
    fit_projection,
    log_likelihood,
)
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.measure.models import hold_out_texts
from manymetrics.measure.transfer import choose_pairs
from manymetrics.values import LabelledTexts, Material, Task, TransferMatrix, Unit, Work

TRAIN_STAGE, STAGE = "measure-projections", "measure-projected-transfer"
SCORE = "log-likelihood"
SHOTS, QUERIES = 10, 100  # of a task whose transfer is measured


def train_task_projections(material: Material, work: Work, *, base: Encoder, training: ProjectionTraining,
                           seed: int) -> dict[str, bytes]:  # fmt: skip
    """Train each task's step away from the encoder."""
    spec = {"seed": seed, "encoder": base.fingerprint, "training": asdict(training)}
    units = [Unit(task.name, {**spec, "task": task.fingerprint}) for task in material.bank]
    return work(TRAIN_STAGE, train_task_projection, units)


def train_task_projection(unit: Unit, material: Material) -> bytes:
    """The step of one task."""
    base, task = material.encoders[unit.spec["encoder"]], material.bank[unit.name]
    training, rng = ProjectionTraining(**unit.spec["training"]), unit.rng(unit.spec["seed"])
    return pack_projection(fit_projection([task_rows(task, base)], [], training, rng=rng))


def measure_projected_transfer(projections: Mapping[str, bytes], material: Material, work: Work, *, base: Encoder,
                               pairs: int | None, seed: int,
                               before: TransferMatrix | None = None) -> TransferMatrix:  # fmt: skip
    """*S* for the chosen pairs of tasks; what was not measured stays NaN."""
    names = material.bank.names
    there = np.full((len(names), len(names)), np.nan) if before is None else before.scores
    chosen = choose_pairs(names, pairs, seed) & np.isnan(there)
    prints = {task.name: task.fingerprint for task in material.bank}
    units = [
        Unit(
            source,
            {"encoder": base.fingerprint, "seed": seed},
            (projections[source],),
            {names[j]: prints[names[j]] for j in np.flatnonzero(chosen[i])},
        )
        for i, source in enumerate(names)
        if source in projections and chosen[i].any()
    ]
    rows = {source: json.loads(row) for source, row in work(STAGE, measure_projected_row, units).items()}
    scores = [[rows.get(source, {}).get(target, np.nan) for target in names] for source in names]
    return TransferMatrix(names, np.where(np.isnan(there), np.array(scores, dtype=np.float64), there), SCORE)


def measure_projected_row(unit: Unit, material: Material) -> bytes:
    """How likely one task's projection makes the answers of the others."""
    base = material.encoders[unit.spec["encoder"]]
    projection = replace(open_projection(unit.inputs[0]), temperature=START_TEMPERATURE)
    row = {
        name: log_likelihood(projection, task_problem(material.bank[name], base, seed=unit.spec["seed"]))
        for name in unit.parts
    }
    return json.dumps(row, sort_keys=True).encode()


def task_rows(task: Task, base: Encoder) -> TaskRows:
    """A task's train texts as training sees them."""
    rows, names = (unit_rows(base.encode(texts)) for texts in (task.train.texts, task.label_names))
    return TaskRows(rows, task.labelled_train.labels, names)


def task_problem(task: Task, base: Encoder, *, seed: int, shots: int = SHOTS, queries: int = QUERIES) -> Problem:
    """A few-shot problem on a task, always the same: some train examples of each label, and valid texts to answer."""
    rng = np.random.default_rng([seed, *task.fingerprint.encode()])
    train, texts = task.labelled_train, task.labelled_valid
    if not len(texts):
        train, texts = hold_out_texts(train, 0.5, rng)
    given = [rng.permutation(np.flatnonzero(train.labels == label))[:shots] for label in np.unique(train.labels)]
    return problem_of(train.take(np.concatenate(given)), texts.take(rng.permutation(len(texts))[:queries]), task, base)


def problem_of(support: LabelledTexts, query: LabelledTexts, task: Task, base: Encoder) -> Problem:
    """A few-shot problem in rows."""
    rows = [unit_rows(base.encode(texts)) for texts in (support.texts, task.label_names, query.texts)]
    return Problem(rows[0], support.labels, rows[1], rows[2], query.labels)


def pack_projection(fitted: FittedProjection) -> bytes:
    """A projection as the content of its file."""
    temperature = np.array([fitted.temperature], np.float32)
    return save({"matrix": fitted.matrix, "temperature": temperature, "steps": np.array([fitted.steps])})


def open_projection(payload: bytes) -> FittedProjection:
    """The projection that `pack_projection` wrote."""
    tensors = load(payload)
    return FittedProjection(tensors["matrix"], float(tensors["temperature"][0]), int(tensors["steps"][0]))
