"""The completion of planted clusters, against cvxpy with SCS and tensorly's robust PCA, and alone at scale.

Both peers minimise the same objective with the same lambda. It is evaluated for every answer in one way: the nuclear
norm of X plus lambda times what X leaves unexplained of the observed entries. A faster answer that is worse is no win.
"""

import importlib
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.harness import NOT_RUN, Options, Outcome, Race, Row, Target, installed, repeat, seconds, without_peer
from manymetrics.partition.completion import default_sparsity
from manymetrics.values import Floats, ObservedPairs

FIFTY, FIVE = Target(50, "×"), Target(5, "×")
THIRTY_SECONDS = Target(30, "s", at_least=False)
TWENTY_SECONDS, FIVE_MINUTES = Target(20, "s", at_least=False), Target(300, "s", at_least=False)
RECOVERED = 0.95  # adjusted Rand
MEMORY = 6.0  # GiB
NO_WORSE = 1 + 1e-5  # our tolerance
SCRIPT = Path(__file__).with_name("completion_at_scale.py")


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    small, middle = options.size(100, 20), options.size(300, 30)
    rows = [
        _against(f"{small} tasks; cvxpy + SCS", small, _by_cvxpy, "cvxpy", target=FIFTY, options=options),
        _against(
            f"{middle} tasks; tensorly robust_pca", middle, _by_tensorly, "tensorly", target=FIVE, options=options
        ),
    ]
    if options.quick:
        return rows
    sizes = [(300, THIRTY_SECONDS, options.rounds), (1000, TWENTY_SECONDS, options.rounds), (3000, FIVE_MINUTES, 1)]
    return [*rows, *(at_scale(n, target, rounds=rounds) for n, target, rounds in sizes)]


def planted(n: int, seed: int, *, clusters: int = 5, observed: float = 0.4, wrong: float = 0.05) -> ObservedPairs:
    """Clusters of equal size, a share of the pairs observed, a share of those wrong."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % clusters
    above = np.triu(rng.random((n, n)) < observed, 1)
    flipped = np.triu(rng.random((n, n)) < wrong, 1)
    seen = above | above.T | np.eye(n, dtype=bool)
    similar = ((truth[:, None] == truth) ^ (flipped | flipped.T)) & seen
    return ObservedPairs(tuple(f"task{task:04}" for task in range(n)), similar=similar, observed=seen)


def objective(low_rank: Floats, pairs: ObservedPairs, sparsity: float) -> float:
    """*||X||_* + lambda ||P_Omega(Y - X)||_1*."""
    errors = np.abs(pairs.similar - low_rank)[pairs.observed].sum()
    return float(np.linalg.norm(low_rank, "nuc") + sparsity * errors)


def _against(title: str, n: int, peer: Callable[..., Floats], module: str, *, target: Target,
             options: Options) -> Row:  # fmt: skip
    pairs = planted(n, options.seed)
    sparsity = default_sparsity(pairs)

    def ours() -> Floats:
        return mm.complete_similarity(pairs, sparsity=sparsity).low_rank

    if not (options.peers and installed(module)):
        return without_peer(Row(title, seconds(repeat(ours, options.rounds)), target=target))
    outcome = Race(ours, lambda: peer(pairs, sparsity)).run(options.rounds)
    return _compare(title, outcome, pairs, sparsity, target=target)


def _compare(title: str, outcome: Outcome, pairs: ObservedPairs, sparsity: float, *, target: Target) -> Row:
    mine, theirs = (objective(x, pairs, sparsity) for x in (outcome.result, outcome.peer_result))
    return Row(
        title,
        seconds(outcome.ours),
        seconds(outcome.peer),
        outcome.ratio,
        target,
        sound=mine <= theirs * NO_WORSE,
        note=f"objective {mine:.4f} against {theirs:.4f}; 5 clusters, 40 % observed, 5 % wrong, lambda {sparsity:.3f}",
    )


def _peer(module: str) -> Any:
    return importlib.import_module(module)


def _by_cvxpy(pairs: ObservedPairs, sparsity: float) -> Floats:
    cp, n = _peer("cvxpy"), len(pairs.names)
    low_rank = cp.Variable((n, n))
    errors = cp.multiply(pairs.observed.astype(float), low_rank - pairs.similar.astype(float))
    problem = cp.Problem(cp.Minimize(cp.normNuc(low_rank) + sparsity * cp.sum(cp.abs(errors))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.SCS)
    return np.asarray(low_rank.value)


def _by_tensorly(pairs: ObservedPairs, sparsity: float) -> Floats:
    observed = pairs.similar.astype(float)
    low_rank, _ = _peer("tensorly.decomposition").robust_pca(observed, mask=pairs.observed, reg_J=0.5, reg_E=sparsity)
    return np.asarray(low_rank)


def at_scale(n: int, target: Target, *, rounds: int) -> Row:
    """A row from `completion_at_scale.py`, run in a process of its own each time."""
    title = f"{n:,} tasks, completed and clustered"
    if not SCRIPT.is_file():
        return Row(title, NOT_RUN, target=target, note=f"{SCRIPT.name} is not there")
    found = []
    for _ in range(rounds):
        done = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, str(SCRIPT), str(n)], capture_output=True, text=True, check=False, timeout=3600
        )
        if done.returncode:
            why = (done.stderr.strip() or "?")[-200:]
            return Row(title, "failed", target=target, sound=False, value=0.0, note=why)
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return _row_at_scale(title, found, target)


def _row_at_scale(title: str, runs: list[dict[str, Any]], target: Target) -> Row:
    spent = [run["complete_seconds"] + run["cluster_seconds"] for run in runs]
    rand, peak = min(run["adjusted_rand"] for run in runs), max(run["peak_gib"] for run in runs)
    last, often = runs[-1], "once" if len(runs) == 1 else f"{len(runs)} times"
    return Row(
        title,
        seconds(spent),
        target=target,
        value=statistics.median(spent),
        sound=rand >= RECOVERED and peak <= MEMORY,
        note=f"adjusted Rand {rand:.3f} (≥ {RECOVERED}), peak {peak:.2f} GiB "
        f"(≤ {MEMORY:g}), {last['clusters']} clusters, {last['observed']:,} entries observed, "
        f"{last['steps']} steps, gap {last['gap']:.0e}; processor seconds, run {often}",
    )
