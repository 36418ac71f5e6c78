"""Methods that learn one thing from the whole bank, without clusters.

train_together, fine_tuned   baseline (3) of the paper: one network for all tasks, a softmax for each; for a target, a
                             softmax fine-tuned on the shots
by_task_models               baseline (6): every single-task model a metric, combined by eqn:fsl as published
pooled_tfidf                 TF-IDF and logistic regression over all texts of the bank, where its tasks share labels
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from safetensors.numpy import load, save

from experiments.baselines.single_task import WORDS
from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import Features
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.evaluation.baselines import SINGLE_METRIC_WIDTH, likeliest
from manymetrics.evaluation.targets import Method
from manymetrics.learn import Learning
from manymetrics.measure import open_task_model
from manymetrics.measure.heads import Head
from manymetrics.measure.models import training_parts
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.metric import LEARNED
from manymetrics.specialize.training import label_shares
from manymetrics.values import Floats, Material, Task, TaskBank, Unit, Work
from manymetrics.weigh.fallback import FEW_EXAMPLES
from manymetrics.weigh.mix import blend, fit_mix_as_published

STAGE = "baseline-together"
STOP_ON_TEXTS = 100  # of each task, that the network for all tasks is scored on
TASK_MODEL_TEMPERATURE = 10.0  # of a single-task encoder used as a metric
RAREST_WORD = 3  # texts of the bank a word must occur in to be counted


@dataclass(frozen=True, eq=False)
class Together:
    """One encoder for all tasks, and the softmax to begin with for a task whose labels the whole bank shares."""

    encoder: ConvolutionEncoder
    start: tuple[Floats, Floats] | None  # the mean of the tasks' softmaxes: (width, labels), (labels,)
    labels: tuple[str, ...] | None  # that all tasks share, if they do


def train_together(learning: Learning, work: Work, recipe: Recipe) -> Together:
    """The holistic network: one encoder, a softmax for each task, tasks drawn uniformly."""
    bank, words = learning.material.bank, learning.words
    knobs = replace(recipe, width=SINGLE_METRIC_WIDTH, learn_words=False).metric_training()
    spec = {"seed": recipe.seed, "words": words.fingerprint}
    spec |= {"convolution": asdict(knobs["convolution"]), "training": asdict(knobs["training"])}
    unit = Unit("all-tasks", {**spec, "tasks": {task.name: task.fingerprint for task in bank}})
    tensors = load(work(STAGE, train_all, [unit])[unit.name])
    encoder, labels = ConvolutionEncoder(words, tensors["filters"], tensors["bias"]), bank.shared_labels
    return Together(encoder, (tensors["head"], tensors["offset"]) if labels else None, labels)


def train_all(unit: Unit, material: Material) -> bytes:
    """Train the encoder of all tasks; where they share their labels, the mean of their softmaxes is kept as well."""
    from experiments.baselines.holistic import fit_together

    bank, rng = material.bank, unit.rng(unit.spec["seed"])
    parts = [training_parts(task, rng) for task in bank]
    fitted = fit_together(
        material.encoders[unit.spec["words"]],
        [train for train, _ in parts],
        [held_out.take(rng.permutation(len(held_out))[:STOP_ON_TEXTS]) for _, held_out in parts],
        classes=[len(task.labels) for task in bank],
        convolution=Convolution(**unit.spec["convolution"]),
        training=Training(**unit.spec["training"]),
        rng=rng,
    )
    tensors = {"filters": fitted.encoder.filters, "bias": fitted.encoder.bias}
    if bank.shared_labels:
        tensors |= {
            "head": np.mean([head for head, _ in fitted.heads], axis=0),
            "offset": np.mean([offset for _, offset in fitted.heads], axis=0),
        }
    return save(tensors)


def fine_tuned(together: Together, *, seed: int = 0) -> Method:
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
            training=FEW_EXAMPLES,
            rng=np.random.default_rng(seed),
        )
        rows = fitted.encoder.encode(task.test.texts)
        return likeliest(task, Head(fitted.weights, fitted.offset).probabilities(rows))

    return answer


def by_task_models(models: Mapping[str, bytes], learning: Learning) -> Method:
    """Every single-task model a metric, weighed as published: classifiers where labels are shared, else prototypes."""
    bank = learning.material.bank
    metrics: list[Metric] = []
    for name, payload in models.items():
        task = bank[name]
        model = open_task_model(task, learning.words, payload)
        if bank.shared_labels is None:
            rule, temperature = PROTOTYPICAL, TASK_MODEL_TEMPERATURE
            metrics.append(SimilarityMetric(name, LEARNED, model.encoder, rule, temperature, (name,)))
        else:
            prior = label_shares([task])
            metrics.append(SharedLabelMetric(name, LEARNED, model.encoder, model.head, task.labels, prior, (name,)))

    def answer(task: Task) -> list[str]:
        shots = task.labelled_train
        features, texts = Features(shots.texts), Features(task.test.texts)
        fitted = [metric.learn(features, shots.labels, task.labels) for metric in metrics]
        left_out = np.stack([one.leave_one_out() for one in fitted], axis=1)  # (shots, models, labels)
        weights = fit_mix_as_published(left_out, shots.labels).weights
        return likeliest(task, blend(weights, np.stack([one.probabilities(texts) for one in fitted], axis=1)))

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
