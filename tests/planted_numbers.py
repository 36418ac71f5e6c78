"""Tasks in rows: texts that are numbers, labels that differ in some of them, and the others noise."""

import numpy as np

from manymetrics.encode import Encoder, State
from manymetrics.values import Examples, Task, TaskBank

WIDTH = 8


class StatelessEncoder(Encoder):
    """An encoder with nothing to store; a test gives it `encode`."""

    def state(self):
        return State()

    @classmethod
    def from_state(cls, state):
        return cls()


class Numbers(StatelessEncoder, kind="test-numbers"):
    """A text is the numbers it is made of; a name, which holds none, says nothing."""

    def encode(self, texts):
        rows = [_numbers(text) for text in texts]
        return np.array(rows, np.float32).reshape(-1, WIDTH)


def _numbers(text):
    return [0.0] * WIDTH if text.startswith("label") else [float(part) for part in text.split()]


def planted_task(name, signal, seed, *, labels=4, each=6, valid=True, shuffled=False):
    """Labels differ in the features `signal`, and all others are noise; in a shuffled task labels mean nothing."""
    rng = np.random.default_rng(seed)
    means, sizes = np.zeros((labels, WIDTH)), np.full(WIDTH, 1.5)
    means[:, signal], sizes[signal] = rng.standard_normal((labels, len(signal))), 0.2

    def examples(each):
        places = np.repeat(np.arange(labels), each)
        rows = means[places] + sizes * rng.standard_normal((len(places), WIDTH))
        texts = tuple(" ".join(f"{number:.3f}" for number in row) for row in rows)
        places = rng.permutation(places) if shuffled else places
        return Examples(texts, tuple(f"label {place}" for place in places.tolist()))

    return Task(name, examples(each), examples(3) if valid else Examples())


def planted_bank(each, *, shuffled=()):
    """Two families, which look at different features; in a shuffled one all tasks but the last mean nothing."""
    return TaskBank(
        tuple(
            planted_task(f"{family}-{n}", signal, 10 * signal[0] + n, shuffled=family in shuffled and n < each - 1)
            for family, signal in (("first", [0, 1, 2, 3]), ("second", [4, 5, 6, 7]))
            for n in range(each)
        )
    )


def at_once(shared_data):
    """Work done here and now, one job after the other."""
    return lambda stage, do, jobs: {job.name: do(job, shared_data) for job in jobs}
