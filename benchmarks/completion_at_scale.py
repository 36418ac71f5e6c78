"""Complete and cluster planted tasks at growing sizes, and print one JSON line for each size.

    python benchmarks/completion_at_scale.py                              # 300, 1,000 and 3,000 tasks
    python benchmarks/completion_at_scale.py 3000                         # only that size
    python benchmarks/completion_at_scale.py 1000 --against OTHER -n 3    # against another checkout, by turns

Of 300 tasks 40 % of the pairs are observed, of 1,000 tasks 10 %, of more tasks n*log(n)^2 entries, both directions
counted. Among them 5 % of the similar and 0.5 % of the dissimilar pairs are wrong. Seconds are of one core; the peak
memory is that of the process so far, including the generation of the problem.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from manymetrics.partition import cluster_tasks, complete_similarity
from manymetrics.values import Bools, Ints, ObservedPairs

CLUSTERS = {300: 5}  # 20 for all others
SHARES = {300: 0.4, 1000: 0.1}  # n*log(n)^2/n^2 for all others


def planted(n: int, *, clusters: int, share: float, wrong: tuple[float, float]) -> tuple[Ints, ObservedPairs]:
    """Clusters of equal size and the observed pairs; `wrong`: shares among the similar and the dissimilar ones."""
    rng = np.random.default_rng(n)
    truth = rng.permutation(np.arange(n) % clusters)  # (n,)
    observed, similar = np.eye(n, dtype=bool), np.eye(n, dtype=bool)  # (n, n) each
    for task in range(n):  # row by row, to keep the memory of the problem out of the measurement
        others = task + 1 + np.flatnonzero(rng.random(n - task - 1) < share)
        same = truth[others] == truth[task]
        flipped = rng.random(len(others)) < np.where(same, *wrong)
        observed[task, others] = True
        similar[task, others] = same ^ flipped
    mirror(observed)
    mirror(similar)
    return truth, ObservedPairs(tuple(f"task{task:06}" for task in range(n)), similar=similar, observed=observed)


def mirror(upper: Bools) -> None:
    """Make an upper triangle a symmetric matrix, in place."""
    rows, columns = np.nonzero(upper)
    upper[columns, rows] = True


def measure(n: int) -> Iterator[tuple[str, object]]:
    """What one size takes, and how good the answer is."""
    clusters, share = CLUSTERS.get(n, 20), SHARES.get(n, math.log(n) ** 2 / n)
    truth, pairs = planted(n, clusters=clusters, share=share, wrong=(0.05, 0.005))
    yield from (("tasks", n), ("clusters", clusters), ("observed", int(pairs.observed.sum())))
    start = time.process_time()
    similarity = complete_similarity(pairs)
    completed = time.process_time()
    found = cluster_tasks(similarity, n_clusters=clusters)
    clustered = time.process_time()
    yield from (("complete_seconds", round(completed - start, 1)), ("steps", similarity.steps))
    yield from (("gap", float(f"{similarity.gap:.2e}")), ("cluster_seconds", round(clustered - completed, 1)))
    yield "peak_gib", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    yield "adjusted_rand", round(float(adjusted_rand_score(truth, found.labels)), 4)


def race(n: int, other: Path, rounds: int) -> dict[str, Any]:
    """Seconds of the completion here and in another checkout, measured by turns, each in a process of its own."""
    checkouts = {"here": Path(__file__).parents[1], "other": other.resolve()}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    for _ in range(rounds):
        for name, checkout in checkouts.items():
            command = [sys.executable, str(checkout / "benchmarks" / "completion_at_scale.py"), str(n)]
            environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    seconds = {name: [row["complete_seconds"] for row in rows] for name, rows in runs.items()}
    ratio = statistics.median(here / there for here, there in zip(*seconds.values(), strict=True))
    return {"tasks": n, **seconds, "ratio": round(ratio, 2), "last": {name: rows[-1] for name, rows in runs.items()}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", type=int, default=[300, 1000, 3000])
    parser.add_argument("--against", type=Path, metavar="OTHER", help="another checkout of this repository")
    parser.add_argument("-n", "--rounds", type=int, default=3)
    options = parser.parse_args()
    for size in options.tasks:
        row = dict(measure(size)) if options.against is None else race(size, options.against, options.rounds)
        print(json.dumps(row), flush=True)  # noqa: T201
