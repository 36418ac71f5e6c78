"""The sentence encoder alone, then in use: a model of ten clusters adapts, and answers texts, new or not.

Strings to embeddings against the int8 graph of the encoder's package run by onnxruntime, one text at a time. Texts that
a model has answered before are not encoded again. All in processor seconds: two threads share the encoding where there
are two cores.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import manymetrics as mm
from benchmarks.harness import NOT_RUN, Options, Race, Row, Target, installed, race_row, rate, seconds, settle
from benchmarks.material import few_shot_task, many_labels, sentence_model, short_texts
from manymetrics.encode import LowRankFactors
from manymetrics.encode.sources.encoders import ENCODERS

CLUSTERS, WAYS, SHOTS = 10, 10, 5
PER_SECOND, AGAIN = Target(280, "texts a second"), Target(5, "×")
ADAPT, MANY = Target(250, "ms", at_least=False), Target(3, "s", at_least=False)
NOTE = "projections random; processor seconds"
SHORT, REVIEWS = Target(1.7, "×"), Target(1.05, "×")
TUNED, SWITCHED = Target(0.85, "×"), Target(0.7, "×")
COSINE = Target(0.998, "")
RANK, WORDS = 8, 8  # of factors; of a short text


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    model = sentence_model(options.size(CLUSTERS, 2), options.seed)
    if model is None or installed("onnxruntime") is None:
        return [Row("the default recipe", "not run", note="the sentence encoder bge-small was not fetched")]
    rows = [*_embed(model.predictor.base, options), *_predict(model, options)]
    return [*rows, _adapt(model, options), _many_labels(model, options)]


def _embed(encoder: mm.SentenceEncoder, options: Options) -> list[Row]:
    """Strings to embeddings: against the graph of the package, with factors, against 32-bit floats, alone."""
    sentences = short_texts(options.size(400, 20), options.seed)
    texts = [" ".join(text.split()[:WORDS]) for text in sentences]
    reviews = [" ".join(sentences[at : at + 6]) for at in range(0, len(sentences) - 6, 6)]
    tuned = [encoder.with_factors(_factors(encoder, seed)) for seed in range(options.size(100, 3))]
    few = texts[: len(tuned)]

    def switch() -> list[Any]:
        return [_encode(other, [text]) for other, text in zip(tuned, few, strict=True)]

    factors = Race(lambda: _encode(tuned[0], texts), lambda: _encode(encoder, texts))
    switching = Race(switch, lambda: [_encode(tuned[0], [text]) for text in few])
    return [
        *_against_package(encoder, {"short texts": texts, "reviews": reviews}, options),
        _ratio(f"short texts with factors of rank {RANK}, against the base", texts, factors, TUNED, options),
        _ratio("texts of as many tuned encoders, against one", few, switching, SWITCHED, options),
        _same_bits(encoder, tuned[0], [*texts[:200], *reviews[:40]]),
        _exactness(encoder, [*texts[:200], *reviews[:40]]),
    ]


def _against_package(encoder: mm.SentenceEncoder, texts: Mapping[str, list[str]], options: Options) -> Iterator[Row]:
    graph = _package_graph(encoder) if options.peers else None
    for (kind, own), target in zip(texts.items(), (SHORT, REVIEWS), strict=True):
        title = f"{kind} of {np.mean([len(ids) for ids in encoder.tokenize(own)]):.0f} tokens: strings to embeddings"
        if graph is None:
            yield Row(f"{len(own)} {title}", NOT_RUN, note="the package of the encoder was not fetched")
        else:
            race = Race(partial(_encode, encoder, own), partial(graph, own))
            yield _ratio(title, own, race, target, options)


def _ratio(title: str, texts: list[str], race: Race, target: Target, options: Options) -> Row:
    note, write = "texts a second of one core; processor seconds", partial(rate, len(texts))
    twice = replace(options, rounds=2 * options.rounds, peers=True)
    return race_row(f"{len(texts)} {title}", race, twice, target=target, judge=lambda *_: (True, note), write=write)


def _same_bits(encoder: mm.SentenceEncoder, tuned: mm.SentenceEncoder, texts: list[str]) -> Row:
    equal = all(
        (_encode(each, texts) == np.concatenate([_encode(each, [text]) for text in texts])).all()
        for each in (encoder, tuned)
    )
    title = f"{len(texts)} texts alone and together, with and without factors"
    return Row(title, "the same bits" if equal else "other bits", sound=equal)


def _exactness(encoder: mm.SentenceEncoder, texts: list[str]) -> Row:
    title = f"lowest cosine of {len(texts)} texts to 32-bit floats of the weights as they are served"
    if installed("torch") is None:
        return Row(title, NOT_RUN, note="torch is not installed")
    import torch

    from manymetrics.encode.training.transformer import LowRankTransformer

    transformer = LowRankTransformer(encoder, n_frozen=encoder.bert.n_layers, rank=1, start=None, seed=0)
    with torch.no_grad():
        exact = np.concatenate([transformer.embed([text], max_tokens=128).numpy() for text in texts])
    embeddings = _encode(encoder, texts)
    cosines = (embeddings * exact).sum(axis=1) / np.linalg.norm(embeddings, axis=1)
    return Row(
        title, f"{cosines.min():.4f}", target=COSINE, value=float(cosines.min()), note=f"mean {cosines.mean():.4f}"
    )


def _encode(encoder: mm.SentenceEncoder, texts: list[str]) -> Any:
    with mm.text_cache_of(None), patch.object(os, "cpu_count", return_value=1):  # one thread, as the package's graph
        return encoder.encode(texts)


def _factors(encoder: mm.SentenceEncoder, seed: int) -> LowRankFactors:
    """Random factors of all matrices."""
    rng = np.random.default_rng(seed)
    shapes = encoder.bert.matrix_shapes().items()
    return LowRankFactors(
        {
            name: (rng.normal(0, 0.02, (n_in, RANK)), rng.normal(0, 0.02, (RANK, n_out)))
            for name, (n_out, n_in) in shapes
        }
    )


def _package_graph(encoder: mm.SentenceEncoder) -> Callable[[list[str]], Any] | None:
    """The int8 graph of the encoder's package, run one text at a time; None where it cannot be fetched."""
    import onnxruntime

    try:
        graph = ENCODERS.read_package(ENCODERS.source(encoder.name))[0]
    except mm.EnvironmentProblem:
        return None
    limits = onnxruntime.SessionOptions()
    limits.intra_op_num_threads = limits.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, limits, providers=["CPUExecutionProvider"])

    def embed(text: str) -> Any:
        ids = np.array([encoder.fast_tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return session.run(None, {item.name: inputs[item.name] for item in session.get_inputs()})[0][0][0]

    return lambda texts: np.stack([embed(text) for text in texts])


def _predict(model: mm.MetricModel, options: Options) -> list[Row]:
    """Texts never seen, the same again, and the encoder alone."""
    count = options.size(600, 20)
    support, _ = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    classifier, encoder = model.adapt(support.texts, support.labels), model.predictor.base
    first, again, alone = [], [], []
    for texts in _fresh(short_texts(count, options.seed), 2 * options.rounds):
        first.append(_spent(lambda texts=texts: classifier.predict(texts)))
        again.append(_spent(lambda texts=texts: classifier.predict(texts)))
        others = [f"{text} then" for text in texts]
        alone.append(_spent(lambda texts=others: encoder.encode(texts)))
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
