"""Methods that learn one thing from the whole bank, without clusters.

train_together, fine_tuned   baseline (3) of the paper: one network for all tasks, a softmax for each; for a target, a
                             softmax fine-tuned on the shots
train_one_metric, by_metric  baselines (4) and (5): a matching or prototypical network on all tasks, 400 filters
by_task_models               baseline (6): every single-task model a metric, combined by eqn:fsl as published
pooled_tfidf                 TF-IDF and logistic regression over all texts of the bank, where its tasks share labels
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoders import ConvolutionEncoder
from manymetrics.encode.reading import Labelled, ReadBank
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.baselines.alone import WORDS, likeliest, shot_labels
from manymetrics.evaluation.targets import Method
from manymetrics.measure import open_task_model
from manymetrics.measure.heads import Head
from manymetrics.measure.models import training_parts
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, SimilarityMetric, train_metrics
from manymetrics.specialize.metric import LEARNED
from manymetrics.specialize.training import label_shares
from manymetrics.values import Clusters, Floats, Task, TaskBank, Unit, Work
from manymetrics.weigh.alone import SHOT_TRAINING
from manymetrics.weigh.mix import blend, fit_mix_as_published
from manymetrics.weigh.panel import fit_metrics

STAGE = "baseline-together"
VERSION = 1
SINGLE_METRIC_WIDTH = 400
STOP_ON_TEXTS = 100  # of each task, that the network for all tasks is scored on
TASK_MODEL_TEMPERATURE = 10.0  # of a single-task encoder used as a metric
RAREST_WORD = 3  # texts of the bank a word must occur in to be counted


def everything_in_one(names: Sequence[str]) -> Clusters:
    """The clustering without clusters."""
    return Clusters(tuple(names), np.zeros(len(names), dtype=np.int64))


def train_one_metric(bank: ReadBank, work: Work, recipe: Recipe, *, held_out: Sequence[str],
                     objective: str = PROTOTYPICAL) -> Metric:  # fmt: skip
    """One metric for all tasks, with twice the filters."""
    wide = replace(recipe, width=SINGLE_METRIC_WIDTH, objective=objective)
    everything = everything_in_one(bank.names)
    return train_metrics(bank, everything, work, **wide.metric_training(), held_out=held_out, seed=recipe.seed)[0]


def by_metric(metric: Metric, vectors: WordVectors) -> Method:
    """Answers by one metric alone."""

    def answer(task: Task) -> list[str]:
        fitted = fit_metrics([metric], vectors.read(task.train.texts), shot_labels(task), task.labels)[0]
        return likeliest(task, fitted.chances(vectors.read(task.test.texts)))

    return answer


@dataclass(frozen=True, eq=False)
class Together:
    """One encoder for all tasks, and the softmax to begin with for a task whose labels the whole bank shares."""

    encoder: ConvolutionEncoder
    start: tuple[Floats, Floats] | None  # the mean of the tasks' softmaxes: (width, labels), (labels,)
    labels: tuple[str, ...] | None  # that all tasks share, if they do


def train_together(bank: ReadBank, work: Work, recipe: Recipe) -> Together:
    """The holistic network: one encoder, a softmax for each task, tasks drawn uniformly."""
    wide = replace(recipe, width=SINGLE_METRIC_WIDTH, learn_words=False)
    knobs = wide.metric_training()
    spec = {"version": VERSION, "seed": recipe.seed, "vectors": bank.vectors.fingerprint}
    spec |= {"convolution": asdict(knobs["convolution"]), "training": asdict(knobs["training"])}
    unit = Unit("all-tasks", {**spec, "tasks": {task.name: task.fingerprint for task in bank}})
    tensors = load(work(STAGE, train_all, [unit])[unit.name])
    encoder = ConvolutionEncoder(bank.vectors.table, tensors["filters"], tensors["bias"])
    labels = shared_labels(bank)
    return Together(encoder, (tensors["head"], tensors["offset"]) if labels else None, labels)


def train_all(unit: Unit, bank: ReadBank) -> bytes:
    """Train the encoder of all tasks; where they share their labels, the mean of their softmaxes is kept as well."""
    from manymetrics.encode.fitting import fit_together

    rng = unit.rng(unit.spec["seed"])
    parts = [training_parts(task, rng) for task in bank]
    fitted = fit_together(
        bank.vectors.table,
        [train for train, _ in parts],
        [held_out.take(rng.permutation(len(held_out))[:STOP_ON_TEXTS]) for _, held_out in parts],
        classes=[len(task.labels) for task in bank],
        convolution=Convolution(**unit.spec["convolution"]),
        training=Training(**unit.spec["training"]),
        rng=rng,
    )
    tensors = {"filters": fitted.encoder.filters, "bias": fitted.encoder.bias}
    if shared_labels(bank):
        tensors |= {
            "head": np.mean([head for head, _ in fitted.heads], axis=0),
            "offset": np.mean([offset for _, offset in fitted.heads], axis=0),
        }
    return save(tensors)


def fine_tuned(together: Together, vectors: WordVectors, *, seed: int = 0) -> Method:
    """The holistic network with its last layer fine-tuned on the shots, as the paper does."""
    from manymetrics.encode.fitting import fit_softmax

    shape = Convolution(together.encoder.filters.shape[0], together.encoder.width)

    def answer(task: Task) -> list[str]:
        fitted = fit_softmax(
            together.encoder,
            Labelled(vectors.read(task.train.texts), shot_labels(task)),
            together.start if task.labels == together.labels else None,
            classes=len(task.labels),
            convolution=shape,
            training=SHOT_TRAINING,
            rng=np.random.default_rng(seed),
        )
        features = fitted.encoder.responses(vectors.read(task.test.texts))
        return likeliest(task, Head(fitted.weights, fitted.offset).chances(features))

    return answer


def by_task_models(models: Mapping[str, bytes], bank: ReadBank) -> Method:
    """Every single-task model a metric, weighed as published: classifiers where labels are shared, else prototypes."""
    labels = shared_labels(bank)
    metrics: list[Metric] = []
    for name, payload in models.items():
        model = open_task_model(name, bank[name].labels, bank.vectors.table, payload)
        if labels is None:
            rule, temperature = PROTOTYPICAL, TASK_MODEL_TEMPERATURE
            metrics.append(SimilarityMetric(name, LEARNED, model.encoder, rule, temperature, (name,)))
        else:
            prior = label_shares([bank[name]])
            metrics.append(SharedLabelMetric(name, LEARNED, model.encoder, model.head, labels, prior, (name,)))
    vectors = bank.vectors

    def answer(task: Task) -> list[str]:
        labels = shot_labels(task)
        fitted = fit_metrics(metrics, vectors.read(task.train.texts), labels, task.labels)
        left_out = np.stack([one.chances_left_out() for one in fitted], axis=1)  # (shots, models, labels)
        weights = fit_mix_as_published(left_out, labels).weights
        texts = vectors.read(task.test.texts)
        return likeliest(task, blend(weights, np.stack([one.chances(texts) for one in fitted], axis=1)))

    return answer


def pooled_tfidf(bank: TaskBank) -> Method:
    """Logistic regression on the words of all the bank's texts; the shots, a handful among them, are left out."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    parts = [examples for task in bank for examples in (task.train, task.valid)]
    words = TfidfVectorizer(**WORDS, min_df=RAREST_WORD)
    model = make_pipeline(words, LogisticRegression(max_iter=1000))
    model.fit([text for part in parts for text in part.texts], [label for part in parts for label in part.labels])

    def answer(task: Task) -> list[str]:
        return [str(label) for label in model.predict(task.test.texts)]

    return answer


def shared_labels(bank: ReadBank | TaskBank) -> tuple[str, ...] | None:
    """The labels that all tasks of a bank have, if they all have the same."""
    found = {task.labels for task in bank}
    return found.pop() if len(found) == 1 else None
