"""Texts per second and core of an adapted classifier, its memory over a million texts, and texts that have no end."""

import statistics
from collections.abc import Callable
from functools import partial

import manymetrics as mm
from benchmarks.harness import (
    Options,
    Race,
    Row,
    Target,
    in_fresh_process,
    peak_memory,
    race_row,
    rate,
    repeat,
    seconds,
    settle,
)
from benchmarks.material import few_shot_task, random_model, short_texts

FAST, STEADY = Target(10_000, "/s"), Target(2_500, "/s")
FLAT = Target(64, "MiB more", at_least=False)  # the size of one batch at work, whatever the number of texts
FIVE_SECONDS = Target(5, "s", at_least=False)
WAYS, SHOTS = 10, 5


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    rows = [_speed(clusters, target, options) for clusters, target in ((5, FAST), (20, STEADY))]
    rows.append(_against_tf_idf(options))
    rows.append(_memory(options))
    rows.append(_long_texts(options))
    return rows


def _classifier(clusters: int, seed: int) -> mm.FewShotClassifier:
    support, _ = few_shot_task(WAYS, SHOTS, seed)
    return random_model(clusters, seed).adapt(support.texts, support.labels)


def _speed(clusters: int, target: Target, options: Options) -> Row:
    classifier, texts = _classifier(clusters, options.seed), short_texts(options.size(20_000, 200), options.seed)
    times = repeat(lambda: classifier.predict(texts), options.rounds)
    used = int(sum(weight > 0 for weight in classifier.weights_.values()))
    return Row(
        f"predict {len(texts):,} short texts, {clusters} clusters, {WAYS} labels",
        f"{rate(len(texts), times)} ({seconds(times)})",
        target=target,
        value=len(texts) / statistics.median(times),
        sound=classifier.fallback_ is None,
        note=f"one core, cutting into tokens included; {used} encoders have a weight",
    )


def _against_tf_idf(options: Options) -> Row:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    support, _ = few_shot_task(WAYS, SHOTS, options.seed)
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(list(support.texts), list(support.labels))
    classifier, texts = _classifier(5, options.seed), short_texts(options.size(20_000, 200), options.seed)
    race = Race(lambda: classifier.predict(texts), lambda: pipeline.predict(texts))
    title = f"predict {len(texts):,} short texts, 5 clusters; TF-IDF + logistic regression"
    note = "for scale: the lightest classifier there is"
    return race_row(title, race, options, judge=lambda *_: (True, note), write=partial(rate, len(texts)))


def _long_texts(options: Options) -> Row:
    classifier, size = _classifier(5, options.seed), options.size(1_000_000, 10_000)
    texts = {"one mark": "!" * size, "emoji": "😀" * (size // 4), "one letter": "a" * size}
    times = {what: repeat(partial(classifier.predict_proba, [text]), options.rounds) for what, text in texts.items()}
    slowest = max(times, key=lambda what: statistics.median(times[what]))
    return Row(
        f"predict one text of {size:,} characters, 5 clusters",
        seconds(times[slowest]),
        target=FIVE_SECONDS,
        value=statistics.median(times[slowest]),
        note=f"the slowest of {', '.join(texts)}, again and again: {slowest}",
    )


def _memory(options: Options) -> Row:
    few, many = options.size(100_000, 500), options.size(1_000_000, 2000)
    usage = in_fresh_process(_predict_both, few, many, options.seed)
    first, last, answers = usage.result
    growth = last - first - answers
    return Row(
        f"memory of one predict call, {few:,} and {many:,} texts, 5 clusters",
        f"{first:,.0f} and {last:,.0f} MiB",
        target=FLAT,
        value=growth,
        note=f"peak of the process; the list of texts and the answers are {answers:.0f} MiB of the difference",
    )


def _predict_both(few: int, many: int, seed: int) -> Callable[[], tuple[float, float, float]]:
    classifier = _classifier(5, seed)
    base = short_texts(min(few, 50_000), seed)

    def predict() -> tuple[float, float, float]:
        answers = classifier.predict([base[at % len(base)] for at in range(few)])
        first, size = peak_memory(), answers.nbytes + 8 * few
        answers = classifier.predict([base[at % len(base)] for at in range(many)])
        return first, peak_memory(), (answers.nbytes + 8 * many - size) / 2**20

    return predict
