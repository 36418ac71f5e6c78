"""A classifier for a new task: from its examples alone, by gradient steps against SetFit, with many labels."""

import gc
import statistics
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks import peers
from benchmarks.harness import NOT_RUN, Options, Row, Target, installed, race, repeat, seconds, settle, timed
from benchmarks.material import few_shot_task, many_labels, needs_encoder, never_seen, random_model
from manymetrics.classifier.own_steps import AUTO_STEPS
from manymetrics.values import Examples

SOURCES = ("encode", "classifier", "weigh", "model")
CLUSTERS, WAYS, SHOTS = 10, 10, 5
NEW = Target(250, "ms", at_least=False)
SIX, TWELVE = Target(6, "×"), Target(12, "s", at_least=False)
FIFTY_MS, TWO_SECONDS = Target(50, "ms", at_least=False), Target(2, "s", at_least=False)
LINEAR = Target(2.3, "×", at_least=False)  # twice the examples, and some room


@needs_encoder
def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    model = random_model(options.size(CLUSTERS, 2), options.seed)
    support, query = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    return [
        _new_task(model, support, options),
        *_steps(model, support, query, options),
        *_many_labels(model, options),
        _add_label(model, options),
    ]


def _new_task(model: mm.MetricModel, support: Examples, options: Options) -> Row:
    times = [
        timed(partial(model.adapt, texts, support.labels))[0]
        for texts in never_seen(support.texts, 1 + options.size(2 * options.rounds, 1))
    ][1:]  # the first is a warm-up
    title = f"{CLUSTERS} clusters, {len(support)} examples of {len(set(support.labels))} labels: adapt"
    return Row(title, seconds(times), target=NEW, value=1e3 * statistics.median(times),
               note="texts never seen; projections random; processor seconds")  # fmt: skip


def _steps(model: mm.MetricModel, support: Examples, query: Examples, options: Options) -> list[Row]:
    """Gradient steps on the examples, from the frozen encoder: processor seconds on one thread."""
    steps = options.size(AUTO_STEPS, 1)
    title = f"{len(support)} examples of {len(set(support.labels))} labels, {steps} gradient steps: adapt"
    if installed("torch") is None:
        return [Row(title, NOT_RUN, target=TWELVE, note="torch is not installed")]
    settle(1)

    def ours() -> Any:
        return model.adapt(support.texts, support.labels, steps=steps).predict

    times = repeat(ours, options.size(2, 1))
    note = f"accuracy {_accuracy(ours(), query):.0%}; processor seconds of one thread"
    row = Row(title, seconds(times), target=TWELVE, value=statistics.median(times), note=note)
    peer = peers.setfit(support, steps=options.size(-1, 1)) if options.peers else None

    def judge(_: Any, predict: Callable[[list[str]], Any]) -> tuple[bool, str]:
        return True, f"SetFit's accuracy {_accuracy(predict, query):.0%}, over MiniLM; it was fitted once"

    settle(1)
    once = replace(options, rounds=1)  # SetFit takes minutes
    return [row, race(f"{title}; SetFit's fit", ours, peer, once, target=SIX, judge=judge, warm_up=False)]


def _accuracy(predict: Callable[[list[str]], Any], query: Examples) -> float:
    return float(np.mean(np.asarray(predict(list(query.texts))) == np.asarray(query.labels)))


def _many_labels(model: mm.MetricModel, options: Options) -> list[Row]:
    """Time and memory of a fit on many examples."""
    labels, each = options.size(100, 10), 10
    once, twice = many_labels(labels, each), many_labels(labels, 2 * each)
    model.adapt(*once)
    times = repeat(lambda: model.adapt(*once), options.rounds)
    fresh = [timed(partial(model.adapt, texts, once[1]))[0] for texts in never_seen(once[0], options.size(2, 1))]
    peaks = [_peak(model, *examples) / 2**20 for examples in (once, twice)]
    title, note = f"{CLUSTERS} clusters, {labels * each:,} examples of {labels} labels: adapt", "examples of four words"
    return [
        Row(title, seconds(times), target=TWO_SECONDS, value=statistics.median(times),
            note=f"{note}, encoded before; never seen, {seconds(fresh)}"),
        Row(f"{title}, memory of twice as many examples", f"{peaks[1]:,.0f} and {peaks[0]:,.0f} MiB", target=LINEAR,
            value=peaks[1] / peaks[0], note="the most that a fit allocates"),
    ]  # fmt: skip


def _peak(model: mm.MetricModel, texts: list[str], labels: list[str]) -> float:
    """The bytes that a fit holds at most."""
    gc.collect()
    tracemalloc.start()
    try:
        model.adapt(texts, labels)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _add_label(model: mm.MetricModel, options: Options) -> Row:
    """Five examples of a label that a classifier did not know; it forgets them again between rounds."""
    labels, each = options.size(50, 5), 5
    classifier = model.adapt(*many_labels(labels, each))
    texts, times = [f"further case {number}" for number in range(each)], []
    for at in range(1 + options.size(2 * options.rounds, 1)):
        spent, _ = timed(lambda: classifier.add_examples(texts, ["new"] * each))
        classifier.forget("new")
        times += [spent] if at else []  # the first is a warm-up
    title = f"{CLUSTERS} clusters, {labels} labels of {each} examples: add {each} examples of a new label"
    return Row(title, seconds(times), target=FIFTY_MS, value=1e3 * statistics.median(times), note="encoded before")
