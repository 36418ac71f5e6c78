"""A single-task network trained to the same held-out accuracy, against the plain torch loop.

Both sides start from the same filters, see the same batches, drop the same units and take the same number of steps of
the same optimiser, so the curves agree but for rounding; what differs is what a step costs.
"""

import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.dense import padded
from benchmarks.harness import Options, Race, Ratio, Row, Target, installed, seconds, settle, without_peer
from benchmarks.material import WIDTH, WINDOW, about, paper_vectors, sample, usual_vectors
from manymetrics.encode import WordVectors
from manymetrics.encode.settings import Convolution, Training

THREE = Target(3, "×")
SETTLED = 0.99  # of the lower of the two best accuracies counts as there


@dataclass
class Curve:
    """Held-out accuracy against processor seconds."""

    started: float = field(default_factory=time.process_time)
    seconds: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)

    def add(self, accuracy: float) -> None:
        """Note where we are."""
        self.seconds.append(time.process_time() - self.started)
        self.accuracy.append(accuracy)

    def reached(self, accuracy: float) -> float:
        """The seconds after which this accuracy was first there."""
        return next(s for s, a in zip(self.seconds, self.accuracy, strict=True) if a >= accuracy)


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    if not installed("torch"):
        return [without_peer(Row("training a single-task network", "", target=THREE))]
    settle(1)
    bank = sample(options.seed, 48)
    hardest = max(bank, key=lambda task: len(task.labels) * len(task.valid))
    tasks = [("the largest task", _largest(bank)), ("the task of most labels and held-out texts", hardest)]
    cases = [(what, task, vectors) for what, task in tasks for vectors in (usual_vectors(), paper_vectors())]
    if options.data:
        bank, _ = mm.load_tasks(options.data).split_off()
        cases.append(("the largest task of the folder given", _largest(bank), usual_vectors()))
    return [_race(what, task, vectors, options) for what, task, vectors in cases]


def _largest(bank: mm.TaskBank) -> mm.Task:
    return max((task for task in bank if len(task.valid) > 0), key=lambda task: len(task.train))


