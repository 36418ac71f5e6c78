"""Metrics and a few-shot problem -> what they answer, alone or weighed by the problem's shots, and its scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoder import Features
from manymetrics.evaluation.targets import label_numbers
from manymetrics.measure.scores import accuracy, balanced_accuracy
from manymetrics.specialize import Metric
from manymetrics.values import Floats, Ints, Task
from manymetrics.weigh import blend, fit_mix
from manymetrics.weigh.mix import fit_posterior


@dataclass(frozen=True, eq=False)
class Asked:
    """What metrics answer on a problem."""

    left_out: Floats  # (shots, metrics, classes)
    shots: Ints
    texts: Floats  # (texts, metrics, classes)
    answers: Ints

    def alone(self, place: int) -> tuple[Floats, Ints]:
        """What one metric answers on the texts, (texts, classes), and the right answers."""
        return self.texts[:, place], self.answers

    def mixed(self, sizes: Floats, freedom: float, *, shared_labels: bool) -> Floats:
        """The metrics weighed by the shots: (texts, classes)."""
        if shared_labels:
            clusters = np.arange(len(sizes))
            found = fit_posterior(self.left_out, self.shots, prior=sizes, temperature=freedom, clusters=clusters)
        else:
            found = fit_mix(self.left_out, self.shots, prior=sizes, prior_shots=freedom, tolerance=1e-4)
        return blend(found.weights, self.texts)


def ask(metrics: Sequence[Metric], task: Task) -> Asked:
    """Every metric's answers on a problem."""
    shots = task.labelled_train
    features, texts = Features(shots.texts), Features(task.test.texts)
    fitted = [metric.learn(features, shots.labels, task.labels) for metric in metrics]
    return Asked(
        np.stack([one.leave_one_out() for one in fitted], axis=1),
        shots.labels,
        np.stack([one.probabilities(texts) for one in fitted], axis=1),
        label_numbers(task, task.test.labels),
    )


def judge(answered: tuple[Floats, Ints]) -> dict[str, float]:
    """Accuracy, balanced accuracy and, where there are two labels, the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    probabilities, answers = answered
    guesses = probabilities.argmax(axis=1)
    scores = {"accuracy": accuracy(guesses, answers), "balanced_accuracy": balanced_accuracy(guesses, answers)}
    if probabilities.shape[1] == 2 and len(set(answers.tolist())) == 2:
        scores["auc"] = float(roc_auc_score(answers, probabilities[:, 1]))
    return scores


def log_likelihood(probabilities: Floats, answers: Ints) -> float:
    """How likely the right answers are, the mean of logarithms."""
    right = probabilities[np.arange(len(answers)), answers]
    return float(np.log(np.maximum(right, 1e-12)).mean())


def drawn_from(problem: Task) -> str:
    """The task that a problem was drawn from."""
    return problem.name.rpartition(" ")[0]
