"""The paper's representation: a convolution network over fixed word vectors. Training needs torch.

Paper: sections 2 and 3. A single task, or tasks that share their labels, train a softmax classifier over these; other
clusters train on episodes by one of two objectives, *matching* (eqn:mnet_obj) or *prototypical* (eqn:base_protonet).

*s_ij* is the accuracy on task j's valid examples of a logistic regression on the features of task i, trained on task
j's train examples (five-fold over train where there are no valid ones).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.representation import Fitted, Phases, Representation, label_shares
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL, Convolution, Training
from manymetrics.encode.vectors import WordVectors, random_vectors
from manymetrics.episodes import groups_by_label, hold_out_texts, validation_episode
from manymetrics.errors import NotEnoughExamples
from manymetrics.measure.heads import fit_head
from manymetrics.values import Episode, Examples, Floats, Ints, Task, TaskBank

AUTO, SHARED_LABEL = "auto", "shared-label"
OBJECTIVES = (AUTO, MATCHING, PROTOTYPICAL)
DROPOUT = 0.2  # share of the features hidden in each training step of a cluster's network
STOP_QUERIES = 200  # texts of a task to answer, in the episodes that training stops on
STOP_SHARE = 0.2  # of the train texts of a task without valid ones, that training stops on
FOLDS = 5


@dataclass(frozen=True, eq=False)
class ConvolutionRepresentation(Representation, kind="convolution"):
    """A convolution network, trained as a classifier over shared labels or on episodes."""

    score_name = "accuracy"
    base: WordVectors
    convolution: Convolution
    training: Training
    objective: str = SHARED_LABEL

    @property
    def rule(self) -> str:
        """The objective of episodes is the rule of the metric."""
        return self.objective

    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train; without validation episodes training stops on held-out texts of the tasks themselves."""
        from manymetrics.encode.training.convolution import fit_classifier, fit_episodes

        if self.objective == SHARED_LABEL:
            if validation:
                parts = [part for task in tasks for part in (task.train, task.valid)]
                stop_on = [episode.query if len(episode.query) else episode.support for episode in validation]
            else:
                parts, stop_on = map(list, zip(*(training_parts(task, rng) for task in tasks), strict=True))
            fitted = fit_classifier(self.base, parts, stop_on, convolution=self.convolution, training=self.training,
                                    rng=rng)  # fmt: skip
            return replace(fitted, tensors={**fitted.tensors, "prior": label_shares(tasks)})
        train = [task.train for task in tasks if len(groups_by_label(task.train.numbers)) > 1]
        if not train:
            raise NotEnoughExamples(
                f"None of the tasks {', '.join(task.name for task in tasks)} has two labels with two train examples "
                "each, so no episode can be drawn from them. Add examples, or leave these tasks out of the bank."
            )
        if not validation:
            drawn = (self.episode(task, seed=int(rng.integers(2**31))) for task in tasks)
            validation = [episode for episode in drawn if episode is not None]
        return fit_episodes(self.base, train, validation, rule=self.objective, convolution=self.convolution,
                            training=self.training, rng=rng)  # fmt: skip

    def score(self, fitted: Fitted, episode: Episode) -> float:
        """The accuracy of a new head on an episode of all train and valid examples."""
        train, valid = episode.support, episode.query
        rows = self.encoder(fitted).encode(train.texts + valid.texts)
        known, asked = rows[: len(train)], rows[len(train) :]
        if not len(valid):
            return float(np.mean(_answer_out_of_fold(known, train.numbers, len(train.classes)) == train.numbers))
        head = fit_head(known, train.numbers, classes=len(train.classes))
        return float(np.mean(head.probabilities(asked).argmax(axis=1) == valid.numbers))

    def encoder(self, fitted: Fitted) -> ConvolutionEncoder:
        """The trained filters over the word vectors."""
        return ConvolutionEncoder(self.base, fitted.tensors["filters"], fitted.tensors["bias"])

    def episode(self, task: Task, *, seed: int) -> Episode | None:
        """All train and all valid examples of a task, or a few-shot episode where training is on episodes."""
        if self.objective != SHARED_LABEL:
            return validation_episode(task, shots=self.training.shots, queries=STOP_QUERIES, seed=seed)
        return Episode(task.name, task.train, task.valid, task.label_names)

    @classmethod
    def phases(cls, base: Encoder, settings: Mapping[str, Any], bank: TaskBank) -> Phases:
        """A classifier for each task, and for each cluster a network trained by the objective; nothing is shared."""
        shape, rate = Convolution(settings["window"], settings["width"]), settings["learning_rate"]
        objective, n_task = settings["objective"], settings["task_steps"]
        if objective == AUTO:
            objective = MATCHING if bank.shared_labels is None else SHARED_LABEL
        n_cluster = settings["classifier_steps" if objective == SHARED_LABEL else "metric_steps"]
        single = Training(n_task, check_every(n_task), learning_rate=rate)
        cluster = Training(n_cluster, check_every(n_cluster), learning_rate=rate, shots=settings["shots"])
        return Phases(
            cls(base, shape, single),  # type: ignore[arg-type]
            None,
            cls(base, replace(shape, dropout=DROPOUT), cluster, objective),  # type: ignore[arg-type]
        )

    @staticmethod
    @cache
    def prepare_worker() -> None:
        """Load torch and take a step."""
        from manymetrics.encode.training.convolution import fit_classifier

        two = Examples(("a", "b"), ("a", "b"))
        fit_classifier(random_vectors(rows=4, dimensions=2), [two], [two], convolution=Convolution(width=1),
                       training=Training(steps=1), rng=np.random.default_rng(0))  # fmt: skip


def check_every(n_steps: int) -> int:
    """Steps between two evaluations: thirty evaluations at most, so that longer training is more patient."""
    return max(20, n_steps // 30)


def training_parts(task: Task, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """What to train on, and what to stop on: the valid examples, or a fifth of the train ones."""
    if len(task.valid):
        return task.train, task.valid
    return hold_out_texts(task.train, STOP_SHARE, rng)


def _answer_out_of_fold(features: Floats, labels: Ints, n_classes: int) -> Ints:
    """The most probable label of each example, from heads trained without it: (n,)."""
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % FOLDS  # the examples of a label in turn
    answers = np.zeros(len(labels), dtype=np.int64)
    for number in np.unique(fold):
        out = fold == number
        head = fit_head(features[~out], labels[~out], classes=n_classes)
        answers[out] = head.probabilities(features[out]).argmax(axis=1)
    return answers
