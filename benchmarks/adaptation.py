"""A model of 10 clusters takes in a 10-way 5-shot task, against SetFit's fit on the same task and lighter peers."""

import io
import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from typing import Any

import numpy as np

from benchmarks import minilm
from benchmarks.harness import Options, Race, Row, Target, installed, repeat, seconds, settle, without_peer
from benchmarks.material import few_shot_task, random_model
from manymetrics.values import Examples

TWO_HUNDRED, MILLISECONDS = Target(200, "×"), Target(100, "ms", at_least=False)
FITS = 2  # of SetFit, each takes a minute
WAYS, SHOTS, CLUSTERS = 10, 5, 10


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    model = random_model(options.size(CLUSTERS, 2), options.seed)
    support, query = few_shot_task(WAYS, SHOTS, options.seed)

    def ours() -> Any:
        return model.adapt(support.texts, support.labels)

    times = repeat(ours, options.size(max(20, options.rounds), 1))
    middle = float(np.median(times)) * 1e3
    note = "encoders random (speed does not depend on what they learned), plus the word vectors' and letters' metrics"
    rows = [Row(f"{CLUSTERS} clusters, {WAYS}-way {SHOTS}-shot: adapt", seconds(times), target=MILLISECONDS,
                value=middle, note=note)]  # fmt: skip
    peers = [
        ("SetFit", partial(_setfit, steps=options.size(-1, 1)), TWO_HUNDRED, FITS),
        ("MiniLM + logistic regression", _sentences, None, None),
    ]
    peers.append(("TF-IDF + logistic regression", _tf_idf, None, None))
    return rows + [_against(title, ours, make(support), target, fits=fits, query=query, options=options)
                   for title, make, target, fits in peers]  # fmt: skip


def _against(title: str, ours: Callable[[], Any], peer: Callable[[], Any] | None, target: Target | None, *,
             fits: int | None, query: Examples, options: Options) -> Row:  # fmt: skip
    title = f"the same task; {title}"
    if peer is None or not options.peers:
        return without_peer(Row(title, seconds(repeat(ours, options.rounds)), target=target))
    slow = fits is not None
    if slow:
        ours()
    outcome = Race(ours, peer, peer_rounds=fits, warm_up=not slow).run(options.rounds)
    note = f"accuracy {_accuracy(outcome.peer_result, query):.0%} (ours is random here)"
    if slow:
        note += f"; the peer fitted {fits} times"
    return Row(title, seconds(outcome.ours), seconds(outcome.peer), outcome.ratio, target, note=note)


def _accuracy(predict: Callable[[list[str]], Any], query: Examples) -> float:
    return float(np.mean(np.asarray(predict(list(query.texts))) == np.asarray(query.labels)))


def _setfit(support: Examples, *, steps: int) -> Callable[[], Any] | None:
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


def _sentences(support: Examples) -> Callable[[], Any] | None:
    model = minilm.load()
    if model is None:
        return None
    from sklearn.linear_model import LogisticRegression

    def fit() -> Callable[[list[str]], Any]:
        head = LogisticRegression(max_iter=1000, C=10).fit(minilm.encode(model, list(support.texts)), support.labels)
        return lambda texts: head.predict(minilm.encode(model, texts))

    return fit


def _tf_idf(support: Examples) -> Callable[[], Any] | None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def fit() -> Callable[[list[str]], Any]:
        pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=1000, C=10))
        predict: Callable[[list[str]], Any] = pipeline.fit(list(support.texts), list(support.labels)).predict
        return predict

    return fit