def _race(what: str, task: mm.Task, vectors: WordVectors, options: Options) -> Row:
    steps = options.size(200, 5)
    settings = Training(steps, check_every=max(1, steps // 20), patience=steps, learning_rate=2e-3, batch=32)
    convolution = Convolution(WINDOW, WIDTH, 0.5)
    seeds = iter(range(10**6))

    def ours() -> Curve:
        return train_ours(vectors, task, convolution, settings, seed=options.seed + next(seeds) // 2)

    def peer() -> Curve:
        return train_plainly(vectors, task, convolution, settings, seed=options.seed + next(seeds) // 2)

    title = f"{steps} steps on {what} ({len(task.train):,} train, {len(task.labels)} labels), {about(vectors)}"
    if not options.peers:
        return without_peer(Row(title, seconds([ours().seconds[-1] for _ in range(options.rounds)]), target=THREE))
    curves: list[tuple[Curve, Curve]] = []
    ours()
    peer()
    for _ in range(options.rounds):
        one = Race(ours, peer, warm_up=False).run(1)
        curves.append((one.result, one.peer_result))
    return _row(title, curves, steps)


def _row(title: str, curves: list[tuple[Curve, Curve]], steps: int) -> Row:
    goals = [SETTLED * min(max(a.accuracy), max(b.accuracy)) for a, b in curves]
    mine = [a.reached(goal) for (a, _), goal in zip(curves, goals, strict=True)]
    theirs = [b.reached(goal) for (_, b), goal in zip(curves, goals, strict=True)]
    step, peer_step = (statistics.median(c[side].seconds[-1] / steps for c in curves) for side in (0, 1))
    best, peer_best = (statistics.median(max(c[side].accuracy) for c in curves) for side in (0, 1))
    whole = Ratio.of([a.seconds[-1] for a, _ in curves], [b.seconds[-1] for _, b in curves])
    return Row(
        title,
        f"{seconds(mine)} to the same accuracy",
        seconds(theirs),
        Ratio.of(mine, theirs),
        THREE,
        note=f"all {steps} steps: {whole.median:.2f} × [{whole.low:.2f}, "
        f"{whole.high:.2f}] ({seconds(step)} against {seconds(peer_step)} a step, looks at the held-out part "
        f"included); best held-out accuracy {best:.1%} and {peer_best:.1%}",
    )


def train_ours(vectors: WordVectors, task: mm.Task, convolution: Convolution, training: Training, *,
               seed: int) -> Curve:  # fmt: skip
    """The package's network, objective and loop, its held-out accuracy noted on the way."""
    import torch

    from manymetrics.encode.training.convolution import Classification, ConvolutionNetwork, train

    rng, curve = np.random.default_rng(seed), Curve()

    class Noting(Classification):
        def score(self) -> float | None:
            _, tokens, labels = self.held_out[0]
            with torch.no_grad():
                logits = self.network.forward(tokens) @ self.head + self.offset
            curve.add(float((logits.argmax(dim=1).numpy() == labels).mean()))
            return curve.accuracy[-1]

    network = ConvolutionNetwork(vectors, convolution, rng)
    aim = Noting(network, [task.train], [task.valid], batch=training.batch)
    train(aim, training, rng)
    return curve


def train_plainly(vectors: WordVectors, task: mm.Task, convolution: Convolution, training: Training, *,
                  seed: int) -> Curve:  # fmt: skip
    """What one writes in an afternoon: frozen embedding, Conv1d, mask, max, dropout, Linear, Adam."""
    import torch

    from manymetrics.encode.training.convolution import drop_units

    rng, curve = np.random.default_rng(seed), Curve()
    network = _plain_network(vectors.table, convolution, len(task.labels), rng)
    optimizer = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=training.learning_rate)
    pad, (seen, unseen) = len(vectors.table), (task.train, task.valid)
    tokens, held_out = vectors.tokens(seen.texts), vectors.tokens(unseen.texts)
    held = torch.from_numpy(padded(held_out, np.arange(len(unseen)), pad))
    for step in range(1, training.steps + 1):
        rows = rng.integers(len(seen), size=training.batch)
        optimizer.zero_grad()
        pooled = network(torch.from_numpy(padded(tokens, rows, pad)))
        logits = network.head(drop_units(pooled, convolution.dropout, rng))  # the same dice as ours
        loss: Any = torch.nn.functional.cross_entropy(logits, torch.from_numpy(seen.numbers[rows]))
        loss.backward()
        optimizer.step()
        if step % training.check_every == 0 or step == training.steps:
            with torch.no_grad():
                answers = network.head(network(held)).argmax(dim=1).numpy()
            curve.add(float((answers == unseen.numbers).mean()))
    return curve


def _plain_network(table: Any, convolution: Convolution, classes: int, rng: np.random.Generator) -> Any:
    import torch

    dimensions = table.shape[1]
    spread = 1 / (
        float(np.sqrt(np.mean(np.square(table, dtype=np.float64)))) * np.sqrt(convolution.window * dimensions)
    )
    start = rng.normal(0, spread, (dimensions, convolution.window * convolution.width)).astype(np.float32)

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            rows = np.vstack([table, np.zeros((1, dimensions), np.float32)])
            embedding: Any = torch.nn.Embedding
            self.vectors = embedding.from_pretrained(torch.from_numpy(rows), freeze=True)
            self.conv = torch.nn.Conv1d(dimensions, convolution.width, convolution.window, padding="same")
            self.head = torch.nn.Linear(convolution.width, classes)
            taps = torch.from_numpy(start).view(dimensions, convolution.window, convolution.width)
            with torch.no_grad():
                self.conv.weight.copy_(taps.permute(2, 0, 1))
                zeros: list[Any] = [self.conv.bias, self.head.weight, self.head.bias]
                for tensor in zeros:
                    tensor.zero_()

        def forward(self, ids: Any) -> Any:
            windows = self.conv(self.vectors(ids).transpose(1, 2))
            pooled = windows.masked_fill((ids == len(table))[:, None], -torch.inf).amax(dim=2)
            return torch.relu(pooled)

    return Plain()
