"""Single-task representations -> S: how well what was learned on one task serves another.

Paper: section 3.1, the first steps of Algorithm 2.
    transfer.scores[i, j]   s_ij    the score on task j of the representation trained on task i

What is trained on a task, and how it is scored, is decided by the representation. A pair that was not measured, or that
cannot be scored, stays NaN. A job of the second stage is a row of S and its parts are the cells: when a task is added
or changed, only its own row and its own cell of each other row are measured.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from manymetrics.encode.representation import Fitted, Representation, open_representation
from manymetrics.store import packed
from manymetrics.values import Bools, Ints, Job, RunJobs, SharedData, TransferMatrix

MODELS, STAGE = "measure-models", "measure-transfer"
NEEDED = 0.75  # tasks known to be similar to a task, as a multiple of log n
ALL_PAIRS_UP_TO = 500  # tasks; above, a random sample of pairs is measured


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


def choose_pairs(names: Sequence[str], pairs: int | None, seed: int) -> Bools:
    """Which pairs to measure, both directions of each: (n, n) symmetric, diagonal False.

    Every pair has a random key, made from the seed and its two names, and the lowest keys are drawn: as many as `pairs`
    says, or as `pairs_to_measure`. So a larger sample contains the smaller one, and when a task is added, the pairs
    drawn among the others were drawn before.
    """
    n = len(names)
    wanted = pairs_to_measure(n) if pairs is None else pairs
    above = np.triu_indices(n, k=1)
    if wanted >= len(above[0]):
        return ~np.eye(n, dtype=bool)
    keys = _random_keys(names, seed)[above]  # (pairs,)
    drawn = np.argpartition(keys, wanted)[:wanted]
    chosen = np.zeros((n, n), dtype=bool)
    chosen[above[0][drawn], above[1][drawn]] = True
    return chosen | chosen.T


def pairs_to_measure(n: int) -> int:
    """All pairs of a few hundred tasks, else about n log^2 n entries of *S*, which the paper's theorem asks for."""
    return n * (n - 1) // 2 if n <= ALL_PAIRS_UP_TO else int(n * np.log(n) ** 2 / 2)


def pairs_needed(n: int, similar: float) -> int:
    """How many pairs to measure, where among `pairs_to_measure(n)` a task has `similar` others known to be similar.

    These connect a cluster: like a random graph, it falls apart below about log n of them for each task. The more
    clusters there are, the fewer of the measured pairs are similar. Never fewer pairs than were measured before, so
    that their scores stay in use.
    """
    measured, n_pairs = pairs_to_measure(n), n * (n - 1) // 2
    if measured >= n_pairs or similar <= 0:
        return measured
    return min(n_pairs, max(measured, int(measured * NEEDED * math.log(n) / similar)))


def _random_keys(names: Sequence[str], seed: int) -> Ints:
    """A random number for every two tasks, made from their names: (n, n) symmetric."""
    digests = [hashlib.sha256(json.dumps([seed, name]).encode()).digest()[:8] for name in names]
    each = np.frombuffer(b"".join(digests), dtype=np.uint64)  # (n,)
    mixed = each[:, None] + each[None, :]  # (n, n)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # the finish of splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed
