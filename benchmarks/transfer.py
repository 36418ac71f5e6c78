"""The whole transfer matrix with a head for each pair, against the straightforward way.

The straightforward way, for each pair: torch's dense convolution over the target's texts, then scikit-learn's
LogisticRegression (features centred and brought to one scale, stopped by the same rule as ours). It is timed on some
pairs and scaled to all. Word vectors, task models and texts are the same on both sides.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.dense import DenseConvolution
from benchmarks.harness import NOT_RUN, Options, Race, Row, Target, installed, race_row, seconds, settle
from benchmarks.material import WIDTH, WINDOW, about, sample, usual_vectors
from manymetrics.encode import Fitted
from manymetrics.encode.settings import Convolution, Training
from manymetrics.learn import material_of
from manymetrics.measure import ConvolutionRepresentation, fit_single_tasks, measure_transfer
from manymetrics.measure.heads import TOLERANCE
from manymetrics.values import SharedData

EIGHT, MINUTES = Target(8, "×"), Target(60, "min", at_least=False)
STEPS = 20  # of each task model: what it learned changes little of what measuring costs
AGREE = 0.02  # how far the mean accuracy may lie from the peer's


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    tasks = options.size(57, 16)
    past, _ = sample(options.seed, tasks).split_off()
    bank = past.only(past.names[: options.size(57, 4)])
    settle(1)
    if not installed("torch"):
        return [Row("transfer matrix with heads", NOT_RUN, target=EIGHT, note="torch is not installed")]
    shared_data = material_of(bank, usual_vectors())
    workers = options.size(2, 1)
    models = train_models(shared_data, options.size(STEPS, 2), workers, options.seed)
    title = f"sample bank: {len(bank)} × {len(bank)} transfer matrix"
    rows = [_against_pairs(f"{title}, a head for each pair", shared_data, models, options)]
    return [*rows, _whole(f"{title}, accuracy, {workers} workers", shared_data, models, workers=workers)]


def train_models(shared_data: SharedData, steps: int, workers: int, seed: int) -> dict[str, Fitted]:
    """A classifier of each task, trained briefly."""
    with mm.Engine(shared_data, workers=workers) as run_jobs:
        return fit_single_tasks(network(shared_data, steps), shared_data, run_jobs, seed=seed)


def network(shared_data: SharedData, steps: int = STEPS) -> ConvolutionRepresentation:
    """The representation whose transfer is measured."""
    training = Training(steps, check_every=steps, learning_rate=2e-3)
    return ConvolutionRepresentation(shared_data.base, Convolution(WINDOW, WIDTH, 0.5), training)


def _whole(title: str, shared_data: SharedData, models: dict[str, Fitted], *, workers: int) -> Row:
    start = time.perf_counter()
    with mm.Engine(shared_data, workers=workers) as run_jobs:
        measure_transfer(network(shared_data), models, shared_data, run_jobs)
    spent = time.perf_counter() - start
    texts = sum(len(task.train) + len(task.valid) for task in shared_data.bank)
    note = f"wall clock, once, start of the workers included; {texts:,} texts, {about(shared_data.base)}"
    return Row(title, seconds(spent), target=MINUTES, value=spent / 60, note=note)


def _against_pairs(title: str, shared_data: SharedData, models: dict[str, Fitted], options: Options) -> Row:
    names = shared_data.bank.names
    rng = np.random.default_rng(options.seed)
    sources = [names[at] for at in rng.permutation(len(names))[: options.size(3, 1)]]
    pairs = _some_pairs(names, options.size(6, 2), rng)
    ours = _rows_of(shared_data, models, sources)
    race = Race(
        ours,
        lambda: [straightforward(shared_data, models, *pair) for pair in pairs],
        scale=len(names) / len(sources),
        peer_scale=len(names) * (len(names) - 1) / len(pairs),
    )

    def judge(scores: Any, theirs: list[float]) -> tuple[bool, str]:
        whole = np.isfinite(scores).sum() == len(sources) * (len(names) - 1)  # every cell was measured
        both = _rows_of(shared_data, models, [source for source, _ in pairs])()
        mine, other = np.mean([both[names.index(i), names.index(j)] for i, j in pairs]), np.mean(theirs)
        note = (
            f"1 thread; ours timed on {len(sources)} rows, the peer on {len(pairs)} pairs, both scaled; mean accuracy "
            f"of these pairs {mine:.1%} and {other:.1%}"
        )
        return bool(whole and (options.quick or abs(mine - other) <= AGREE)), note

    return race_row(title, race, options, target=EIGHT, judge=judge)


def _some_pairs(names: tuple[str, ...], count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Pairs whose targets are spread over the sizes of the tasks, so that their mean stands for all."""
    targets = [names[at] for at in rng.permutation(len(names))[:count]]
    return [(names[(names.index(target) + 1 + at) % len(names)], target) for at, target in enumerate(targets)]


def _rows_of(shared_data: SharedData, models: dict[str, Fitted], sources: list[str]) -> Callable[[], Any]:
    def measure() -> Any:
        some = {source: models[source] for source in sources}
        return measure_transfer(network(shared_data), some, shared_data, mm.Engine(shared_data)).scores

    return measure


def straightforward(shared_data: SharedData, models: dict[str, Fitted], source: str, target: str) -> float:
    """The accuracy on the target of a head on the source's encoder, one pair by itself."""
    from sklearn.linear_model import LogisticRegression

    task, words = shared_data.bank[target], shared_data.base
    dense = DenseConvolution(network(shared_data).encoder(models[source]))
    train, valid = task.train, task.valid if len(task.valid) else task.train
    features = dense.responses(dense.prepare(words.tokens(train.texts)))
    centroid, scale = features.mean(axis=0), float(np.sqrt(features.var(axis=0).mean()))
    head = LogisticRegression(max_iter=1000, tol=TOLERANCE).fit((features - centroid) / scale, train.numbers)
    answers = head.predict((dense.responses(dense.prepare(words.tokens(valid.texts))) - centroid) / scale)
    return float(np.mean(answers == valid.numbers))
