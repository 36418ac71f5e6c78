"""A model of 10 clusters takes in a 10-way 5-shot task, against SetFit's fit on the same task and lighter peers.

Then tasks of many labels: how long it takes to add one, and how time and memory of a fit grow.
"""

import gc
import io
import logging
import os
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks import minilm
from benchmarks.harness import (
    Options,
    Race,
    Row,
    Target,
    installed,
    race_row,
    repeat,
    seconds,
    settle,
    timed,
    without_peer,
)
from benchmarks.material import few_shot_task, many_labels, random_model
from manymetrics.values import Examples

TWO_HUNDRED, MILLISECONDS = Target(200, "×"), Target(100, "ms", at_least=False)
FITS = 2  # of SetFit, each takes a minute
WAYS, SHOTS, CLUSTERS = 10, 5, 10
FIFTY_MS, TWO_SECONDS = Target(50, "ms", at_least=False), Target(2, "s", at_least=False)
LINEAR = Target(2.3, "×", at_least=False)  # twice the examples, and some room

Peer = Callable[[], Callable[[list[str]], Any]]


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    model = random_model(options.size(CLUSTERS, 2), options.seed)
    support, query = few_shot_task(WAYS, SHOTS, options.seed)

    def ours() -> Any:
        return model.adapt(support.texts, support.labels)

    times = repeat(ours, options.size(max(20, options.rounds), 1))
    middle = float(np.median(times)) * 1e3
    note = "projections random (speed does not depend on what they learned), all with a weight"
    rows = [Row(f"{CLUSTERS} clusters, {WAYS}-way {SHOTS}-shot: adapt", seconds(times), target=MILLISECONDS,
                value=middle, note=note)]  # fmt: skip
    setfit = partial(_setfit, steps=options.size(-1, 1))
    rows += [
        _against("SetFit", ours, setfit(support), TWO_HUNDRED, fits=FITS, query=query, options=options),
        _against("MiniLM + logistic regression", ours, _sentences(support), query=query, options=options),
        _against("TF-IDF + logistic regression", ours, _tf_idf(support), query=query, options=options),
    ]
    return [*rows, _add_label(model, options), *_many_labels(model, options)]


def _against(title: str, ours: Callable[[], Any], peer: Peer | None, target: Target | None = None, *,
             fits: int | None = None, query: Examples, options: Options) -> Row:  # fmt: skip
    title = f"the same task; {title}"
    if peer is None or not options.peers:
        return without_peer(title, ours, options, target=target)
    if fits is not None:
        ours()  # a slow peer is not run to warm up, ours is

    def judge(_: Any, predict: Callable[[list[str]], Any]) -> tuple[bool, str]:
        note = f"accuracy {_accuracy(predict, query):.0%} (ours is random here)"
        return True, note if fits is None else f"{note}; the peer fitted {fits} times"

    race = Race(ours, peer, peer_rounds=fits, warm_up=fits is None)
    return race_row(title, race, options, target=target, judge=judge)


def _add_label(model: mm.MetricModel, options: Options) -> Row:
    """Five examples of a label that a classifier did not know; it forgets them again between rounds."""
    labels, each = options.size(50, 5), 5
    classifier = model.adapt(*many_labels(labels, each))
    texts, times = [f"further case {number}" for number in range(each)], []
    for at in range(1 + options.size(max(20, options.rounds), 1)):
        spent, _ = timed(lambda: classifier.add_examples(texts, [labels] * each))
        classifier.forget(labels)
        times += [spent] if at else []  # the first is a warm-up
    title = f"{CLUSTERS} clusters, {labels} labels of {each} examples: add {each} examples of a new label"
    middle = 1e3 * statistics.median(times)
    return Row(title, seconds(times), target=FIFTY_MS, value=middle, note="examples of four words")


def _many_labels(model: mm.MetricModel, options: Options) -> list[Row]:
    """Time and memory of a fit on more examples than the regression has landmarks."""
    labels, each = options.size(151, 10), 8
    once, twice = many_labels(labels, each), many_labels(labels, 2 * each)
    times = repeat(lambda: model.adapt(*once), options.rounds)
    title, note = f"{CLUSTERS} clusters, {labels} labels", "examples of four words"
    peaks = [_peak(model, *examples) / 2**20 for examples in (once, twice)]
    return [
        Row(f"{title} of {each} examples: adapt", seconds(times), target=TWO_SECONDS, value=statistics.median(times),
            note=note),
        Row(f"{title}: memory of 16 examples a label against 8", f"{peaks[1]:,.0f} and {peaks[0]:,.0f} MiB",
            target=LINEAR, value=peaks[1] / peaks[0], note=f"{note}; the most that a fit holds"),
    ]  # fmt: skip


def _peak(model: mm.MetricModel, texts: list[str], labels: Any) -> float:
    """The bytes that a fit holds at most."""
    gc.collect()
    tracemalloc.start()
    try:
        model.adapt(texts, labels)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _accuracy(predict: Callable[[list[str]], Any], query: Examples) -> float:
    return float(np.mean(np.asarray(predict(list(query.texts))) == np.asarray(query.labels)))


def _setfit(support: Examples, *, steps: int) -> Peer | None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.getLogger("setfit").setLevel(logging.ERROR)
    setfit, datasets = installed("setfit"), installed("datasets")
    place = minilm.folder()
    if setfit is None or datasets is None or place is None:
        return None
    classes = sorted(set(support.labels))
    rows = {"text": list(support.texts), "label": [classes.index(label) for label in support.labels]}
    model = setfit.SetFitModel.from_pretrained(str(place))
    fresh = {name: tensor.clone() for name, tensor in model.model_body.state_dict().items()}

    def fit() -> Callable[[list[str]], Any]:
        model.model_body.load_state_dict(fresh)
        silent = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(silent), redirect_stderr(silent):
            arguments = setfit.TrainingArguments(
                output_dir=folder, save_strategy="no", report_to="none", show_progress_bar=False, max_steps=steps
            )
            setfit.Trainer(model=model, args=arguments, train_dataset=datasets.Dataset.from_dict(rows)).train()
        return lambda texts: [classes[int(answer)] for answer in model.predict(texts)]

    return fit


def _sentences(support: Examples) -> Peer | None:
    model = minilm.load()
    if model is None:
        return None
    from sklearn.linear_model import LogisticRegression

    def fit() -> Callable[[list[str]], Any]:
        head = LogisticRegression(max_iter=1000, C=10).fit(minilm.encode(model, list(support.texts)), support.labels)
        return lambda texts: head.predict(minilm.encode(model, texts))

    return fit


def _tf_idf(support: Examples) -> Peer:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def fit() -> Callable[[list[str]], Any]:
        pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=1000, C=10))
        predict: Callable[[list[str]], Any] = pipeline.fit(list(support.texts), list(support.labels)).predict
        return predict

    return fit
