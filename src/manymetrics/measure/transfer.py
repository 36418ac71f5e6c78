"""Task models -> S: how well what was learned on one task serves another.

Paper: section 3.1.1. Names here and there:
    transfer.scores[i, j]   s_ij    the score on task j of a head trained on the frozen encoder of task i

Two modes. *heads*: a logistic regression on frozen features, trained on task j's train examples and scored on its valid
ones (five-fold over train where there are none). *direct*: the whole model of task i answers task j's valid examples as
it is, possible only where both have the same labels. A pair that was not measured stays NaN.

A unit is a row of S and its parts are the cells: the texts of all targets are encoded in one go, and when a task is
added or changed, only its own row and its own cell of each other row are measured.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from manymetrics.encode.reading import Labelled, ReadBank, ReadTask
from manymetrics.encode.tokens import Tokens, join
from manymetrics.errors import RecipeError
from manymetrics.measure.heads import fit_head
from manymetrics.measure.models import TaskModel, open_task_model
from manymetrics.measure.scores import (
    ACCURACY,
    BALANCED,
    LOG_LOSS,
    LOGME,
    SCORES,
    accuracy,
    balanced_accuracy,
    log_evidence,
    mean_log_likelihood,
)
from manymetrics.values import Bools, Floats, Ints, TransferMatrix, Unit, Work

STAGE = "measure-transfer"
VERSION = 2
AUTO, HEADS, DIRECT = "auto", "heads", "direct"
MODES = (HEADS, DIRECT)
FOLDS = 5
NEEDED = 0.75  # tasks known to be like a task, as a multiple of log n
ALL_PAIRS_UP_TO = 300  # tasks; above, a random sample of pairs is measured


def choose_pairs(names: Sequence[str], pairs: int | None, seed: int) -> Bools:
    """Which pairs to measure, both directions of each: (n, n) symmetric, diagonal False.

    Every pair has a lot, made from the seed and its two names, and the lowest lots are drawn: as many as `pairs` says,
    or as `pairs_to_measure`. So more pairs are the same pairs and others, and when a task is added, the pairs drawn
    among the others were drawn before.
    """
    n = len(names)
    wanted = pairs_to_measure(n) if pairs is None else pairs
    above = np.triu_indices(n, k=1)
    if wanted >= len(above[0]):
        return ~np.eye(n, dtype=bool)
    lots = _lots(names, seed)[above]  # (pairs,)
    drawn = np.argpartition(lots, wanted)[:wanted] if wanted > 0 else np.zeros(0, np.int64)
    chosen = np.zeros((n, n), dtype=bool)
    chosen[above[0][drawn], above[1][drawn]] = True
    return chosen | chosen.T


def pairs_to_measure(n: int) -> int:
    """All pairs of a few hundred tasks, else about n log^2 n entries of *S*, which the paper's theorem asks for."""
    return n * (n - 1) // 2 if n <= ALL_PAIRS_UP_TO else int(n * np.log(n) ** 2 / 2)


def pairs_enough(n: int, alike: float) -> int:
    """How many pairs to measure, where of `pairs_to_measure(n)` a task got so many others known to be like it.

    These hold a cluster together: as a random graph does, it falls apart below some log n of them for each task. The
    more clusters there are, the fewer of the pairs that are measured are alike. Never fewer pairs than were measured,
    so that what is measured is kept.
    """
    measured, every = pairs_to_measure(n), n * (n - 1) // 2
    if measured >= every or alike <= 0:
        return measured
    return min(every, max(measured, int(measured * NEEDED * math.log(n) / alike)))


def _lots(names: Sequence[str], seed: int) -> Ints:
    """A random number for every two tasks, from what they are called: (n, n) symmetric."""
    marks = [hashlib.sha256(json.dumps([seed, name]).encode()).digest()[:8] for name in names]
    each = np.frombuffer(b"".join(marks), dtype=np.uint64)  # (n,)
    mixed = each[:, None] + each[None, :]  # (n, n)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # the finish of splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


def choose_measure(bank: ReadBank, score: str, mode: str) -> tuple[str, str]:
    """What `auto` stands for: where tasks share their labels, the likelihood of one task's model on another's answers.

    A new head can make up for another meaning of the same labels, and so hides what tells such tasks apart. Where
    labels differ only features can be judged, and their evidence is both the cheapest and the most telling score.
    """
    if mode == AUTO:
        shared = len({task.labels for task in bank}) == 1
        mode = DIRECT if shared and score != LOGME else HEADS
    if score == AUTO:
        score = LOG_LOSS if mode == DIRECT else LOGME
    return score, mode


