"""How well classifiers reject texts that are out of scope.

Texts of the tasks that are most similar to a target are scored apart: they can well belong to one of its labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.few_shot import DEFAULT_THRESHOLD
from manymetrics.classifier.learn_scope import make_gibberish
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import centroid_of
from manymetrics.engine import Progress
from manymetrics.engine.progress import each_with_progress, shown
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import calibration_error
from manymetrics.evaluation.targets import load_both
from manymetrics.model import MetricModel
from manymetrics.values import Bools, Floats, Ints, Task, TaskBank

INSIDE, OFF_TOPIC, GIBBERISH, SIMILAR = range(4)  # kinds of texts
N_SIMILAR = 3  # tasks of the bank that are most similar to a target
N_CENTROID = 50  # texts of a task that it is compared by, at most
CONFIDENT = 0.9  # probability


@dataclass(frozen=True, eq=False)
class ScopeResult:
    """The answers to texts in scope and out of scope, of one task or of several."""

    kinds: Ints  # (texts,): INSIDE, OFF_TOPIC, GIBBERISH or SIMILAR
    scope: Floats  # (texts,): probability of being in scope
    confidences: Floats  # (texts,): largest probability
    right: Bools  # (texts,): the most probable label is correct, rejected or not
    rejected: Bools  # (texts,)
    thresholds: Floats  # (tasks,): of the probability of being in scope, below which texts are rejected

    @classmethod
    def join(cls, results: "Sequence[ScopeResult]") -> "ScopeResult":
        """The answers of several tasks together."""
        return cls(*(np.concatenate([getattr(result, field.name) for result in results]) for field in fields(cls)))

    @property
    def inside(self) -> Bools:
        """Whether each text is in scope: (texts,)."""
        return self.kinds == INSIDE  # type: ignore[no-any-return]

    def auroc(self, *outside: int) -> float:
        """The probability that a text in scope has a higher scope than one of these kinds."""
        from sklearn.metrics import roc_auc_score  # slow to import

        used = np.isin(self.kinds, (INSIDE, *outside))
        return float(roc_auc_score(self.inside[used], self.scope[used]))

    def as_dict(self) -> dict[str, float]:
        """The scores, to be written as JSON."""
        inside, right, rejected = self.inside, self.right, self.rejected
        outside = np.isin(self.kinds, (OFF_TOPIC, GIBBERISH))
        return {
            "auroc": self.auroc(OFF_TOPIC, GIBBERISH),
            "auroc_off_topic": self.auroc(OFF_TOPIC),
            "auroc_gibberish": self.auroc(GIBBERISH),
            "auroc_similar_tasks": self.auroc(SIMILAR),
            "in_scope_accuracy": float((right & ~rejected)[inside].mean()),
            "accuracy_without_rejection": float(right[inside].mean()),
            "in_scope_kept": float(1 - rejected[inside].mean()),
            "out_of_scope_recall": float(rejected[outside].mean()),
            "threshold": float(self.thresholds.mean()),
            "out_of_scope_answered_surely": float((self.confidences[outside] >= CONFIDENT).mean()),
        }


@dataclass(frozen=True, eq=False)
class ScopeEvaluation:
    """How well the classifiers of several tasks recognize texts out of scope."""

    results: dict[str, ScopeResult]  # by task
    seed: int
    bank: str  # fingerprint of all tasks that took part

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        joint = ScopeResult.join([*self.results.values()])
        error = calibration_error(joint.confidences[joint.inside], joint.right[joint.inside])
        return {
            "format": 1,
            "seed": self.seed,
            "bank": self.bank,
            "out_of_scope": int(np.isin(joint.kinds, (OFF_TOPIC, GIBBERISH)).sum()),
            "targets": joint.as_dict(),
            "calibration_error_of_targets": vars(error),
            "tasks": [{"task": task, **result.as_dict()} for task, result in self.results.items()],
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
    gibberish. As many as the first half are texts of the three bank tasks whose texts are most similar to the target's
    examples; they are scored apart. Texts are rejected below the threshold `reject` (default 0.5), or below the
    threshold estimated for each task to lose the share `reject_share` of its own texts. Progress is passed to `report`.
    """
    model, targets = load_both(model, targets)
    bank = load_tasks(bank) if isinstance(bank, str | Path) else bank
    if reject is not None and reject_share is not None:
        raise InputError("Found both reject and reject_share. Give one of them.")
    others = [task for task in bank if task.name not in {*model.held_out, *targets.names} and len(task.test)]
    if not others:
        raise InputError("No task of the bank has test texts to be used as off-topic ones. Add <task>.test.tsv files.")
    rng, rng_similar = np.random.default_rng(seed), np.random.default_rng([seed, SIMILAR])
    base = model.predictor.base
    centroids = np.stack([centroid_of(base, task.test.texts[:N_CENTROID]) for task in others])
    results = {}
    with shown(report) as on_progress:
        for task in each_with_progress("scope", targets.tasks, on_progress, name=lambda task: task.name):
            threshold = DEFAULT_THRESHOLD if reject is None else reject
            classifier = model.adapt(task.train.texts, task.train.labels, reject=threshold)
            if reject_share is not None:
                classifier.set_params(reject=classifier.scope_threshold(reject_share))
            off_topic = _draw_off_topic(others, out_of_scope // 2, rng)
            gibberish = make_gibberish(out_of_scope - len(off_topic), rng)
            similarity = centroids @ centroid_of(base, task.train.texts[:N_CENTROID])  # (others,)
            closest = [others[index] for index in np.argsort(-similarity, kind="stable")[:N_SIMILAR]]
            similar = _draw_off_topic(closest, out_of_scope // 2, rng_similar)
            results[task.name] = _classify(classifier, task, off_topic, gibberish, similar)
    return ScopeEvaluation(results, seed, TaskBank((*targets, *others)).fingerprint)


def _draw_off_topic(others: Sequence[Task], count: int, rng: np.random.Generator) -> list[str]:
    chosen = [others[index].test.texts for index in rng.integers(len(others), size=count)]
    return [texts[int(rng.integers(len(texts)))] for texts in chosen]


def _classify(classifier: FewShotClassifier, task: Task, *others: list[str]) -> ScopeResult:
    """The answers to the texts of a task, and to texts off topic, gibberish and texts of similar tasks."""
    kinds = np.repeat([INSIDE, OFF_TOPIC, GIBBERISH, SIMILAR], [len(task.test), *map(len, others)])
    answers = classifier.answer([*task.test.texts, *(text for texts in others for text in texts)])
    right = np.zeros(len(kinds), dtype=np.bool_)
    right[kinds == INSIDE] = classifier.classes_[answers.most_probable[kinds == INSIDE]] == np.array(task.test.labels)
    confidences, threshold = answers.probabilities.max(axis=1), np.array([float(classifier.reject)])
    return ScopeResult(kinds, answers.scope, confidences, right, answers.rejected, threshold)
