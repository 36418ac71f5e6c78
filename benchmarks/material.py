"""A seed -> texts, tasks, word vectors and models to measure with. Nothing but the repository is needed.

Texts are the sample bank's. Their vocabulary is small, which suits caches, so there is a second sort: words drawn from
30,000 with the frequencies of natural language (Zipf's law). The usual word vectors are used where they were fetched;
where not, random ones of the paper's size stand in, and the page says which.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

import manymetrics as mm
from manymetrics.encode import CharNgramEncoder, ConvolutionEncoder, ProjectionEncoder, random_vectors
from manymetrics.encode.encoder import Encoder, normalize
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import MissingVectors
from manymetrics.learn import SENTENCE as SENTENCE_METRIC
from manymetrics.learn import WORDS as WORDS_METRIC
from manymetrics.model import describe_predictor
from manymetrics.specialize.metric import FROZEN, LEARNED, TUNED, Metric
from manymetrics.values import Clusters, Examples, Ints, ObservedPairs, Similarity, TransferMatrix
from manymetrics.weigh.assignment import NAMES, TEXTS, ClusterAssigner

WINDOW, WIDTH = 5, 200  # the paper's
VOCABULARY = 30_000
USUAL, SENTENCE = "wordllama", "bge-small"
EVEN = {TEXTS: {TEXTS: 1e-3}, f"{NAMES}+{TEXTS}": {NAMES: 1e-3, TEXTS: 1e-3}}  # routes that prefer hardly any cluster


@lru_cache(maxsize=4)
def sample(seed: int, tasks: int) -> mm.TaskBank:
    """A sample bank."""
    return mm.sample_bank(seed, tasks=tasks)


def short_texts(count: int, seed: int) -> list[str]:
    """So many texts of a sample bank, 5 to 25 words each, all labels and families among one another."""
    bank = sample(seed, max(16, count // 250))
    every = [text for task in bank for part in (task.train, task.valid, task.test) for text in part.texts]
    order = np.random.default_rng(seed).permutation(max(count, len(every)))[:count] % len(every)
    return [every[place] for place in order]


def natural_texts(count: int, seed: int) -> list[str]:
    """Texts of 5 to 60 words from a large vocabulary, as frequent as Zipf's law says."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    lengths = rng.integers(5, 61, count)
    words = rng.choice(VOCABULARY, size=int(lengths.sum()), p=frequency / frequency.sum())
    ends = np.cumsum(lengths)
    return [" ".join(f"w{word}" for word in words[end - size : end]) for end, size in zip(ends, lengths, strict=True)]


@lru_cache(maxsize=1)
def usual_vectors() -> mm.WordVectors:
    """The vectors of the default recipe, or random ones where they were not fetched."""
    try:
        return mm.load_vectors(USUAL)
    except MissingVectors:
        return paper_vectors()


@lru_cache(maxsize=1)
def paper_vectors() -> mm.WordVectors:
    """Random vectors for hashed words, 100 dimensions as in the paper."""
    return random_vectors(dimensions=100)


def about(vectors: mm.WordVectors) -> str:
    """The vectors in two words."""
    return f"{vectors.name} {vectors.dimensions}-d"


def random_encoder(words: WordVectors, seed: int) -> ConvolutionEncoder:
    """Filters as training starts with them: responses of variance one. Speed does not depend on what they learned."""
    rng, table = np.random.default_rng(seed), words.table
    size = float(np.sqrt(np.mean(np.square(table, dtype=np.float64))))
    spread = 1 / (size * np.sqrt(WINDOW * table.shape[1]))
    filters = rng.normal(0, spread, (WINDOW, table.shape[1], WIDTH)).astype(np.float32)
    return ConvolutionEncoder(words, filters, rng.normal(0, 0.1, WIDTH).astype(np.float32))


def random_model(clusters: int, seed: int) -> mm.MetricModel:
    """A model of so many clusters over the usual word vectors, its projections random."""
    vectors = usual_vectors()
    return _projected(vectors, WORDS_METRIC, clusters, seed, mm.Recipe.fast(vectors=vectors.name))