def measure_transfer(models: Mapping[str, bytes], bank: ReadBank, work: Work, *, score: str = AUTO,
                     mode: str = AUTO, pairs: int | None = None, seed: int = 0,
                     before: TransferMatrix | None = None) -> TransferMatrix:  # fmt: skip
    """*S* for the chosen pairs of tasks; rows of tasks without a model, and pairs not chosen, stay NaN.

    What was measured `before`, of the same tasks, is taken over and not measured again.
    """
    score, mode = choose_measure(bank, score, mode)
    if score not in SCORES or mode not in MODES:
        raise RecipeError(
            f"Found score {score!r} and mode {mode!r}. Choose a score of {', '.join(SCORES)} "
            f"and a mode of {', '.join(MODES)}."
        )
    if mode == DIRECT and score == LOGME:
        raise RecipeError("The score 'logme' judges features, and mode 'direct' judges answers. Choose another score.")
    names = bank.names
    there = np.full((len(names), len(names)), np.nan) if before is None else before.scores
    chosen = choose_pairs(names, pairs, seed) & np.isnan(there)
    prints = {task.name: task.fingerprint for task in bank}
    units = [
        Unit(
            source,
            {"version": VERSION, "score": score, "mode": mode, "source": prints[source]},
            (models[source],),
            {names[j]: prints[names[j]] for j in np.flatnonzero(chosen[i])},
        )
        for i, source in enumerate(names)
        if source in models and chosen[i].any()
    ]
    rows = {source: json.loads(row) for source, row in work(STAGE, measure_row, units).items()}
    scores = np.array([[_cell(rows.get(source, {}).get(target)) for target in names] for source in names])
    return TransferMatrix(names, np.where(np.isnan(there), scores.reshape(there.shape), there), score)


def _cell(score: float | None) -> float:
    return np.nan if score is None else float(score)


def measure_row(unit: Unit, bank: ReadBank) -> bytes:
    """The scores of one encoder on all its target tasks, their texts encoded in one go."""
    source = bank[unit.name]
    model = open_task_model(source.name, source.labels, bank.vectors.table, unit.inputs[0])
    targets = [bank[name] for name in unit.parts]
    if unit.spec["mode"] == DIRECT:
        targets = [task for task in targets if task.labels == source.labels]
    direct = unit.spec["mode"] == DIRECT
    parts = [tokens for task in targets for tokens in (_needed_train(task, direct=direct), task.valid.tokens)]
    features = np.split(model.encoder.responses(join(parts)), np.cumsum([len(part) for part in parts])[:-1])
    row: dict[str, float | None] = dict.fromkeys(unit.parts)  # a pair that cannot be scored stays without a score
    for at, task in enumerate(targets):
        train, valid = features[2 * at], features[2 * at + 1]
        row[task.name] = _score(model, task, train, valid, score=unit.spec["score"], mode=unit.spec["mode"])
    return json.dumps(row, sort_keys=True).encode()


def _needed_train(task: ReadTask, *, direct: bool) -> Tokens:
    """The train texts, unless the valid ones alone are answered."""
    return task.train.tokens.take([]) if direct and len(task.valid) else task.train.tokens


def _score(model: TaskModel, task: ReadTask, train: Floats, valid: Floats, *, score: str, mode: str) -> float | None:
    """One cell of S, or nothing where the score is not a finite number."""
    classes = len(task.labels)
    if mode == DIRECT:
        held = valid if len(valid) else train
        truth = task.valid.labels if len(valid) else task.train.labels
        found = _judge(model.head.log_chances(held), truth, score)
    elif score == LOGME:
        every = np.concatenate([task.train.labels, task.valid.labels])
        found = log_evidence(np.concatenate([train, valid]), every, classes=classes)
    elif len(valid):
        logs = fit_head(train, task.train.labels, classes=classes).log_chances(valid)
        found = _judge(logs, task.valid.labels, score)
    else:
        found = _judge(_out_of_fold(train, task.train, classes), task.train.labels, score)
    return found if np.isfinite(found) else None


def _out_of_fold(features: Floats, examples: Labelled, classes: int) -> Floats:
    """The log-chances of each label for each example, from heads trained without it: (n, classes)."""
    fold = _folds(examples.labels)
    logs = np.zeros((len(examples), classes))
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            logs[out] = fit_head(features[~out], examples.labels[~out], classes=classes).log_chances(features[out])
    return logs


def _folds(labels: Ints) -> Ints:
    """Each label's examples dealt to the folds in turn."""
    fold = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        fold[rows] = (np.arange(len(rows)) + label) % FOLDS
    return fold


def _judge(logs: Floats, labels: Ints, score: str) -> float:
    if score == ACCURACY:
        return accuracy(logs.argmax(axis=1), labels)
    if score == BALANCED:
        return balanced_accuracy(logs.argmax(axis=1), labels)
    return mean_log_likelihood(logs, labels)
