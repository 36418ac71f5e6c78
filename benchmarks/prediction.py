"""Answers of an adapted classifier: what they cost beside the encoder, with more examples, and over long texts."""

import statistics
from collections.abc import Callable
from functools import partial

import manymetrics as mm
from benchmarks.encoder import encode
from benchmarks.harness import Options, Row, Target, in_fresh_process, peak_memory, repeat, seconds, timed
from benchmarks.material import (
    few_shot_task,
    load_base,
    many_labels,
    needs_encoder,
    never_seen,
    random_model,
    short_texts,
)

SOURCES = ("encode", "classifier", "weigh", "model")
CLUSTERS, WAYS, SHOTS = 10, 10, 5
BESIDE, SEEN = Target(1.15, "×", at_least=False), Target(0.3, "ms", at_least=False)
MORE = Target(1.5, "×", at_least=False)
FLAT = Target(64, "MiB more", at_least=False)
FIVE_SECONDS = Target(5, "s", at_least=False)
EXAMPLES = {25: 5, 250: 25, 1000: 100, 5000: 100}  # examples -> labels


@needs_encoder
def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    model = random_model(options.size(CLUSTERS, 2), options.seed)
    support, _ = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    classifier = model.adapt(support.texts, support.labels)
    return [
        *_beside_encoder(classifier, options),
        *_by_examples(model, options),
        _starter(options),
        _memory(options),
        _long_texts(classifier, options),
    ]


def _beside_encoder(classifier: mm.FewShotClassifier, options: Options) -> list[Row]:
    """Texts never seen, the encoder alone, and the texts again."""
    count = options.size(600, 20)
    first, again, alone = [], [], []
    for texts in never_seen(short_texts(count, options.seed), options.size(2 * options.rounds, 1)):
        first.append(timed(partial(classifier.predict, texts))[0])
        again.append(timed(partial(classifier.predict, texts[:100]))[0] / len(texts[:100]))
        alone.append(timed(partial(encode, load_base(), [f"{text} then" for text in texts]))[0])
    over = statistics.median(mine / encoder for mine, encoder in zip(first, alone, strict=True))
    title, note = f"{CLUSTERS} clusters, {count} short texts", "projections random; processor seconds"
    return [
        Row(f"{title} never seen: predict; the encoder alone", seconds(first), seconds(alone), target=BESIDE,
            value=over, note=f"{over:.2f} × the encoder alone; {count / statistics.median(first):,.0f} texts a second "
                             f"of one core; {note}"),
        Row(f"{CLUSTERS} clusters, a short text seen before, of 100 together: predict", seconds(again), target=SEEN,
            value=1e3 * statistics.median(again), note=note),
    ]  # fmt: skip


def _by_examples(model: mm.MetricModel, options: Options) -> list[Row]:
    """One answer to a text never seen, with more and more examples."""
    rows, least = [], 0.0
    texts = short_texts(options.size(60, 2), options.seed + 1)
    sizes = {25: 5, 50: 10} if options.quick else EXAMPLES
    for examples, labels in sizes.items():
        classifier = model.adapt(*many_labels(labels, examples // labels))
        classifier.predict(["warm up"])
        times = [timed(partial(classifier.predict, [f"{text} with {examples}"]))[0] for text in texts]
        middle = statistics.median(times)
        least = least or middle
        rows.append(Row(
            f"{len(model.clusters)} clusters, {examples:,} examples of {labels} labels: one answer", seconds(middle),
            target=MORE if examples == 1000 else None, value=middle / least,
            note=f"{middle / least:.2f} × the answer at 25 examples; the median of {len(times)} texts never seen",
        ))  # fmt: skip
    return rows


def _starter(options: Options) -> Row:
    """The model that comes with the package: its clusters have encoders of their own."""
    support, query = few_shot_task(options.size(WAYS, 3), SHOTS, options.seed)
    classifier = mm.load_model("starter").adapt(support.texts, support.labels)
    texts = short_texts(options.size(200, 8), options.seed)
    times = [timed(partial(classifier.predict, some))[0] for some in never_seen(texts, options.size(options.rounds, 1))]
    used = sum(weight > 0 for weight in classifier.weights_.values())
    right = sum(a == b for a, b in zip(classifier.predict(list(query.texts)), query.labels, strict=True))
    return Row(
        f"the starter model, {len(texts)} short texts never seen: predict", seconds(times),
        note=f"{len(texts) / statistics.median(times):,.0f} texts a second of one core; {used} metrics have a weight; "
        f"accuracy {right / len(query):.0%}",
    )  # fmt: skip


def _long_texts(classifier: mm.FewShotClassifier, options: Options) -> Row:
    size = options.size(1_000_000, 10_000)
    texts = {"one mark": "!" * size, "emoji": "😀" * (size // 4), "one letter": "a" * size}
    with mm.encode.text_cache_of(None):
        times = {
            what: repeat(partial(classifier.predict_proba, [text]), options.rounds) for what, text in texts.items()
        }
    slowest = max(times, key=lambda what: statistics.median(times[what]))
    return Row(
        f"predict one text of {size:,} characters, {CLUSTERS} clusters", seconds(times[slowest]), target=FIVE_SECONDS,
        value=statistics.median(times[slowest]),
        note=f"the slowest of {', '.join(texts)}, repeated: {slowest}",
    )  # fmt: skip


def _memory(options: Options) -> Row:
    few, many = options.size(20_000, 50), options.size(200_000, 100)
    first, last, answers = in_fresh_process(_predict_both, few, many, options.seed).result
    return Row(
        f"memory of one predict call, {few:,} and {many:,} texts, 5 clusters", f"{first:,.0f} and {last:,.0f} MiB",
        target=FLAT, value=last - first - answers,
        note=f"peak of the process; the texts and the answers are {answers:.0f} MiB of the difference; texts repeat",
    )  # fmt: skip


def _predict_both(few: int, many: int, seed: int) -> Callable[[], tuple[float, float, float]]:
    support, _ = few_shot_task(3, SHOTS, seed)
    classifier = random_model(5, seed).adapt(support.texts, support.labels)
    base = short_texts(min(few, 2_000), seed)

    def predict() -> tuple[float, float, float]:
        answers = classifier.predict([base[at % len(base)] for at in range(few)])
        first, size = peak_memory(), answers.nbytes + 8 * few
        answers = classifier.predict([base[at % len(base)] for at in range(many)])
        return first, peak_memory(), (answers.nbytes + 8 * many - size) / 2**20

    return predict
