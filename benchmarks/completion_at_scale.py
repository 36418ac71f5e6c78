"""Complete and cluster planted tasks at growing sizes, and print one JSON line for each size.

    python benchmarks/completion_at_scale.py            # 300, 1,000, 3,000 and 10,000 tasks; the last takes minutes
    python benchmarks/completion_at_scale.py 10000      # only that size

Of 300 tasks 40 % of the pairs are observed, of 1,000 tasks 10 %, of more tasks n*log(n)^2 entries, both directions
counted. Among them 5 % of the alike and 0.5 % of the apart pairs are wrong. Seconds are of one core; the peak memory is
that of the whole process so far, the making of the problem included.
"""

import argparse
import json
import math
import resource
import time
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import adjusted_rand_score

from manymetrics.partition import cluster_tasks, complete_similarity
from manymetrics.values import Bools, Ints, ObservedPairs

CLUSTERS = {300: 5}  # 20 for all others
SHARES = {300: 0.4, 1000: 0.1}  # n*log(n)^2/n^2 for all others


def planted(n: int, *, clusters: int, share: float, wrong: tuple[float, float]) -> tuple[Ints, ObservedPairs]:
    """Clusters of equal size and the pairs seen of them; `wrong` is for the alike and for the apart ones."""
    rng = np.random.default_rng(n)
    truth = rng.permutation(np.arange(n) % clusters)  # (n,)
    known, alike = np.eye(n, dtype=bool), np.eye(n, dtype=bool)  # (n, n) each
    for place in range(n):  # row by row, to keep the memory of the problem out of the measurement
        others = place + 1 + np.flatnonzero(rng.random(n - place - 1) < share)
        same = truth[others] == truth[place]
        flipped = rng.random(len(others)) < np.where(same, *wrong)
        known[place, others] = True
        alike[place, others] = same ^ flipped
    mirror(known)
    mirror(alike)
    return truth, ObservedPairs(tuple(f"task{place:06}" for place in range(n)), alike=alike, known=known)


def mirror(upper: Bools) -> None:
    """Make an upper triangle a symmetric matrix, in place."""
    rows, columns = np.nonzero(upper)
    upper[columns, rows] = True


def measure(n: int) -> Iterator[tuple[str, object]]:
    """What one size takes, and how good the answer is."""
    clusters, share = CLUSTERS.get(n, 20), SHARES.get(n, math.log(n) ** 2 / n)
    truth, pairs = planted(n, clusters=clusters, share=share, wrong=(0.05, 0.005))
    yield from (("tasks", n), ("clusters", clusters), ("observed", int(pairs.known.sum())))
    start = time.process_time()
    similarity = complete_similarity(pairs)
    completed = time.process_time()
    found = cluster_tasks(similarity, clusters=clusters)
    clustered = time.process_time()
    yield from (("complete_seconds", round(completed - start, 1)), ("steps", similarity.steps))
    yield from (("gap", float(f"{similarity.gap:.2e}")), ("cluster_seconds", round(clustered - completed, 1)))
    yield "peak_gib", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    yield "adjusted_rand", round(float(adjusted_rand_score(truth, found.labels)), 4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", type=int, default=[300, 1000, 3000, 10000])
    for size in parser.parse_args().tasks:
        print(json.dumps(dict(measure(size))), flush=True)  # noqa: T201
