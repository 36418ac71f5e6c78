"""Single-task representations -> S: how well what was learned on one task serves another.

Paper: section 3.1, the first steps of Algorithm 2.
    transfer.scores[i, j]   s_ij    the score on task j of the representation trained on task i

What is trained on a task, and how it is scored, is decided by the representation. A pair that was not measured, or that
cannot be scored, stays NaN. A job of the second stage is a row of S and its parts are the cells: when a task is added
or changed, only its own row and its own cell of each other row are measured.
"""

import json
from collections.abc import Mapping

import numpy as np

from manymetrics.encode.representation import Fitted, Representation, open_representation
from manymetrics.measure.pairs import choose_pairs
from manymetrics.store import packed
from manymetrics.values import Job, RunJobs, SharedData, TransferMatrix

MODELS, STAGE = "measure-models", "measure-transfer"


def fit_single_tasks(
    representation: Representation, shared_data: SharedData, run_jobs: RunJobs, *, seed: int
) -> dict[str, Fitted]:
    """Train the representation on every task by itself; a task whose training failed has none."""
    spec = {"seed": seed, **representation.spec()}
    jobs = [Job(task.name, {**spec, "task": task.content}) for task in shared_data.bank]
    return {name: packed.parse(payload, Fitted) for name, payload in run_jobs(MODELS, fit_single_task, jobs).items()}


def fit_single_task(job: Job, shared_data: SharedData) -> bytes:
    """Train on one task."""
    representation = open_representation(job.spec, shared_data.base)
    rng = job.rng(job.spec["seed"])
    return packed.dump(representation.fit([shared_data.bank[job.name]], [], start=None, rng=rng))


def measure_transfer(representation: Representation, single: Mapping[str, Fitted], shared_data: SharedData,
                     run_jobs: RunJobs, *, pairs: int | None = None, seed: int = 0,
                     known: TransferMatrix | None = None) -> TransferMatrix:  # fmt: skip
    """*S* for the chosen pairs of tasks; rows of tasks that are not in `single`, and pairs not chosen, stay NaN.

    Scores in `known`, a matrix of the same tasks, are taken over and not measured again.
    """
    names = shared_data.bank.names
    scores = np.full((len(names), len(names)), np.nan) if known is None else known.scores.copy()
    contents = [task.content for task in shared_data.bank]
    chosen = choose_pairs(contents, pairs, seed) & np.isnan(scores)
    jobs = [
        Job(
            name,
            {"seed": seed, **representation.spec(), "source": contents[source]},
            (packed.dump(single[name]),),
            {names[target]: contents[target] for target in np.flatnonzero(chosen[source])},
        )
        for source, name in enumerate(names)
        if name in single and chosen[source].any()
    ]
    rows = {name: json.loads(row) for name, row in run_jobs(STAGE, measure_row, jobs).items()}
    for source, target in np.argwhere(chosen):
        score = rows.get(names[source], {}).get(names[target])
        scores[source, target] = np.nan if score is None else score
    return TransferMatrix(names, scores, representation.score_name)


def measure_row(job: Job, shared_data: SharedData) -> bytes:
    """The scores of one task's representation on its target tasks; None where a pair cannot be scored."""
    representation, fitted = open_representation(job.spec, shared_data.base), packed.parse(job.inputs[0], Fitted)
    episodes = {name: representation.episode(shared_data.bank[name], seed=job.spec["seed"]) for name in job.parts}
    row = {name: episode and representation.score(fitted, episode) for name, episode in episodes.items()}
    return json.dumps(row, sort_keys=True).encode()
