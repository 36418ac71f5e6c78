"""Which pairs of tasks to measure, and how many are needed."""

import hashlib
import json
import math
from collections.abc import Sequence

import numpy as np

from manymetrics.values import Bools, Ints

NEEDED = 0.75  # tasks known to be similar to a task, as a multiple of log n
ALL_PAIRS_UP_TO = 500  # tasks; above, a random sample of pairs is measured


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
    drawn = np.argpartition(keys, wanted)[:wanted] if wanted > 0 else np.zeros(0, np.int64)
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
