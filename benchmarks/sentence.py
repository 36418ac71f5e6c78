"""The default recipe in use: a model of ten clusters over a sentence encoder adapts, and answers texts, new or not.

Most of the time is the encoder's, so what it takes alone stands beside. Texts that a model has answered before are not
encoded again. All in processor seconds: two threads share the encoding where there are two cores.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import manymetrics as mm
from benchmarks.harness import Options, Row, Target, installed, seconds, settle
from benchmarks.material import few_shot_task, many_labels, sentence_model, short_texts

CLUSTERS, WAYS, SHOTS = 10, 10, 5
PER_SECOND, AGAIN = Target(280, "texts a second"), Target(5, "×")
ADAPT, MANY = Target(250, "ms", at_least=False), Target(3, "s", at_least=False)
NOTE = "projections random; processor seconds"


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    model = sentence_model(options.size(CLUSTERS, 2), options.seed)
    if model is None or installed("onnxruntime") is None:
        return [Row("the default recipe", "not run", note="the sentence encoder bge-small was not fetched")]
    return [*_predict(model, options), _adapt(model, options), _many_labels(model, options)]


def _predict(model: mm.MetricModel, options: Options) -> list[Row]:
    """Texts never seen, the same again, and the encoder alone."""
    count = options.size(600, 20)
    support, _ = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    classifier, encoder = model.adapt(support.texts, support.labels), model.metrics[-2].encoder
    first, again, alone = [], [], []
    for texts in _fresh(short_texts(count, options.seed), 2 * options.rounds):
        first.append(_spent(lambda texts=texts: classifier.predict(texts)))
        again.append(_spent(lambda texts=texts: classifier.predict(texts)))
        others = [f"{text} then" for text in texts]
        alone.append(_spent(lambda texts=others: encoder.encode(mm.Texts(texts))))
    speed = count / statistics.median(first)
    ratio = statistics.median(first) / statistics.median(again)
    title = f"{CLUSTERS} clusters, {count} short texts"
    return [
        Row(f"{title}: predict", seconds(first), target=PER_SECOND, value=speed,
            note=f"{speed:,.0f} texts a second of one core; the encoder alone "
                 f"{count / statistics.median(alone):,.0f}; {NOTE}"),
        Row(f"{title}, seen before: predict", seconds(again), target=AGAIN, value=ratio,
            note=f"against texts not seen before; {NOTE}"),
    ]  # fmt: skip


def _adapt(model: mm.MetricModel, options: Options) -> Row:
    support, _ = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    times = [
        _spent(lambda texts=texts: model.adapt(texts, support.labels))
        for texts in _fresh(list(support.texts), 2 * options.rounds)
    ]
    title = f"{CLUSTERS} clusters, {len(support)} examples of {len(set(support.labels))} labels: adapt"
    return Row(title, seconds(times), target=ADAPT, value=1e3 * statistics.median(times),
               note=f"texts not seen before, label names encoded too; {NOTE}")  # fmt: skip


def _many_labels(model: mm.MetricModel, options: Options) -> Row:
    labels, each = options.size(151, 10), 8
    texts, numbers = many_labels(labels, each)
    model.adapt(texts, numbers)  # so that all texts are encoded
    times = [_spent(lambda: model.adapt(texts, numbers)) for _ in range(options.rounds)]
    return Row(f"{CLUSTERS} clusters, {labels} labels of {each} examples: adapt", seconds(times), target=MANY,
               value=statistics.median(times), note=f"texts encoded before; {NOTE}")  # fmt: skip


def _fresh(texts: list[str], rounds: int) -> Iterator[list[str]]:
    """The texts with another word at the end each time, so that no row of theirs is remembered."""
    for number in range(rounds):
        yield [f"{text} {number}" for text in texts]


def _spent(do: Callable[[], Any]) -> float:
    started = time.process_time()
    do()
    return time.process_time() - started
