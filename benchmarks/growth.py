"""How cost grows: time and peak memory against the number of tasks, texts, labels and shots.

Every size runs in a process of its own, so that one size's memory is not another's. The memory is the whole process's
with its libraries and word vectors; what it held before the work began is in the note.
"""

from collections.abc import Callable
from typing import Any

import manymetrics as mm
from benchmarks.harness import Options, Row, Usage, in_fresh_process, seconds
from benchmarks.material import few_shot_task, random_model, sample, short_texts, usual_vectors

STEPS = 50  # of each training: a short one, growth is the same


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    seed = options.seed
    if options.quick:
        return [_row("labels", "adapt, 5 shots", 2, in_fresh_process(_adapt, 2, 5, 2, seed))]
    rows = [_row("tasks", f"learn_metrics, {STEPS} steps a training", n, in_fresh_process(_learn, n, seed))
            for n in (16, 32, 64, 128)]  # fmt: skip
    rows += [_row("texts", "predict, 10 clusters, 10 labels", n, in_fresh_process(_predict, n, seed))
             for n in (1, 100, 1_000, 10_000, 100_000)]  # fmt: skip
    rows += [_row("labels", "adapt, 10 clusters, 5 shots", n, in_fresh_process(_adapt, n, 5, 10, seed))
             for n in (2, 10, 50, 100)]  # fmt: skip
    rows += [_row("shots", "adapt, 10 clusters, 10 labels", n, in_fresh_process(_adapt, 10, n, 10, seed))
             for n in (1, 5, 20, 100)]  # fmt: skip
    return rows


def _row(job: str, what: str, count: int, usage: Usage) -> Row:
    ours = f"{seconds(usage.seconds)}, {usage.peak:,.0f} MiB"
    return Row(f"{what}: {count:,} {job}", ours, note=f"{usage.before:,.0f} MiB before the work began")


def _learn(tasks: int, seed: int) -> Callable[[], Any]:
    past, _ = sample(seed, tasks).split_off()
    vectors = usual_vectors()
    recipe = mm.Recipe.fast(clusters=7, own_steps=STEPS, projection_steps=STEPS, seed=seed)
    return lambda: len(mm.learn_metrics(past, recipe, vectors=vectors).metrics)


def _predict(count: int, seed: int) -> Callable[[], Any]:
    support, _ = few_shot_task(10, 5, seed)
    classifier = random_model(10, seed).adapt(support.texts, support.labels)
    texts = short_texts(count, seed)
    classifier.predict(texts[:10])
    return lambda: len(classifier.predict(texts))


def _adapt(ways: int, shots: int, clusters: int, seed: int) -> Callable[[], Any]:
    support, _ = few_shot_task(ways, shots, seed)
    model = random_model(clusters, seed)
    model.adapt(support.texts, support.labels)
    return lambda: len(model.adapt(support.texts, support.labels).examples_)
