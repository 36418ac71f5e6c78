"""The whole transfer matrix with a head for each pair, against the straightforward way.

The straightforward way, for each pair: torch's dense convolution over the target's texts, then scikit-learn's
LogisticRegression (features centred and brought to one scale, stopped by the same rule as ours). It is timed on some
pairs and scaled to all. Word vectors, task models and texts are the same on both sides.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.dense import DenseConvolution
from benchmarks.harness import Options, Race, Row, Target, installed, repeat, seconds, settle, without_peer
from benchmarks.material import WIDTH, WINDOW, about, sample, usual_vectors
from manymetrics.encode.settings import Convolution, Training
from manymetrics.measure import measure_transfer, open_task_model
from manymetrics.measure.heads import TOLERANCE
from manymetrics.start import Learning, prepare

EIGHT, MINUTES = Target(8, "×"), Target(60, "min", at_least=False)
STEPS = 20  # of each task model: what it learned changes little of what measuring costs
AGREE = 0.02  # how far the mean accuracy may lie from the peer's


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    tasks = options.size(57, 16)
    past, _ = sample(options.seed, tasks).split_off()
    rows = _measure("sample bank", past.only(past.names[: options.size(57, 4)]), options)
    if options.data:
        past, _ = mm.load_tasks(options.data).split_off()
        rows += _measure("folder given", past, options)
    return rows


def _measure(what: str, bank: mm.TaskBank, options: Options) -> list[Row]:
    settle(1)
    if not installed("torch"):
        return [without_peer(Row(f"{what}: transfer matrix with heads", "", target=EIGHT))]
    learning = prepare(bank, usual_vectors(), {})
    workers = options.size(2, 1)
    models = train_models(learning, options.size(STEPS, 2), workers, options.seed)
    title = f"{what}: {len(bank)} × {len(bank)} transfer matrix"
    rows = [_against_pairs(f"{title}, a head for each pair", learning, models, options)]
    rows += [
        _whole(f"{title}, {score}, {workers} workers", learning, models, score, workers=workers)
        for score in ("accuracy", "logme")
    ]
    return rows


def train_models(learning: Learning, steps: int, workers: int, seed: int) -> dict[str, bytes]:
    """A classifier of each task, trained briefly."""
    training = Training(steps, check_every=steps, learning_rate=2e-3)
    with mm.Engine(learning.material, workers=workers) as work:
        return mm.train_task_models(
            learning.material,
            work,
            words=learning.words,
            convolution=Convolution(WINDOW, WIDTH, 0.5),
            training=training,
            seed=seed,
        )


def _whole(title: str, learning: Learning, models: dict[str, bytes], score: str, *, workers: int) -> Row:
    start = time.perf_counter()
    with mm.Engine(learning.material, workers=workers) as work:
        measure_transfer(models, learning.material, work, words=learning.words, score=score)
    spent = time.perf_counter() - start
    texts = sum(len(task.train) + len(task.valid) for task in learning.material.bank)
    note = f"wall clock, once, start of the workers included; {texts:,} texts, {about(learning.words)}"
    return Row(title, seconds(spent), target=MINUTES, value=spent / 60, note=note)


def _against_pairs(title: str, learning: Learning, models: dict[str, bytes], options: Options) -> Row:
    names = learning.material.bank.names
    rng = np.random.default_rng(options.seed)
    sources = [names[at] for at in rng.permutation(len(names))[: options.size(3, 1)]]
    pairs = _some_pairs(names, options.size(6, 2), rng)
    ours = _rows_of(learning, models, sources)
    if not (options.peers and installed("sklearn")):
        times = [len(names) / len(sources) * t for t in repeat(ours, options.rounds)]
        return without_peer(Row(title, seconds(times), target=EIGHT))
    race = Race(
        ours,
        lambda: [straightforward(learning, models, *pair) for pair in pairs],
        scale=len(names) / len(sources),
        peer_scale=len(names) * (len(names) - 1) / len(pairs),
    )
    outcome = race.run(options.rounds)
    whole = np.isfinite(outcome.result).sum() == len(sources) * (len(names) - 1)  # every cell was measured
    both = _rows_of(learning, models, [source for source, _ in pairs])()
    cells = np.array([both[names.index(i), names.index(j)] for i, j in pairs])
    apart = abs(float(np.mean(cells) - np.mean(outcome.peer_result)))
    return Row(
        title,
        seconds(outcome.ours),
        seconds(outcome.peer),
        outcome.ratio,
        EIGHT,
        sound=bool(whole) and (options.quick or apart <= AGREE),
        note=f"1 thread; ours timed on {len(sources)} rows, the peer on {len(pairs)} pairs, both scaled; mean accuracy "
        f"of these pairs {np.mean(cells):.1%} and {np.mean(outcome.peer_result):.1%}; "
        f"{statistics.median(outcome.ours) / len(names) / (len(names) - 1) * 1e3:.1f} ms a pair",
    )


def _some_pairs(names: tuple[str, ...], count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Pairs whose targets are spread over the sizes of the tasks, so that their mean stands for all."""
    targets = [names[at] for at in rng.permutation(len(names))[:count]]
    return [(names[(names.index(target) + 1 + at) % len(names)], target) for at, target in enumerate(targets)]


def _rows_of(learning: Learning, models: dict[str, bytes], sources: list[str]) -> Callable[[], Any]:
    def measure() -> Any:
        some, material = {source: models[source] for source in sources}, learning.material
        return measure_transfer(some, material, mm.Engine(material), words=learning.words, score="accuracy").scores

    return measure


def straightforward(learning: Learning, models: dict[str, bytes], source: str, target: str) -> float:
    """The accuracy on the target of a head on the source's encoder, one pair by itself."""
    from sklearn.linear_model import LogisticRegression

    bank, words = learning.material.bank, learning.words
    task = bank[target]
    dense = DenseConvolution(open_task_model(bank[source], words, models[source]).encoder)
    train, valid = task.labelled_train, task.labelled_valid if len(task.valid) else task.labelled_train
    features = dense.responses(dense.prepare(words.tokens(train.texts)))
    centre, scale = features.mean(axis=0), float(np.sqrt(features.var(axis=0).mean()))
    head = LogisticRegression(max_iter=1000, tol=TOLERANCE).fit((features - centre) / scale, train.labels)
    answers = head.predict((dense.responses(dense.prepare(words.tokens(valid.texts))) - centre) / scale)
    return float(np.mean(answers == valid.labels))
