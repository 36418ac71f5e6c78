"""`predict`: answer texts with a model adapted to a few examples. `explain`: why. `suggest`: which to label next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.inputs import make_classifier, model_and_texts, read_texts
from manymetrics.cli.output import lines_of, say, write_json, write_result, write_tsv

BATCH = 1024  # texts read before they are answered
LEGEND = """
The share of an example is its contribution to the logit of the answer, relative to the mean over all labels; the shares
of all examples sum to one. Its similarity is a weighted sum of its cosines with the text under each encoder. The label
next to an encoder is the answer that it would give if it had all the weight."""


@options.command(
    'manymetrics predict --examples shots.tsv "where is my parcel"',
    'manymetrics predict model --examples shots.tsv "where is my parcel"',
    "manymetrics predict model --examples shots.tsv --input texts.txt --json > answers.jsonl",
    "manymetrics predict model --examples shots.tsv --input tickets.csv --text-column body",
    "cut -f1 new.tsv | manymetrics predict model --classifier classifier --reject-share 0.05",
)
@options.model
@options.texts
@options.new_task
@options.answers
@options.group("Output", options.json_option)
def predict(*, model: str, texts: tuple[str, ...], input: str | None, text_column: str | None, as_json: bool,
            **task: Any) -> None:  # fmt: skip
    """Classify texts with a model adapted to a few examples.

    MODEL is the folder of a model, by default the starter model that comes with the package.

    Prints one line per text: label, probability and text, separated by tabs. With --reject, --reject-share or --margin,
    the probability that the text is in scope precedes the text, and a rejected text has the label "rejected". Tabs and
    line breaks in a text become spaces; other control characters are escaped.

    With --json, prints one object per line: text, label (null if rejected), probability, scope, rejected (true or
    false), reason (of the rejection), probabilities.
    """
    model, texts = model_and_texts(model, texts, input)
    given = read_texts(texts, input, text_column)
    classifier = make_classifier(model, task)
    labels = [str(label) for label in classifier.classes_]
    rejects = bool(classifier.reject or classifier.margin)
    rejected = options.REJECTED if classifier.rejected in (None, "auto") else str(classifier.rejected)
    if rejects and rejected in labels and not as_json:
        raise mm.InputError(f"{rejected!r} is a label of the examples. Choose another word with --rejected-label.")
    if classifier.fallback_:
        say(classifier.fallback_)
    while batch := list(islice(given, BATCH)):
        for answer in describe_answers(batch, labels, classifier.answer(batch)):
            if as_json:
                write_json(answer, indent=None)
            else:
                numbers = [answer["probability"], *([answer["scope"]] if rejects else [])]
                label = rejected if answer["rejected"] else answer["label"]
                write_tsv(label, *(f"{number:.4f}" for number in numbers), answer["text"])


@options.command('manymetrics explain model --examples shots.tsv "where is my parcel"')
@options.model
@click.argument("texts", nargs=-1, metavar="TEXT...")
@options.new_task
@options.answers
@options.group("Output", options.json_option)
def explain(*, model: str, texts: tuple[str, ...], as_json: bool, **task: Any) -> None:
    """Explain the answers to texts.

    For each TEXT, prints the two most probable labels, the probability that the text is in scope and, if it is
    rejected, the reason; then the examples with the largest shares in the decision and their similarity to the text;
    then the weights of the metrics and the tasks from which they were learned.
    """
    model, texts = model_and_texts(model, texts)
    if not texts:
        raise click.UsageError("There is no text to explain. Give at least one.")
    classifier = make_classifier(model, task)
    explanations = [classifier.explain(text) for text in texts]
    lines = [line for explanation in explanations for line in (*lines_of(explanation), "")]
    write_result({"explanations": explanations}, [*lines[:-1], *LEGEND.split("\n")], as_json=as_json)


@options.command(
    "manymetrics suggest model --examples shots.tsv --input texts.txt",
    "cut -f1 new.tsv | manymetrics suggest model --classifier classifier --count 20 --json",
)
@options.model
@options.texts
@options.new_task
@options.group(
    "Output",
    options.count("--count", help="Maximum number of suggestions.", default=10, show_default=True),
    options.json_option,
)
def suggest(*, model: str, texts: tuple[str, ...], input: str | None, text_column: str | None, count: int,
            as_json: bool, **task: Any) -> None:  # fmt: skip
    """Suggest which unlabelled texts to label next.

    Prints one line per suggestion, the most useful first: most probable label, its probability, reason and text,
    separated by tabs. A text is suggested if MODEL, adapted to the examples, is uncertain about it, or if it is far
    from all examples. Suggestions are chosen to differ from one another. Blank texts and duplicates are ignored.

    With --json, prints one object per line: text, reason, label, probability.
    """
    model, texts = model_and_texts(model, texts, input)
    unlabelled = [text for text in read_texts(texts, input, text_column) if text.strip()]
    if not unlabelled:
        raise mm.InputError("Found no texts to choose from. Give one text per line.")
    classifier = make_classifier(model, task)
    if classifier.fallback_:
        say(classifier.fallback_)
    for suggestion in classifier.suggest(unlabelled, count):
        if as_json:
            write_json(suggestion, indent=None)
        else:
            write_tsv(str(suggestion.label), f"{suggestion.probability:.4f}", suggestion.reason, suggestion.text)


def describe_answers(
    texts: Sequence[str], labels: Sequence[str], answers: mm.classifier.Answers
) -> Iterator[dict[str, Any]]:
    """The answers to texts as the objects of `predict --json`."""
    for row, text in enumerate(texts):
        probabilities, rejected = answers.probabilities[row].tolist(), bool(answers.rejected[row])
        yield {
            "text": text,
            "label": None if rejected else labels[answers.most_probable[row]],
            "probability": max(probabilities),
            "scope": float(answers.scope[row]),
            "rejected": rejected,
            "reason": answers.reasons[row],
            "probabilities": dict(zip(labels, probabilities, strict=True)),
        }
