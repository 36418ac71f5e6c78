"""The paper's representation: a convolution network over fixed word vectors. Training needs torch.

Paper: sections 2 and 3. A single task, or tasks that share their labels, train a softmax classifier over these; other
clusters train on episodes by one of two objectives, *matching* (eqn:mnet_obj) or *prototypical* (eqn:base_protonet).

*s_ij* is a score of the frozen features of task i on task j: `accuracy` of a logistic regression trained on task j's
train examples, on its valid ones (five-fold over train where there are none); `logme`, the evidence of the same
features, no head trained; or `log-loss`, the likelihood of task j's valid examples under the model of task i as it is,
possible only where both have the same labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.representation import Fitted, Phases, Representation
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL, Convolution, Training
from manymetrics.encode.vectors import WordVectors, random_vectors
from manymetrics.episodes import groups_by_label, hold_out_texts, validation_episode
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.measure.heads import Head, fit_head
from manymetrics.measure.scores import ACCURACY, LOG_LOSS, LOGME, SCORES, accuracy, log_evidence, mean_log_likelihood
from manymetrics.values import Episode, Examples, Floats, Ints, Task, TaskBank

AUTO = "auto"
SHARED_LABEL = "shared-label"
OBJECTIVES = (AUTO, MATCHING, PROTOTYPICAL, SHARED_LABEL)
STOP_QUERIES = 200  # texts of a task to answer, in the episodes that training stops on
STOP_SHARE = 0.2  # of the train texts of a task without valid ones, that training stops on
FOLDS = 5


@dataclass(frozen=True, eq=False)
class ConvolutionRepresentation(Representation, kind="convolution"):
    """A convolution network, trained as a classifier over shared labels or on episodes."""

    base: WordVectors
    convolution: Convolution
    training: Training
    objective: str = SHARED_LABEL
    score_name: str = ACCURACY

    @property
    def rule(self) -> str:
        """The objective of episodes is the rule of the metric."""
        return self.objective

    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train; without validation episodes training stops on held-out texts of the tasks themselves."""
        if self.objective == SHARED_LABEL:
            return self._fit_classifier(tasks, validation, rng)
        return self._fit_episodes(tasks, validation, rng)

    def _fit_classifier(self, tasks: Sequence[Task], validation: Sequence[Episode],
                        rng: np.random.Generator) -> Fitted:  # fmt: skip
        from manymetrics.encode.fitting import fit_classifier

        if validation:
            train = [part for task in tasks for part in (task.train, task.valid)]
            stop_on = [episode.query if len(episode.query) else episode.support for episode in validation]
        else:
            parts = [training_parts(task, rng) for task in tasks]
            train, stop_on = [part for part, _ in parts], [part for _, part in parts]
        network = fit_classifier(self.base, train, stop_on, convolution=self.convolution, training=self.training,
                                 rng=rng)  # fmt: skip
        tensors = {"filters": network.encoder.filters, "bias": network.encoder.bias}
        tensors |= {"head": network.weights, "offset": network.offset, "prior": label_shares(tasks)}
        return Fitted(tensors, n_steps=network.n_steps, validation_loss=network.loss, classes=tasks[0].labels)

    def _fit_episodes(self, tasks: Sequence[Task], validation: Sequence[Episode], rng: np.random.Generator) -> Fitted:
        from manymetrics.encode.fitting import fit_episodes

        train = [task.train for task in tasks if len(groups_by_label(task.train.numbers)) > 1]
        if not train:
            raise NotEnoughExamples(
                f"None of the tasks {', '.join(task.name for task in tasks)} has two labels with two train examples "
                "each, so no episode can be drawn from them. Add examples, or leave these tasks out of the bank."
            )
        if not validation:
            drawn = [self.episode(task, seed=int(rng.integers(2**31))) for task in tasks]
            validation = [episode for episode in drawn if episode is not None]
        network = fit_episodes(self.base, train, validation, rule=self.objective, convolution=self.convolution,
                               training=self.training, rng=rng)  # fmt: skip
        tensors = {"filters": network.encoder.filters, "bias": network.encoder.bias}
        return Fitted(tensors, network.temperature, network.n_steps, network.loss)

    def score(self, fitted: Fitted, episode: Episode) -> float | None:
        """The score of the features on an episode of all train and valid examples."""
        if self.score_name == LOG_LOSS and episode.classes != fitted.classes:
            return None
        encoder, train, valid = self.encoder(fitted), episode.support, episode.query
        if self.score_name == LOG_LOSS:
            asked = valid if len(valid) else train
            head = Head(fitted.tensors["head"], fitted.tensors["offset"])
            score = mean_log_likelihood(head.log_probabilities(encoder.encode(asked.texts)), asked.numbers)
        else:
            rows = encoder.encode(train.texts + valid.texts)
            score = _score_features(rows, train, valid, self.score_name)
        return score if np.isfinite(score) else None

    def encoder(self, fitted: Fitted) -> ConvolutionEncoder:
        """The trained filters over the word vectors."""
        return ConvolutionEncoder(self.base, fitted.tensors["filters"], fitted.tensors["bias"])

    def episode(self, task: Task, *, seed: int) -> Episode | None:
        """All train and all valid examples of a task, or a few-shot episode where training is on episodes."""
        if self.objective != SHARED_LABEL:
            return validation_episode(task, shots=self.training.shots, queries=STOP_QUERIES, seed=seed)
        return Episode(task.name, task.train, task.valid, task.label_names)

    def spec(self) -> dict[str, Any]:
        """As JSON."""
        how = {"kind": self.kind, "objective": self.objective, "score": self.score_name}
        sizes = {"convolution": asdict(self.convolution), "training": asdict(self.training)}
        return {"encoder": self.base.fingerprint, "representation": how, **sizes}

    @classmethod
    def from_spec(cls, base: Encoder, spec: Mapping[str, Any]) -> "ConvolutionRepresentation":
        """The representation that `spec` described."""
        how, convolution, training = spec["representation"], spec["convolution"], spec["training"]
        return cls(base, Convolution(**convolution), Training(**training), how["objective"], how.get("score", LOG_LOSS))  # type: ignore[arg-type]

    @classmethod
    def phases(cls, base: Encoder, settings: Mapping[str, Any], bank: TaskBank) -> Phases:
        """A classifier for each task, and for each cluster a network trained by the objective; nothing is shared."""
        rate = {"learning_rate": settings["learning_rate"], "batch": settings["batch"]}
        shape = Convolution(settings["window"], settings["width"])
        wide = replace(shape, dropout=settings["metric_dropout"], word_dropout=settings["word_dropout"])
        objective = choose_objective(bank, settings["objective"])
        n_steps = settings["classifier_steps" if objective == SHARED_LABEL else "metric_steps"]
        episodes = {"ways": settings["ways"], "shots": settings["shots"]}
        single = Training(settings["task_steps"], _check_every(settings["task_steps"]), **rate)
        cluster = Training(n_steps, _check_every(n_steps), **rate, **episodes)
        score = choose_score(bank, settings["score"])
        return Phases(
            cls(base, shape, single, SHARED_LABEL, score),  # type: ignore[arg-type]
            None,
            cls(base, wide, cluster, objective, score),  # type: ignore[arg-type]
        )

    @staticmethod
    def prepare_worker() -> None:
        """Load torch and take a step."""
        _train_once()


