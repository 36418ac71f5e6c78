"""Methods that learn one thing from the whole bank, without clusters.

train_together, fine_tuned   baseline (3) of the paper: one network for all tasks, a softmax for each; for a target, a
                             softmax fine-tuned on the shots
train_one_metric             baselines (4) and (5): a matching or prototypical network of all tasks, 400 filters
single_task_metrics          baseline (6): every single-task model a metric, to be mixed (`experiments.published`)
pooled_tfidf                 TF-IDF and logistic regression over all texts of the bank, where its tasks share labels
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from safetensors.numpy import load

from experiments.baselines.single_task import WORDS
from experiments.clusterings import everything_in_one
from experiments.methods import predicted_labels
from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.evaluation.baselines import Method
from manymetrics.measure import fit_single_tasks
from manymetrics.measure.convolution import DROPOUT, check_every
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.specialize.cluster_metrics import make_metric
from manymetrics.specialize.metric import LEARNED
from manymetrics.values import Floats, Job, RunJobs, SharedData, Task, TaskBank
from manymetrics.weigh.published import FEW_SHOTS

STAGE = "baseline-together"
SINGLE_METRIC_WIDTH = 400  # filters, twice those of a cluster's metric
TOGETHER_SLOWER = 4  # a head sees a text every other step: at the full rate valid texts of past tasks grow less likely
TASK_MODEL_TEMPERATURE = 10.0  # of a single-task encoder used as a metric
RAREST_WORD = 3  # texts of the bank a word must occur in to be counted


def train_one_metric(shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, *, held_out: Sequence[str],
                     objective: str = PROTOTYPICAL) -> Metric:  # fmt: skip
    """One metric for all tasks, with twice the filters."""
    convolution = replace(recipe.convolution, width=SINGLE_METRIC_WIDTH, objective=objective)
    phases = replace(recipe, convolution=convolution).phases(shared_data)
    everything = everything_in_one(shared_data.bank.names)
    return train_metrics(phases, shared_data, everything, run_jobs, held_out=held_out, seed=recipe.seed)[0]


@dataclass(frozen=True, eq=False)
class Together:
    """One encoder for all tasks, and the softmax to begin with for a task whose labels the whole bank shares."""

    encoder: ConvolutionEncoder
    start: tuple[Floats, Floats] | None  # the mean of the tasks' softmaxes: (width, labels), (labels,)
    labels: tuple[str, ...] | None  # that all tasks share, if they do


def train_together(
    shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, *, held_out: Collection[str] = ()
) -> Together:
    """The holistic network: one encoder, a softmax for each task, tasks drawn uniformly; trained as a classifier is."""
    words = shared_data.base
    bank = shared_data.bank.only([name for name in shared_data.bank.names if name not in held_out])
    networks = recipe.convolution
    convolution = Convolution(networks.window, SINGLE_METRIC_WIDTH, DROPOUT)
    steps, rate = networks.classifier_steps, networks.learning_rate / TOGETHER_SLOWER
    training = Training(steps, check_every(steps), learning_rate=rate)
    spec = {"seed": recipe.seed, "words": words.fingerprint}
    spec |= {"convolution": asdict(convolution), "training": asdict(training)}
    job = Job("all-tasks", {**spec, "tasks": {task.name: task.fingerprint for task in bank}})
    from experiments.baselines.holistic import train_all

    tensors = load(run_jobs(STAGE, train_all, [job])[job.name])
    encoder, labels = ConvolutionEncoder(words, tensors["filters"], tensors["bias"]), bank.shared_labels
    return Together(encoder, (tensors["head"], tensors["offset"]) if labels else None, labels)


def fine_tuned(together: Together, *, steps: int = FEW_SHOTS.steps, seed: int = 0) -> Method:
    """The holistic network with its last layer fine-tuned on the shots, as the paper does."""
    from experiments.baselines.holistic import fit_softmax

    shape = Convolution(together.encoder.filters.shape[0], together.encoder.width)

    def answer(task: Task) -> list[str]:
        head = fit_softmax(
            together.encoder,
            task.train,
            together.start if task.labels == together.labels else None,
            convolution=shape,
            training=replace(FEW_SHOTS, steps=steps, check_every=steps),
            rng=np.random.default_rng(seed),
        )
        return predicted_labels(task, head.probabilities(together.encoder.encode(task.test.texts)))

    return answer


def single_task_metrics(shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe) -> list[Metric]:
    """Every task's own model as a metric by its name: a classifier where labels are shared, else prototypes."""
    representation = recipe.phases(shared_data).single
    metrics: list[Metric] = []
    for name, fitted in fit_single_tasks(representation, shared_data, run_jobs, seed=recipe.seed).items():
        if shared_data.bank.shared_labels is None:
            encoder, temperature = representation.encoder(fitted), TASK_MODEL_TEMPERATURE
            metrics.append(Metric(name, LEARNED, encoder, PROTOTYPICAL, temperature, (name,)))
        else:
            metrics.append(make_metric(name, LEARNED, representation, fitted, tasks=(name,)))
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
