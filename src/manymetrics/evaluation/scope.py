"""How well classifiers reject texts that are out of scope.

Each target is adapted to as in any evaluation, and then also gets texts that are out of its scope: texts of other tasks
of the bank, and gibberish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.few_shot import DEFAULT_THRESHOLD
from manymetrics.classifier.learn_scope import make_gibberish
from manymetrics.collect import load_tasks
from manymetrics.engine import Progress
from manymetrics.engine.progress import each_with_progress, shown
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import calibration_error
from manymetrics.evaluation.targets import as_model, as_targets
from manymetrics.model import MetricModel
from manymetrics.values import Bools, Floats, Ints, Task, TaskBank

INSIDE, OFF_TOPIC, GIBBERISH = range(3)  # kinds of texts
CONFIDENT = 0.9  # probability


@dataclass(frozen=True, eq=False)
class ScopeResult:
    """The answers of one task to texts in scope and out of scope."""

    task: str
    kinds: Ints  # (texts,): INSIDE, OFF_TOPIC or GIBBERISH
    scope: Floats  # (texts,): probability of being in scope
    confidences: Floats  # (texts,): largest probability
    right: Bools  # (texts,): the most probable label is correct, rejected or not
    rejected: Bools  # (texts,)
    threshold: float  # of the probability of being in scope, below which texts are rejected


@dataclass(frozen=True, eq=False)
class ScopeEvaluation:
    """How well the classifiers of several tasks recognize texts out of scope."""

    results: tuple[ScopeResult, ...]
    seed: int
    bank: str  # fingerprint of all tasks that took part

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        kinds, confidences, right = (_pooled(self.results, field) for field in ("kinds", "confidences", "right"))
        error = calibration_error(confidences[kinds == INSIDE], right[kinds == INSIDE])
        return {
            "format": 1,
            "seed": self.seed,
            "bank": self.bank,
            "out_of_scope": int((kinds != INSIDE).sum()),
            "targets": _summary(self.results),
            "calibration_error_of_targets": vars(error),
            "tasks": [{"task": result.task, **_summary([result])} for result in self.results],
        }


def evaluate_scope(
    model: MetricModel | str | Path,
    targets: TaskBank | str | Path,
    bank: TaskBank | str | Path,
    *,
    reject: float | None = None,
    reject_share: float | None = None,
    out_of_scope: int = 500,
    seed: int = 0,
    report: Callable[[Progress], None] | None = None,
) -> ScopeEvaluation:
    """Score the rejection of texts out of scope by each target.

    Half of the `out_of_scope` texts are test texts of bank tasks that are neither held out nor targets, half are
    gibberish. Texts are rejected below the threshold `reject` (default 0.5), or below the threshold estimated for each
    task to lose the share `reject_share` of its own texts. Progress is passed to `report`.
    """
    model, targets = as_model(model), as_targets(targets)
    bank = load_tasks(bank) if isinstance(bank, str | Path) else bank
    if reject is not None and reject_share is not None:
        raise InputError("Found both reject and reject_share. Give one of them.")
    excluded = {*model.held_out, *targets.names}
    others = {task.name: task.test.texts for task in bank if task.name not in excluded and len(task.test)}
    if not others:
        raise InputError("No task of the bank has test texts to be used as off-topic ones. Add <task>.test.tsv files.")
    rng = np.random.default_rng(seed)
    threshold = DEFAULT_THRESHOLD if reject is None else reject
    results = []
    with shown(report) as on_progress:
        for task in each_with_progress("scope", targets.tasks, on_progress, name=lambda task: task.name):
            classifier = model.adapt(task.train.texts, task.train.labels, reject=threshold)
            if reject_share is not None:
                classifier.set_params(reject=classifier.scope_threshold(reject_share))
            off_topic = _draw_off_topic([*others.values()], out_of_scope // 2, rng)
            gibberish = make_gibberish(out_of_scope - len(off_topic), rng)
            results.append(_classify(classifier, task, off_topic, gibberish))
    return ScopeEvaluation(tuple(results), seed, TaskBank((*targets, *(bank[name] for name in others))).fingerprint)


def _draw_off_topic(others: Sequence[Sequence[str]], count: int, rng: np.random.Generator) -> list[str]:
    """Texts of random other tasks."""
    chosen = [others[index] for index in rng.integers(len(others), size=count)]
    return [texts[int(rng.integers(len(texts)))] for texts in chosen]


def _classify(classifier: FewShotClassifier, task: Task, off_topic: list[str], gibberish: list[str]) -> ScopeResult:
    kinds = np.repeat([INSIDE, OFF_TOPIC, GIBBERISH], [len(task.test), len(off_topic), len(gibberish)])
    answers = classifier.answer([*task.test.texts, *off_topic, *gibberish])
    right = np.zeros(len(kinds), dtype=np.bool_)
    right[kinds == INSIDE] = classifier.classes_[answers.most_probable[kinds == INSIDE]] == np.array(task.test.labels)
    confidences = answers.probabilities.max(axis=1)
    threshold = float(classifier.reject)
    return ScopeResult(task.name, kinds, answers.scope, confidences, right, answers.rejected, threshold)


def _pooled(results: Sequence[ScopeResult], field: str) -> Any:
    """An array of all tasks together."""
    return np.concatenate([getattr(result, field) for result in results])


def _summary(results: Sequence[ScopeResult]) -> dict[str, float]:
    """The scores of some tasks, with their texts pooled."""
    from sklearn.metrics import roc_auc_score  # slow to import

    fields = ("kinds", "scope", "confidences", "right", "rejected")
    kinds, scope, confidences, right, rejected = (_pooled(results, field) for field in fields)
    inside = kinds == INSIDE

    def auroc(*outside: int) -> float:
        used = np.isin(kinds, (INSIDE, *outside))
        return float(roc_auc_score(inside[used], scope[used]))

    return {
        "auroc": auroc(OFF_TOPIC, GIBBERISH),
        "auroc_off_topic": auroc(OFF_TOPIC),
        "auroc_gibberish": auroc(GIBBERISH),
        "in_scope_accuracy": float((right & ~rejected)[inside].mean()),
        "accuracy_without_rejection": float(right[inside].mean()),
        "in_scope_kept": float(1 - rejected[inside].mean()),
        "out_of_scope_recall": float(rejected[~inside].mean()),
        "threshold": float(np.mean([result.threshold for result in results])),
        "out_of_scope_answered_surely": float((confidences[~inside] >= CONFIDENT).mean()),
    }
