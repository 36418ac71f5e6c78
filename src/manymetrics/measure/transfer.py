"""Task models -> S: how well what was learned on one task serves another.

Paper: section 3.1.1. Names here and there:
    transfer.scores[i, j]   s_ij    the score on task j of a head trained on the frozen encoder of task i

*accuracy*: a logistic regression on frozen features, trained on task j's train examples and scored on its valid ones
(five-fold over train where there are none). *logme*: the evidence of the same features, no head trained. *log-loss*:
the whole model of task i answers task j's valid examples as it is, possible only where both have the same labels. A
pair that was not measured stays NaN.

A unit is a row of S and its parts are the cells: the texts of all targets are encoded in one go, and when a task is
added or changed, only its own row and its own cell of each other row are measured.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import RecipeError
from manymetrics.measure.heads import fit_head
from manymetrics.measure.models import TaskModel, open_task_model
from manymetrics.measure.scores import LOG_LOSS, LOGME, SCORES, accuracy, log_evidence, mean_log_likelihood
from manymetrics.values import (
    Bools,
    Floats,
    Ints,
    LabelledTexts,
    Material,
    Task,
    TaskBank,
    Texts,
    TransferMatrix,
    Unit,
    Work,
)

STAGE = "measure-transfer"
AUTO = "auto"
FOLDS = 5
NEEDED = 0.75  # tasks known to be like a task, as a multiple of log n
ALL_PAIRS_UP_TO = 500  # tasks; above, a random sample of pairs is measured


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


def choose_score(bank: TaskBank, score: str) -> str:
    """What `auto` stands for: where tasks share their labels, the likelihood of one task's model on another's answers.

    A new head can make up for another meaning of the same labels, and so hides what tells such tasks apart. Where
    labels differ only features can be judged, and their evidence is both the cheapest and the most telling score.
    """
    if score == AUTO:
        return LOGME if bank.shared_labels is None else LOG_LOSS
    if score not in SCORES:
        raise RecipeError(f"There is no score {score!r}. Choose one of {', '.join([AUTO, *SCORES])}.")
    return score


def measure_transfer(models: Mapping[str, bytes], material: Material, work: Work, *, words: WordVectors,
                     score: str = AUTO, pairs: int | None = None, seed: int = 0,
                     before: TransferMatrix | None = None) -> TransferMatrix:  # fmt: skip
    """*S* for the chosen pairs of tasks; rows of tasks without a model, and pairs not chosen, stay NaN.

    `words` are the vectors that the models were trained on. What was measured `before`, of the same tasks, is taken
    over and not measured again.
    """
    score, names = choose_score(material.bank, score), material.bank.names
    there = np.full((len(names), len(names)), np.nan) if before is None else before.scores
    chosen = choose_pairs(names, pairs, seed) & np.isnan(there)
    prints = {task.name: task.fingerprint for task in material.bank}
    units = [
        Unit(
            source,
            {"score": score, "source": prints[source], "words": words.fingerprint},
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


def measure_row(unit: Unit, material: Material) -> bytes:
    """The scores of one encoder on all its target tasks, their texts encoded in one go."""
    bank, score = material.bank, unit.spec["score"]
    model = open_task_model(bank[unit.name], material.encoders[unit.spec["words"]], unit.inputs[0])
    targets = [bank[name] for name in unit.parts]
    if score == LOG_LOSS:
        targets = [task for task in targets if task.labels == model.labels]
    parts = [texts for task in targets for texts in (_needed_train(task, score), task.valid.texts)]
    features = np.split(model.encoder.encode(Texts.join(parts)), np.cumsum([len(part) for part in parts])[:-1])
    row: dict[str, float | None] = dict.fromkeys(unit.parts)  # a pair that cannot be scored stays without a score
    for at, task in enumerate(targets):
        found = _score(model, task, features[2 * at], features[2 * at + 1], score=score)
        row[task.name] = found if np.isfinite(found) else None
    return json.dumps(row, sort_keys=True).encode()


def _needed_train(task: Task, score: str) -> Texts:
    """The train texts, unless the valid ones alone are answered."""
    return Texts() if score == LOG_LOSS and len(task.valid) else task.train.texts


def _score(model: TaskModel, task: Task, train: Floats, valid: Floats, *, score: str) -> float:
    """One cell of S, from the features of the task's texts."""
    examples, held_out, classes = task.labelled_train, task.labelled_valid, len(task.labels)
    if score == LOG_LOSS:
        rows, truth = (valid, held_out.labels) if len(valid) else (train, examples.labels)
        return mean_log_likelihood(model.head.log_probabilities(rows), truth)
    if score == LOGME:
        every = np.concatenate([examples.labels, held_out.labels])
        return log_evidence(np.concatenate([train, valid]), every, classes=classes)
    if len(valid):
        head = fit_head(train, examples.labels, classes=classes)
        return accuracy(head.probabilities(valid).argmax(axis=1), held_out.labels)
    return accuracy(_out_of_fold(train, examples, classes), examples.labels)


def _out_of_fold(features: Floats, examples: LabelledTexts, classes: int) -> Ints:
    """The likeliest label of each example, from heads trained without it: (n,)."""
    fold = _folds(examples.labels)
    answers = np.zeros(len(examples), dtype=np.int64)
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            head = fit_head(features[~out], examples.labels[~out], classes=classes)
            answers[out] = head.probabilities(features[out]).argmax(axis=1)
    return answers


def _folds(labels: Ints) -> Ints:
    """Each label's examples dealt to the folds in turn."""
    fold = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        fold[rows] = (np.arange(len(rows)) + label) % FOLDS
    return fold
