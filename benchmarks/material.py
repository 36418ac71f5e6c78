"""A seed -> texts, tasks and models to measure with; the sentence encoder bge-small has to be fetched."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps

import numpy as np

import manymetrics as mm
from benchmarks.harness import NOT_RUN, Options, Row, settle
from manymetrics.encode import CharNgramEncoder, ProjectionEncoder
from manymetrics.encode.encoder import normalize
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.learn import SENTENCE
from manymetrics.model import describe_predictor
from manymetrics.specialize.metric import FROZEN, LEARNED, TUNED, Metric
from manymetrics.values import Clusters, Examples, ObservedPairs, Similarity, TransferMatrix
from manymetrics.weigh.assignment import NAMES, TEXTS, ClusterAssigner

ENCODER = "bge-small"
WORDS = 8  # of a short text
EVEN = {TEXTS: {TEXTS: 1e-3}, f"{NAMES}+{TEXTS}": {NAMES: 1e-3, TEXTS: 1e-3}}  # prefers hardly any cluster


@lru_cache(maxsize=4)
def sample(seed: int, tasks: int) -> mm.TaskBank:
    """A sample bank."""
    return mm.sample_bank(seed, tasks=tasks)


def sentences(count: int, seed: int) -> list[str]:
    """So many texts of a sample bank, 5 to 25 words each, of all labels and families."""
    bank = sample(seed, max(16, count // 250))
    every = [text for task in bank for part in (task.train, task.valid, task.test) for text in part.texts]
    order = np.random.default_rng(seed).permutation(max(count, len(every)))[:count] % len(every)
    return [every[place] for place in order]


def short_texts(count: int, seed: int) -> list[str]:
    """The first eight words of such texts."""
    return [" ".join(text.split()[:WORDS]) for text in sentences(count, seed)]


def reviews(count: int, seed: int) -> list[str]:
    """Long texts: eight sentences each, about 128 tokens."""
    parts = sentences(8 * count, seed)
    return [" ".join(parts[at : at + 8]) for at in range(0, len(parts), 8)]


def never_seen(texts: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """The texts with another word at the end each time, so that no embedding of theirs is cached."""
    for number in range(rounds):
        yield [f"{text} {number}" for text in texts]


@lru_cache(maxsize=1)
def load_base() -> mm.SentenceEncoder | None:
    """The encoder of the default recipe; None where it was not fetched."""
    return mm.load_encoder(ENCODER) if mm.list_encoders()[ENCODER] else None


def needs_encoder(run: Callable[[Options], list[Row]]) -> Callable[[Options], list[Row]]:
    """A theme, on one thread, if the encoder was fetched."""

    @wraps(run)
    def measure(options: Options) -> list[Row]:
        settle(1)
        return run(options) if load_base() else [Row("all rows", NOT_RUN, note=f"{ENCODER} was not fetched")]

    return measure


def random_model(clusters: int, seed: int) -> mm.MetricModel:
    """A model of the default recipe with random projections: speed does not depend on what they learned.

    Every cluster has a weight in every task, so all are used.
    """
    base, rng = load_base(), np.random.default_rng(seed)
    tasks, width = tuple(f"task-{number}" for number in range(clusters)), base.width

    def projection() -> ProjectionEncoder:
        return ProjectionEncoder(base, rng.normal(0, 0.01, (width, width)).astype(np.float32))

    learned = [
        Metric(f"cluster-{number}", LEARNED, projection(), PROTOTYPICAL, 10.0, (task,), number)
        for number, task in enumerate(tasks)
    ]
    shared = Metric("projection", TUNED, projection(), PROTOTYPICAL, 10.0, tasks)
    frozen = Metric(SENTENCE, FROZEN, base, PROTOTYPICAL, 10.0)
    rows = normalize(rng.normal(size=(clusters, width))).astype(np.float16)
    numbers, ones = np.arange(clusters), np.ones(clusters, dtype=np.int64)
    assigner = ClusterAssigner(tasks, numbers, clusters, rows, rows, ones, EVEN)
    letters = CharNgramEncoder.from_texts(sentences(4000, seed))
    predictor = mm.Predictor((*learned, shared, frozen), assigner=assigner, letters=letters)
    apart = np.eye(clusters)
    origin = mm.model.Origin(
        Clusters(tasks, numbers),
        TransferMatrix(tasks, np.where(apart > 0, np.nan, 0.5), "accuracy"),
        ObservedPairs(tasks, apart > 0, apart > 0),
        Similarity(tasks, apart, 0 * apart, sparsity=1.0, steps=0, gap=0.0),
        mm.Recipe(),
        held_out=(),
        bank_fingerprint="",
        **describe_predictor(predictor),
    )
    return mm.MetricModel(predictor, origin)


def few_shot_task(ways: int, shots: int, seed: int) -> tuple[Examples, Examples]:
    """A new task with so many labels and examples of each, and texts to answer, from the sample bank."""
    by_label: dict[str, list[str]] = {}
    for task in sample(seed, 32):
        for text, label in zip(task.train.texts, task.train.labels, strict=True):
            by_label.setdefault(label, []).append(text)
    usable = [label for label, texts in by_label.items() if len(texts) > shots][:ways]
    if len(usable) < ways:
        raise ValueError(f"The sample bank has {len(usable)} labels with more than {shots} examples, not {ways}.")
    support = [(text, label) for label in usable for text in by_label[label][:shots]]
    query = [(text, label) for label in usable for text in by_label[label][shots : shots + 20]]
    return Examples(*zip(*support, strict=True)), Examples(*zip(*query, strict=True))


def many_labels(labels: int, each: int) -> tuple[list[str], list[str]]:
    """Four short words for each example of so many labels, and the labels: a task whose size alone matters."""
    texts = [f"word{label} sort{number} of thing{label % 7}" for label in range(labels) for number in range(each)]
    return texts, [f"label {label}" for label in range(labels) for _ in range(each)]
