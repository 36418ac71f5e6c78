"""Metrics and a few-shot problem -> what a regression in their weighted sum answers, and its scores."""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.evaluation.targets import label_numbers
from manymetrics.specialize import Metric
from manymetrics.values import Floats, Ints, Task
from manymetrics.weigh import Assignment, TaskMetric, encoder_weights, fit_head


def score_metrics(metrics: Sequence[Metric], assignment: Assignment | None, problem: Task) -> dict[str, float]:
    """The scores of the head that the package fits: one regression in the sum of cosines that a route weighs."""
    shots = problem.train
    metric = TaskMetric.of(metrics, encoder_weights(metrics, assignment), EmbeddedTexts(shots.texts))
    head = fit_head(metric, shots.numbers, len(problem.labels))
    probabilities = softmax(head.logits(EmbeddedTexts(problem.test.texts)), axis=1)
    return judge(probabilities, label_numbers(problem, problem.test.labels))


def judge(probabilities: Floats, labels: Ints) -> dict[str, float]:
    """Accuracy, balanced accuracy and, where there are two labels, the area under the ROC curve."""
    from sklearn.metrics import recall_score, roc_auc_score

    answers = probabilities.argmax(axis=1)
    recall = recall_score(labels, answers, labels=np.unique(labels), average="macro", zero_division=0)
    scores = {"accuracy": float(np.mean(answers == labels)), "balanced_accuracy": float(recall)}
    if probabilities.shape[1] == 2 and len(set(labels.tolist())) == 2:
        scores["auc"] = float(roc_auc_score(labels, probabilities[:, 1]))
    return scores


def drawn_from(problem: Task) -> str:
    """The task that a problem was drawn from."""
    return problem.name.rpartition(" ")[0]
