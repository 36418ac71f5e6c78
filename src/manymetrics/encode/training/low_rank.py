"""Low-rank factors trained on episodes of a bank's tasks, on labels they share, or on shots of one task. Needs torch.

Episodes and shots are compared with prototypes (eqn:base_protonet), at a temperature. In half of the episodes label
names are among the examples. A step on shots compares every shot with prototypes of the other shots and the label
names, and with the names alone. Where all tasks share their labels, factors are trained below a linear classifier over
them. One thread, so that the bits do not depend on the number of cores.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manymetrics.encode.runtime.bert import LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import LowRankTraining
from manymetrics.encode.training import one_thread
from manymetrics.encode.training.transformer import LowRankTransformer
from manymetrics.episodes import draw_indices, groups_by_label
from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Floats, Ints

TEMPERATURE = 20.0  # of cosines, at the start of training on tasks and throughout steps on shots
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 0.01
NAME_LOSS_WEIGHT = 0.3  # of the comparison with the label names alone, in a step on shots


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """The texts of a task as episodes are drawn from them."""

    texts: Sequence[str]
    numbers: Ints  # (texts,): labels
    names: Sequence[str]  # of the labels, in words


def train_on_tasks(encoder: SentenceEncoder, tasks: Sequence[LabelledTask], training: LowRankTraining, *,
                   rng: np.random.Generator) -> LowRankFactors:  # fmt: skip
    """Train on episodes, each of one task drawn at random."""
    groups = [groups_by_label(task.numbers) for task in tasks]
    usable = [(task, group) for task, group in zip(tasks, groups, strict=True) if len(group) > 1]
    if not usable:
        raise NotEnoughExamples(
            "An encoder is trained on tasks with two labels that have two train examples each, and there is none. "
            "Add examples."
        )
    log_temperature = torch.tensor(np.log(TEMPERATURE), dtype=torch.float32, requires_grad=True)

    def losses(transformer: LowRankTransformer) -> Iterator[Tensor]:
        for _ in range(training.steps):
            task, group = usable[int(rng.integers(len(usable)))]
            yield _episode_loss(transformer, task, group, training=training, log_temperature=log_temperature, rng=rng)

    return _train(encoder, training, losses, rng, others=[log_temperature])


def train_on_labels(encoder: SentenceEncoder, tasks: Sequence[LabelledTask], training: LowRankTraining, *,
                    rng: np.random.Generator) -> tuple[LowRankFactors, Floats, Floats]:  # fmt: skip
    """Train a linear classifier over the labels that all tasks have, and the factors below it.

    Gives the factors, the weights (width, labels) and the offset (labels,) of the classifier. Each text of a step is of
    a task drawn at random.
    """
    width, n_labels = encoder.encode([""]).shape[1], len(tasks[0].names)
    weights, offset = torch.zeros(width, n_labels, requires_grad=True), torch.zeros(n_labels, requires_grad=True)

    def losses(transformer: LowRankTransformer) -> Iterator[Tensor]:
        for _ in range(training.steps):
            drawn = [tasks[index] for index in rng.integers(len(tasks), size=training.queries)]
            rows = [int(rng.integers(len(task.texts))) for task in drawn]
            texts = [task.texts[row] for task, row in zip(drawn, rows, strict=True)]
            numbers = torch.tensor([int(task.numbers[row]) for task, row in zip(drawn, rows, strict=True)])
            embeddings = transformer.embed(texts, max_tokens=training.max_tokens, dropout=training.dropout, unit=False)
            yield functional.cross_entropy(embeddings @ weights + offset, numbers)

    factors = _train(encoder, training, losses, rng, others=[weights, offset])
    return factors, weights.detach().numpy(), offset.detach().numpy()


def train_on_shots(encoder: SentenceEncoder, task: LabelledTask, training: LowRankTraining, *,
                   rng: np.random.Generator, use_names: bool = True,
                   on_step: Callable[[int, int], None] = lambda step, total: None) -> LowRankFactors:  # fmt: skip
    """Take gradient steps on the shots of one task, from the factors of the encoder if it has any.

    `on_step` is called with the number of the step and their total, after each step.
    """

    def losses(transformer: LowRankTransformer) -> Iterator[Tensor]:
        neighbours = _neighbouring_labels(encoder, task, training.max_labels)
        for step in range(training.steps):
            on_step(step, training.steps)
            labels = neighbours[int(rng.integers(len(neighbours)))]
            yield _shots_loss(transformer, task, labels, training, rng, use_names=use_names)

    return _train(encoder, training, losses, rng, start=encoder.factors, cache=True)


@one_thread()
def _train(encoder: SentenceEncoder, training: LowRankTraining,
           losses: Callable[[LowRankTransformer], Iterator[Tensor]], rng: np.random.Generator, *,
           start: LowRankFactors | None = None, others: Sequence[Tensor] = (),
           cache: bool = False) -> LowRankFactors:  # fmt: skip
    """One step for each loss; the learning rate rises over the first tenth of the steps and falls to zero.

    Tensors beside the factors are trained at ten times their rate.
    The generator of torch is seeded from `rng`, and afterwards is what it was before.
    """
    base, seed = encoder.base or encoder, int(rng.integers(2**62))
    n_frozen, n_steps, rate = int(training.frozen_share * base.bert.n_layers), training.steps, training.learning_rate
    warmup = max(1, n_steps // 10)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transformer = LowRankTransformer(
            base, n_frozen=n_frozen, rank=training.rank, start=start, seed=seed, cache=cache
        )
        groups = [{"params": transformer.parameters(), "lr": rate, "weight_decay": WEIGHT_DECAY}]
        groups += [{"params": list(others), "lr": 10 * rate, "weight_decay": 0.0}] if others else []
        optimizer = torch.optim.AdamW(groups)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warmup, (n_steps - step) / max(n_steps - warmup, 1))
        )
        for step, loss in enumerate(losses(transformer)):
            if not torch.isfinite(loss):
                raise DataError(f"The loss is {float(loss)} after {step} steps. Train with a smaller rate.")
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(transformer.parameters(), MAX_GRAD_NORM)
            optimizer.step()
            schedule.step()
        return transformer.low_rank_factors()


def _episode_loss(transformer: LowRankTransformer, task: LabelledTask, groups: Sequence[Ints], *,
                  training: LowRankTraining, log_temperature: Tensor, rng: np.random.Generator) -> Tensor:  # fmt: skip
    """The cross-entropy of the queries of one episode; in half of the episodes label names are among the examples."""
    shots = int(rng.integers(1, training.shots + 1))
    drawn = draw_indices(groups, training.ways, shots, training.queries, rng)
    use_names = rng.random() < 0.5
    labels = [int(task.numbers[groups[group][0]]) for group in drawn.classes]
    texts = [task.texts[index] for index in (*drawn.support, *drawn.query)]
    texts += [task.names[label] for label in labels] if use_names else []
    embeddings = transformer.embed(texts, max_tokens=training.max_tokens, dropout=training.dropout)
    n_support, n_query = len(drawn.support), len(drawn.query)
    sums = torch.zeros(len(labels), embeddings.shape[1])
    sums = sums.index_add(0, torch.from_numpy(drawn.labels), embeddings[:n_support])
    sums = sums + embeddings[n_support + n_query :] if use_names else sums
    cosines = embeddings[n_support : n_support + n_query] @ functional.normalize(sums, dim=1).T
    return functional.cross_entropy(log_temperature.exp() * cosines, torch.from_numpy(drawn.answers))


def _neighbouring_labels(encoder: SentenceEncoder, task: LabelledTask, max_labels: int) -> list[Ints]:
    """The labels of a step: all of them or, for each label, those whose prototypes are nearest to it."""
    n_labels = len(task.names)
    if n_labels <= max_labels:
        return [np.arange(n_labels)]
    prototypes: Floats = encoder.encode(list(task.names)).astype(np.float64)
    np.add.at(prototypes, task.numbers, encoder.encode(list(task.texts)))
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    order = np.argsort(-(prototypes @ prototypes.T), axis=1, kind="stable")
    return list(order[:, :max_labels])


def _shots_loss(transformer: LowRankTransformer, task: LabelledTask, labels: Ints, training: LowRankTraining,
                rng: np.random.Generator, *, use_names: bool) -> Tensor:  # fmt: skip
    """Every shot of these labels against prototypes of the other shots and the names, and against the names alone."""
    shots: Ints = np.flatnonzero(np.isin(task.numbers, labels))
    if len(shots) > training.max_shots:
        shots = _balanced_sample(task.numbers[shots], shots, training.max_shots, rng)
    position = {int(label): index for index, label in enumerate(labels)}
    numbers = torch.tensor([position[int(task.numbers[shot])] for shot in shots])
    texts = [task.texts[shot] for shot in shots.tolist()]
    texts += [task.names[label] for label in labels.tolist()] if use_names else []
    embeddings = transformer.embed(texts, max_tokens=training.max_tokens, dropout=training.dropout)
    rows, names = embeddings[: len(shots)], embeddings[len(shots) :]
    sums = torch.zeros(len(labels), rows.shape[1]).index_add(0, numbers, rows)
    sums = sums + names if use_names else sums
    cosines = rows @ functional.normalize(sums, dim=1).T  # (shots, labels)
    without_itself = functional.cosine_similarity(rows, sums[numbers] - rows, dim=1)
    cosines = cosines.scatter(1, numbers[:, None], without_itself[:, None])
    counts = torch.bincount(numbers, minlength=len(labels))
    weights = (1 / counts[numbers]).float()
    if not use_names:
        weights = weights * (counts[numbers] > 1)  # the only shot of a label has nothing to be compared with
    loss = _weighted_cross_entropy(TEMPERATURE * cosines, numbers, weights)
    if use_names:
        loss = loss + NAME_LOSS_WEIGHT * _weighted_cross_entropy(TEMPERATURE * rows @ names.T, numbers, weights)
    return loss


def _weighted_cross_entropy(logits: Tensor, numbers: Tensor, weights: Tensor) -> Tensor:
    losses = functional.cross_entropy(logits, numbers, reduction="none")
    return (weights * losses).sum() / weights.sum().clamp(min=1e-9)


def _balanced_sample(numbers: Ints, shots: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Some shots, as many of each label as possible."""
    order = rng.permutation(len(shots))
    rank = np.empty(len(shots), dtype=np.int64)
    for label in np.unique(numbers):
        members = order[numbers[order] == label]
        rank[members] = np.arange(len(members))
    return shots[np.sort(np.lexsort((order, rank))[:count])]
