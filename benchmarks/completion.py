"""The completion of planted clusters, against cvxpy with SCS and tensorly's robust PCA, and alone at scale.

Both peers minimise the same objective with the same lambda. It is evaluated for every answer in one way: the nuclear
norm of X plus lambda times what X leaves unexplained of the observed entries. A faster answer that is worse is no win.
"""

import importlib
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import manymetrics as mm
from benchmarks.harness import Options, Row, Target, in_fresh_process, race, seconds
from manymetrics.partition import cluster_tasks, complete_similarity
from manymetrics.partition.completion import default_sparsity
from manymetrics.values import Floats, Ints, ObservedPairs

SOURCES = ("partition",)
FIFTY, FIVE = Target(50, "×"), Target(5, "×")
SIZES = {300: Target(30, "s", at_least=False), 1000: Target(20, "s", at_least=False),
         3000: Target(300, "s", at_least=False)}  # fmt: skip
ONCE = 3000  # tasks that are completed once, whatever the number of rounds
CLUSTERS = {300: 5}  # 20 for all others
SHARES = {300: 0.4, 1000: 0.1}  # of the pairs that are observed; n*log(n)^2/n^2 for all others
RECOVERED = 0.95  # adjusted Rand
MEMORY = 6.0  # GiB
NO_WORSE = 1 + 1e-5  # our tolerance


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    small, middle = options.size(100, 20), options.size(300, 30)
    rows = [
        _against(f"{small} tasks; cvxpy + SCS", small, _by_cvxpy, "cvxpy", target=FIFTY, options=options),
        _against(
            f"{middle} tasks; tensorly robust_pca", middle, _by_tensorly, "tensorly", target=FIVE, options=options
        ),
    ]
    return rows if options.quick else [*rows, *(_at_scale(n, target, options) for n, target in SIZES.items())]


def planted(n: int, *, clusters: int, share: float, wrong: tuple[float, float]) -> tuple[Ints, ObservedPairs]:
    """Clusters of equal size and the observed pairs; `wrong`: shares among the similar and the dissimilar ones."""
    rng = np.random.default_rng(n)
    truth = rng.permutation(np.arange(n) % clusters)  # (n,)
    observed, similar = np.eye(n, dtype=bool), np.eye(n, dtype=bool)  # (n, n) each
    for task in range(n):  # row by row, to keep the memory of the problem out of the measurement
        others = task + 1 + np.flatnonzero(rng.random(n - task - 1) < share)
        same = truth[others] == truth[task]
        flipped = rng.random(len(others)) < np.where(same, *wrong)
        observed[task, others] = observed[others, task] = True
        similar[task, others] = similar[others, task] = same ^ flipped
    return truth, ObservedPairs(tuple(f"task{task:06}" for task in range(n)), similar=similar, observed=observed)


def objective(low_rank: Floats, pairs: ObservedPairs, sparsity: float) -> float:
    """*||X||_* + lambda ||P_Omega(Y - X)||_1*."""
    errors = np.abs(pairs.similar - low_rank)[pairs.observed].sum()
    return float(np.linalg.norm(low_rank, "nuc") + sparsity * errors)


def _against(title: str, n: int, peer: Callable[..., Floats], module: str, *, target: Target,
             options: Options) -> Row:  # fmt: skip
    _, pairs = planted(n, clusters=5, share=0.4, wrong=(0.05, 0.05))
    sparsity = default_sparsity(pairs)

    def complete() -> Floats:
        return mm.complete_similarity(pairs, sparsity=sparsity).low_rank

    def judge(mine: Floats, theirs: Floats) -> tuple[bool, str]:
        ours, other = (objective(low_rank, pairs, sparsity) for low_rank in (mine, theirs))
        note = f"objective {ours:.4f} against {other:.4f}; 5 clusters, 40 % observed, 5 % wrong, lambda {sparsity:.3f}"
        return ours <= other * NO_WORSE, note

    return race(title, complete, lambda: peer(pairs, sparsity), options, needs=module, target=target, judge=judge)


def _by_cvxpy(pairs: ObservedPairs, sparsity: float) -> Floats:
    cp: Any = importlib.import_module("cvxpy")
    low_rank = cp.Variable(pairs.observed.shape)
    errors = cp.multiply(pairs.observed.astype(float), low_rank - pairs.similar.astype(float))
    problem = cp.Problem(cp.Minimize(cp.normNuc(low_rank) + sparsity * cp.sum(cp.abs(errors))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.SCS)
    return np.asarray(low_rank.value)


def _by_tensorly(pairs: ObservedPairs, sparsity: float) -> Floats:
    decomposition: Any = importlib.import_module("tensorly.decomposition")
    observed = pairs.similar.astype(float)
    return np.asarray(decomposition.robust_pca(observed, mask=pairs.observed, reg_J=0.5, reg_E=sparsity)[0])


def complete(n: int) -> Callable[[], dict[str, Any]]:
    """Complete and cluster planted tasks: seconds of one core, and how good the answer is.

    5 % of the similar and 0.5 % of the dissimilar pairs are wrong.
    """
    clusters, share = CLUSTERS.get(n, 20), SHARES.get(n, math.log(n) ** 2 / n)
    truth, pairs = planted(n, clusters=clusters, share=share, wrong=(0.05, 0.005))

    def measure() -> dict[str, Any]:
        start = time.process_time()
        similarity = complete_similarity(pairs)
        completed = time.process_time()
        found = cluster_tasks(similarity, n_clusters=clusters)
        return {
            "tasks": n,
            "clusters": clusters,
            "observed": int(pairs.observed.sum()),
            "complete_seconds": round(completed - start, 1),
            "steps": similarity.steps,
            "gap": float(f"{similarity.gap:.2e}"),
            "cluster_seconds": round(time.process_time() - completed, 1),
            "adjusted_rand": round(float(adjusted_rand_score(truth, found.labels)), 4),
        }

    return measure


def _at_scale(n: int, target: Target, options: Options) -> Row:
    """A size that is run several times, judged by its worst recovery."""
    usages = [in_fresh_process(complete, n) for _ in range(1 if n == ONCE else options.rounds)]
    peak = max(usage.peak for usage in usages) / 1024  # GiB
    runs: list[dict[str, Any]] = [usage.result for usage in usages]
    spent = [run["complete_seconds"] + run["cluster_seconds"] for run in runs]
    rand, last = min(run["adjusted_rand"] for run in runs), runs[-1]
    often = "once" if len(runs) == 1 else f"{len(runs)} times"
    return Row(
        f"{n:,} tasks, completed and clustered", seconds(spent), target=target, value=statistics.median(spent),
        sound=rand >= RECOVERED and peak <= MEMORY,
        note=f"adjusted Rand {rand:.3f} (≥ {RECOVERED}), peak {peak:.2f} GiB "
        f"(≤ {MEMORY:g}), {last['clusters']} clusters, {last['observed']:,} entries observed, "
        f"{last['steps']} steps, gap {last['gap']:.0e}; processor seconds, run {often}",
    )  # fmt: skip