@cache
def _train_once() -> None:
    from manymetrics.encode.fitting import fit_classifier

    two = Examples(("a", "b"), ("a", "b"))
    fit_classifier(random_vectors(rows=4, dimensions=2), [two], [two], convolution=Convolution(width=1),
                   training=Training(steps=1), rng=np.random.default_rng(0))  # fmt: skip


def _check_every(n_steps: int) -> int:
    """Steps between two evaluations: thirty evaluations at most, so that longer training is more patient."""
    return max(20, n_steps // 30)


def training_parts(task: Task, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """What to train on, and what to stop on: the valid examples, or a fifth of the train ones."""
    if len(task.valid):
        return task.train, task.valid
    return hold_out_texts(task.train, STOP_SHARE, rng)


def label_shares(tasks: Sequence[Task]) -> Floats:
    """How common each label is, every task counting the same: (labels,); none is 0."""
    n_classes = len(tasks[0].labels)
    counts = np.stack([np.bincount(task.train.numbers, minlength=n_classes) + 1 for task in tasks])
    return (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]


def choose_score(bank: TaskBank, score: str) -> str:
    """What `auto` stands for: where tasks share their labels, the likelihood of one task's model on another's answers.

    A new head can make up for another meaning of the same labels, and so hides how such tasks differ. Where labels
    differ only features can be scored, and their evidence is the cheapest score and separates tasks best.
    """
    if score == AUTO:
        return LOGME if bank.shared_labels is None else LOG_LOSS
    if score not in SCORES:
        raise RecipeError(f"There is no score {score!r}. Choose one of {', '.join([AUTO, *SCORES])}.")
    return score


def choose_objective(bank: TaskBank, objective: str) -> str:
    """What `auto` stands for, and whether an objective can be used."""
    if objective not in OBJECTIVES:
        raise RecipeError(f"There is no objective {objective!r}. Choose one of {', '.join(OBJECTIVES)}.")
    if objective == AUTO:
        return MATCHING if bank.shared_labels is None else SHARED_LABEL
    if objective == SHARED_LABEL and bank.shared_labels is None:
        raise RecipeError(
            "The objective 'shared-label' needs tasks that all have the same labels, and these do not. "
            "Choose 'prototypical' or 'matching'."
        )
    return objective


def _score_features(rows: Floats, train: Examples, valid: Examples, score: str) -> float:
    """LogME or accuracy; rows (train + valid, width)."""
    n_classes = len(train.classes)
    if score == LOGME:
        return log_evidence(rows, np.concatenate([train.numbers, valid.numbers]), classes=n_classes)
    known, asked = rows[: len(train)], rows[len(train) :]
    if len(valid):
        head = fit_head(known, train.numbers, classes=n_classes)
        return accuracy(head.probabilities(asked).argmax(axis=1), valid.numbers)
    return accuracy(_out_of_fold(known, train.numbers, n_classes), train.numbers)


def _out_of_fold(features: Floats, labels: Ints, n_classes: int) -> Ints:
    """The most probable label of each example, from heads trained without it: (n,)."""
    fold = _folds(labels)
    answers = np.zeros(len(labels), dtype=np.int64)
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            head = fit_head(features[~out], labels[~out], classes=n_classes)
            answers[out] = head.probabilities(features[out]).argmax(axis=1)
    return answers


def _folds(labels: Ints) -> Ints:
    """Each label's examples distributed over the folds in turn."""
    fold = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        fold[rows] = (np.arange(len(rows)) + label) % FOLDS
    return fold