def sentence_model(clusters: int, seed: int) -> mm.MetricModel | None:
    """The same over the usual sentence encoder; None where it is not here."""
    if not mm.list_encoders()[SENTENCE]:
        return None
    return _projected(mm.load_encoder(SENTENCE), SENTENCE_METRIC, clusters, seed, mm.Recipe())


def _projected(base: Encoder, name: str, clusters: int, seed: int, recipe: mm.Recipe) -> mm.MetricModel:
    """As large and as fast as a learned one; every cluster has a weight in every task, so that all are asked."""
    texts, rng = short_texts(4000, seed), np.random.default_rng(seed)
    tasks, width = tuple(f"task-{number}" for number in range(clusters)), base.encode([""]).shape[1]

    def projection() -> ProjectionEncoder:
        return ProjectionEncoder(base, rng.normal(0, 0.01, (width, width)).astype(np.float32))

    learned = [
        Metric(f"cluster-{number}", LEARNED, projection(), PROTOTYPICAL, 10.0, (task,), number)
        for number, task in enumerate(tasks)
    ]
    shared = Metric("projection", TUNED, projection(), PROTOTYPICAL, 10.0, tasks)
    frozen = Metric(name, FROZEN, base, PROTOTYPICAL, 10.0)
    rows = normalize(rng.normal(size=(clusters, width))).astype(np.float16)
    numbers, ones = np.arange(clusters), np.ones(clusters, dtype=np.int64)
    assigner = ClusterAssigner(tasks, numbers, clusters, rows, rows, ones, EVEN)
    predictor = mm.Predictor((*learned, shared, frozen), assigner=assigner, letters=CharNgramEncoder.from_texts(texts))
    return mm.MetricModel(predictor, _origin(tasks, predictor, recipe))


def _origin(names: tuple[str, ...], predictor: mm.Predictor, recipe: mm.Recipe) -> mm.Origin:
    apart = np.eye(len(names))
    return mm.Origin(
        Clusters(names, np.arange(len(names))),
        TransferMatrix(names, np.where(apart > 0, np.nan, 0.5), "accuracy"),
        ObservedPairs(names, apart > 0, apart > 0),
        Similarity(names, apart, 0 * apart, sparsity=1.0, steps=0, gap=0.0),
        recipe,
        held_out=(),
        bank_fingerprint="",
        **describe_predictor(predictor),
    )


def few_shot_task(ways: int, shots: int, seed: int) -> tuple[Examples, Examples]:
    """A new task with so many labels and examples of each, and texts to answer, from the sample bank."""
    bank = sample(seed, 200 if ways > 20 or shots > 20 else 32)
    examples = [(text, label) for task in bank for text, label in zip(task.train.texts, task.train.labels, strict=True)]
    by_label: dict[str, list[str]] = {}
    for text, label in examples:
        by_label.setdefault(label, []).append(text)
    usable = [label for label, texts in by_label.items() if len(texts) > shots][:ways]
    if len(usable) < ways:
        raise ValueError(f"The sample bank has {len(usable)} labels with more than {shots} examples, not {ways}.")
    support = [(text, label) for label in usable for text in by_label[label][:shots]]
    query = [(text, label) for label in usable for text in by_label[label][shots : shots + 20]]
    return _examples(support), _examples(query)


def _examples(rows: Sequence[tuple[str, str]]) -> Examples:
    return Examples(tuple(text for text, _ in rows), tuple(label for _, label in rows))


def many_labels(labels: int, each: int) -> tuple[list[str], Ints]:
    """Four short words for each example of so many labels, and the labels: a task whose size alone matters."""
    texts = [f"word{label} sort{number} of thing{label % 7}" for label in range(labels) for number in range(each)]
    return texts, np.repeat(np.arange(labels), each)


def some(texts: Sequence[str], count: int, seed: int) -> list[str]:
    """A random part of the texts."""
    return [texts[row] for row in np.random.default_rng(seed).permutation(len(texts))[:count]]
