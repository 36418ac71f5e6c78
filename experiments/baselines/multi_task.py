"""Methods that learn one thing from the whole bank, without clusters.

train_together, fine_tuned   baseline (3) of the paper: one network for all tasks, a softmax for each; for a target, a
                             softmax fine-tuned on the shots
single_task_metrics          baseline (6): every single-task model a metric, to be mixed (`experiments.convex`)
pooled_tfidf                 TF-IDF and logistic regression over all texts of the bank, where its tasks share labels
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from safetensors.numpy import load

from experiments.baselines.single_task import WORDS
from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import PROTOTYPICAL, Convolution
from manymetrics.evaluation.baselines import SINGLE_METRIC_WIDTH, likeliest
from manymetrics.evaluation.targets import Method
from manymetrics.measure import open_task_model, train_task_models
from manymetrics.measure.heads import Head
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.metric import LEARNED
from manymetrics.specialize.training import label_shares
from manymetrics.start import Learning
from manymetrics.values import Floats, Task, TaskBank, Unit, Work
from manymetrics.weigh.fallback import FEW_EXAMPLES

STAGE = "baseline-together"
TOGETHER_SLOWER = 4  # a head sees a text every other step: at the full rate valid texts of past tasks grow less likely
TASK_MODEL_TEMPERATURE = 10.0  # of a single-task encoder used as a metric
RAREST_WORD = 3  # texts of the bank a word must occur in to be counted


@dataclass(frozen=True, eq=False)
class Together:
    """One encoder for all tasks, and the softmax to begin with for a task whose labels the whole bank shares."""

    encoder: ConvolutionEncoder
    start: tuple[Floats, Floats] | None  # the mean of the tasks' softmaxes: (width, labels), (labels,)
    labels: tuple[str, ...] | None  # that all tasks share, if they do


def train_together(learning: Learning, work: Work, recipe: Recipe, *, held_out: Collection[str] = ()) -> Together:
    """The holistic network: one encoder, a softmax for each task, tasks drawn uniformly; trained as a classifier is."""
    words = learning.words
    bank = learning.material.bank.only([name for name in learning.material.bank.names if name not in held_out])
    slower = replace(recipe, width=SINGLE_METRIC_WIDTH, learning_rate=recipe.learning_rate / TOGETHER_SLOWER)
    convolution, training = replace(slower, learn_words=False).metric_training()["classifier"]
    spec = {"seed": recipe.seed, "words": words.fingerprint}
    spec |= {"convolution": asdict(convolution), "training": asdict(training)}
    unit = Unit("all-tasks", {**spec, "tasks": {task.name: task.fingerprint for task in bank}})
    from experiments.baselines.holistic import train_all

    tensors = load(work(STAGE, train_all, [unit])[unit.name])
    encoder, labels = ConvolutionEncoder(words, tensors["filters"], tensors["bias"]), bank.shared_labels
    return Together(encoder, (tensors["head"], tensors["offset"]) if labels else None, labels)


def fine_tuned(together: Together, *, steps: int = FEW_EXAMPLES.steps, seed: int = 0) -> Method:
    """The holistic network with its last layer fine-tuned on the shots, as the paper does."""
    from experiments.baselines.holistic import fit_softmax

    shape = Convolution(together.encoder.filters.shape[0], together.encoder.width)

    def answer(task: Task) -> list[str]:
        fitted = fit_softmax(
            together.encoder,
            task.labelled_train,
            together.start if task.labels == together.labels else None,
            classes=len(task.labels),
            convolution=shape,
            training=replace(FEW_EXAMPLES, steps=steps, check_every=steps),
            rng=np.random.default_rng(seed),
        )
        rows = fitted.encoder.encode(task.test.texts)
        return likeliest(task, Head(fitted.weights, fitted.offset).probabilities(rows))

    return answer


def single_task_metrics(learning: Learning, work: Work, recipe: Recipe) -> list[Metric]:
    """Every task's own model as a metric by its name: a classifier where labels are shared, else prototypes."""
    material, words = learning.material, learning.words
    models = train_task_models(material, work, words=words, **recipe.task_training(), seed=recipe.seed)
    metrics: list[Metric] = []
    for name, payload in models.items():
        task = material.bank[name]
        model = open_task_model(task, words, payload)
        if material.bank.shared_labels is None:
            rule, temperature = PROTOTYPICAL, TASK_MODEL_TEMPERATURE
            metrics.append(SimilarityMetric(name, LEARNED, model.encoder, rule, temperature, (name,)))
        else:
            prior = label_shares([task])
            metrics.append(SharedLabelMetric(name, LEARNED, model.encoder, model.head, task.labels, prior, (name,)))
    return metrics


@dataclass(frozen=True, eq=False)
class CountedWords:
    """The words of all texts of a bank, counted once for every penalty."""

    words: Any  # how they were counted
    rows: Any  # (texts, words), sparse
    labels: list[str]  # of the texts


def count_words(bank: TaskBank) -> CountedWords:
    """Those of the train and the valid texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = [examples for task in bank for examples in (task.train, task.valid)]
    words = TfidfVectorizer(**WORDS, min_df=RAREST_WORD)
    rows = words.fit_transform([text for part in parts for text in part.texts])
    return CountedWords(words, rows, [label for part in parts for label in part.labels])


def pooled_tfidf(bank: TaskBank | CountedWords, *, C: float = 1.0) -> Method:
    """Logistic regression on the words of all the bank's texts; the shots, a handful among them, are left out."""
    from sklearn.linear_model import LogisticRegression

    counted = bank if isinstance(bank, CountedWords) else count_words(bank)
    model = LogisticRegression(C=C, max_iter=1000).fit(counted.rows, counted.labels)

    def answer(task: Task) -> list[str]:
        return [str(label) for label in model.predict(counted.words.transform(task.test.texts))]

    return answer
