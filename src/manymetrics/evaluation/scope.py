"""Does a classifier know when it does not know? Texts in scope and out of scope, with rejection switched on.

Each target is adapted to as in any evaluation, and is then also asked texts that are none of its business: texts of the
bank's other tasks, and gibberish. So are few-shot tasks drawn from those of the bank that the model held out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.few_shot import EVEN
from manymetrics.classifier.trust import make_gibberish
from manymetrics.collect import load_tasks
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Estimate, calibration_error
from manymetrics.evaluation.targets import as_model, as_targets
from manymetrics.model import MetricModel
from manymetrics.values import Bools, Examples, Floats, Task, TaskBank, Texts

SURE = 0.9
FURTHER = 20  # shots of a drawn task beyond one of each label
FEWEST_TESTS = 20  # test texts a task must have to be drawn


def auroc(inside: Floats, outside: Floats) -> float:
    """The probability that a text in scope scores above one out of scope; ties count half."""
    ranked = np.sort(outside)
    below = np.searchsorted(ranked, inside, side="left")
    upto = np.searchsorted(ranked, inside, side="right")
    return float((below + upto).mean() / (2 * len(ranked)))


@dataclass(frozen=True, eq=False)
class ScopeResult:
    """One task, asked texts in scope and out of scope."""

    task: str
    target: bool  # or drawn from a held-out task of the bank
    inside: Floats  # (texts,): the probability of being in scope
    off_topic: Floats  # the same of other tasks' texts
    gibberish: Floats
    right: Bools  # (texts,): answered, and rightly
    kept: Bools  # (texts,): not rejected
    confidences: Floats  # (texts,): of the answers in scope
    answered_right: Bools  # (texts,): the likeliest label is right, rejected or not
    sure: Bools  # (out_of_scope,): the likeliest label has a probability of 0.9 or more, rejected or not
    rejected: Bools  # (out_of_scope,)
    threshold: float  # the probability of being in scope below which texts were rejected

    @property
    def outside(self) -> Floats:
        """Of off-topic texts and gibberish together."""
        return np.concatenate([self.off_topic, self.gibberish])


@dataclass(frozen=True, eq=False)
class ScopeEvaluation:
    """How well several tasks tell what is their business."""

    results: tuple[ScopeResult, ...]
    seed: int
    bank: str  # fingerprint of all tasks that took part

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        targets = [result for result in self.results if result.target]
        return {
            "format": 1,
            "seed": self.seed,
            "bank": self.bank,
            "classifiers": len(self.results),
            "out_of_scope": sum(len(result.sure) for result in self.results),
            "all": _summary(self.results),
            "targets": _summary(targets),
            "calibration_error_of_targets": vars(_pooled_error(targets)),
            "tasks": [{"task": result.task, "target": result.target, **_summary([result])} for result in self.results],
        }


def evaluate_scope(
    model: MetricModel | str | Path,
    targets: TaskBank | str | Path,
    bank: TaskBank | str | Path,
    *,
    reject: float | None = None,
    reject_share: float | None = None,
    draws: int = 10,
    out_of_scope: int = 500,
    seed: int = 0,
) -> ScopeEvaluation:
    """Ask each target, and `draws` few-shot tasks of the bank's held-out ones, so many texts that are `out_of_scope`.

    Half of these are test texts of bank tasks that neither trained nor judged anything, half are gibberish. Texts are
    rejected below the threshold `reject` (0.5, if nothing is said), or below the one that is estimated for each task to
    lose the share `reject_share` of its own texts.
    """
    model, targets, bank = (
        as_model(model),
        as_targets(targets),
        load_tasks(bank) if isinstance(bank, str | Path) else bank,
    )
    if reject is not None and reject_share is not None:
        raise InputError("Found both reject and reject_share. Give one of them.")
    limits = (EVEN if reject is None else reject, reject_share)
    drawn = draw_tasks(bank.only([name for name in model.held_out if name in bank.names]), draws, seed=seed)
    unused = bank.only([name for name in bank.names if name not in {*model.held_out, *targets.names}])
    others = {task.name: task.test.texts for task in unused if len(task.test)}
    if not others:
        raise InputError("No task of the bank has test texts to be used as off-topic ones. Add <task>.test.tsv files.")
    rng = np.random.default_rng(seed)
    tasks = [(task, True) for task in targets] + [(task, task.name in targets.names) for task in drawn]
    results = [_ask(_adapt(model, task, *limits), task, others, out_of_scope, rng=rng, target=target)
               for task, target in tasks]  # fmt: skip
    return ScopeEvaluation(tuple(results), seed, TaskBank((*targets, *(bank[name] for name in others))).fingerprint)


def draw_tasks(bank: TaskBank, count: int, *, seed: int) -> list[Task]:
    """Few-shot tasks in the manner of the targets: one example of each label and twenty further ones."""
    rng = np.random.default_rng(seed)
    able = [task for task in bank if len(task.test) >= FEWEST_TESTS]
    drawn = []
    for place in sorted(rng.permutation(len(able))[:count]):
        task = able[place]
        order = rng.permutation(len(task.train)).tolist()
        first = list({task.train.labels[row]: row for row in reversed(order)}.values())
        rest = [row for row in order if row not in set(first)]
        shots = task.train.take(first + rest[:FURTHER])
        known = [row for row, label in enumerate(task.test.labels) if label in set(shots.labels)]
        drawn.append(Task(task.name, shots, Examples(), task.test.take(known)))
    return drawn


def _adapt(model: MetricModel, task: Task, reject: float, reject_share: float | None) -> FewShotClassifier:
    classifier = model.adapt(task.train.texts, task.train.labels, reject=reject)
    if reject_share is not None:
        classifier.set_params(reject=classifier.scope_threshold(reject_share))
    return classifier


def _ask(classifier: FewShotClassifier, task: Task, others: dict[str, Texts], out_of_scope: int, *,
         rng: np.random.Generator, target: bool) -> ScopeResult:  # fmt: skip
    names = [name for name in others if name != task.name]
    chosen = [others[names[place]] for place in rng.integers(len(names), size=out_of_scope // 2)]
    off_topic = [texts[int(rng.integers(len(texts)))] for texts in chosen]
    nonsense = make_gibberish(out_of_scope - len(off_topic), rng)
    answers = classifier.predict(task.test.texts)
    probabilities = classifier.predict_proba(task.test.texts)
    likeliest = classifier.classes_[probabilities.argmax(axis=1)]
    truth = np.array(task.test.labels)
    strange = off_topic + nonsense
    return ScopeResult(
        task.name,
        target,
        classifier.scope_proba(task.test.texts),
        classifier.scope_proba(off_topic),
        classifier.scope_proba(nonsense),
        np.array([answer == label for answer, label in zip(answers, truth, strict=True)]),
        np.array([answer is not None for answer in answers]),
        probabilities.max(axis=1),
        likeliest == truth,
        classifier.predict_proba(strange).max(axis=1) >= SURE,
        np.array([answer is None for answer in classifier.predict(strange)]),
        float(classifier.reject),
    )


def _summary(results: Sequence[ScopeResult]) -> dict[str, float]:
    """The figures of some tasks, their texts pooled."""
    if not results:
        return {}
    inside = np.concatenate([result.inside for result in results])
    return {
        "auroc": auroc(inside, np.concatenate([result.outside for result in results])),
        "auroc_off_topic": auroc(inside, np.concatenate([result.off_topic for result in results])),
        "auroc_gibberish": auroc(inside, np.concatenate([result.gibberish for result in results])),
        "in_scope_accuracy": float(np.concatenate([result.right for result in results]).mean()),
        "accuracy_without_rejection": float(np.concatenate([result.answered_right for result in results]).mean()),
        "in_scope_kept": float(np.concatenate([result.kept for result in results]).mean()),
        "out_of_scope_recall": float(np.concatenate([result.rejected for result in results]).mean()),
        "threshold": float(np.mean([result.threshold for result in results])),
        "out_of_scope_answered_surely": float(np.concatenate([result.sure for result in results]).mean()),
    }


def _pooled_error(results: Sequence[ScopeResult]) -> Estimate:
    right = np.concatenate([result.answered_right for result in results])
    return calibration_error(np.concatenate([result.confidences for result in results]), right)
