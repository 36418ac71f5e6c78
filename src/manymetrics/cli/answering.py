"""`predict`: what a model, adapted to a few examples, answers on texts. `explain`: why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.adapting import FORMAT, REJECTED, open_classifier, rejection_options, task_options
from manymetrics.cli.input import read_lines, require_utf8
from manymetrics.cli.output import examples_of_use, json_option, say, without_breaks, write_json, write_lines, write_tsv

AT_ONCE = 1024  # texts read before they are answered
LEGEND = """\
The share of an example is its part of the decision: each metric's probability of a label, divided among the label's
examples by how near they are to the text. Its similarity is its cosine with the text, averaged over the metrics by
their weights. So an example of a likelier label, or of one with fewer examples, can have a larger share with a smaller
similarity."""


@click.command(
    short_help="Answer texts, from a few examples of a new task.",
    epilog=examples_of_use(
        'manymetrics predict model --examples shots.tsv "where is my parcel"',
        "manymetrics predict model --examples shots.tsv --input texts.txt --json > answers.jsonl",
        "cut -f1 new.tsv | manymetrics predict model --classifier classifier --reject-share 0.05",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@task_options
@click.option(
    "--input",
    "source",
    metavar="FILE",
    help="File of texts, one a line; - for stdin, which is also read if no TEXT is given.",
)
@click.option("--proba", is_flag=True, help="A column for every label's probability, and a header line.")
@rejection_options
@json_option
def predict(
    *, model: Path, texts: tuple[str, ...], source: str | None, proba: bool, as_json: bool, **task: Any
) -> None:
    """Answer texts with the mix of MODEL's metrics that fits the examples.

    Writes one line for each text: label, probability, text, with tabs between them. With --reject, --reject-share or
    --margin there is a column more before the text, scope: the probability that the text is in scope, that is, of the
    kind the examples are; and the label of a rejected text is the word "rejected" (--rejected-label). A tab or line
    break in a text is written as a space, other control characters as escapes.

    With --json, one object a line, every text as it was: text, label (null if rejected), probability, scope, rejected
    (true or false), reason (of a rejection), probabilities.
    """
    if texts and source:
        raise click.UsageError("Give texts as arguments or with --input, not both.")
    asked = iter(require_utf8(texts)) if texts else read_lines(source or "-")
    classifier = open_classifier(mm.load_model(model), **task)
    labels = [str(label) for label in classifier.classes_]
    rejects = bool(classifier.reject or classifier.margin)
    word = REJECTED if classifier.rejected is None else str(classifier.rejected)
    if rejects and word in labels and not as_json:
        raise mm.InputError(f"There is a label {word!r} among the examples. Give another word with --rejected-label.")
    if classifier.fallback_:
        say(classifier.fallback_)
    if proba and not as_json:
        write_tsv(["label", "probability", *labels, *(["scope"] if rejects else []), "text"])
    while batch := list(islice(asked, AT_ONCE)):
        answers = classifier.answer(batch)
        for row, text in enumerate(batch):
            if as_json:
                _write_object(text, labels, answers, row)
            else:
                _write_answer(text, labels, answers, row, word=word if rejects else None, proba=proba)


@click.command(
    short_help="Show why texts are answered as they are.",
    epilog=examples_of_use('manymetrics explain model --examples shots.tsv "where is my parcel"'),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@task_options
@rejection_options
@json_option
def explain(*, model: Path, texts: tuple[str, ...], as_json: bool, **task: Any) -> None:
    """Show why MODEL, adapted to the examples, answers each TEXT as it does.

    First the likeliest label, the next one, and the probability that the text is in scope; whether and why it is
    rejected, if --reject, --reject-share or --margin asks for that. Then the examples that decided: the share of the
    decision that is each one's, and its similarity, the metrics' mean cosine with the text by their weights. Then the
    metrics that counted: weight, the label each finds likeliest, and the tasks it was learned from.
    """
    classifier = open_classifier(mm.load_model(model), **task)
    explanations = [classifier.explain(text) for text in require_utf8(texts)]
    if as_json:
        write_json({"format": FORMAT, "explanations": [asdict(one) for one in explanations]})
    else:
        write_lines("\n\n".join(str(without_breaks(one)) for one in explanations) + f"\n\n{LEGEND}")


def _write_answer(
    text: str, labels: Sequence[str], answers: mm.Answers, row: int, *, word: str | None, proba: bool
) -> None:
    """One line of TSV; `word` stands for the label of a rejected text, None where none is rejected."""
    probabilities, best = answers.probabilities[row].tolist(), int(answers.likeliest[row])
    label = word if word is not None and answers.rejected[row] else labels[best]
    every = [f"{probability:.4f}" for probability in probabilities] if proba else []
    scope = [f"{answers.scope[row]:.4f}"] if word is not None else []
    write_tsv([label, f"{probabilities[best]:.4f}", *every, *scope, text])


def _write_object(text: str, labels: Sequence[str], answers: mm.Answers, row: int) -> None:
    probabilities, best = answers.probabilities[row].tolist(), int(answers.likeliest[row])
    rejected = bool(answers.rejected[row])
    answer = {
        "text": text,
        "label": None if rejected else labels[best],
        "probability": probabilities[best],
        "scope": float(answers.scope[row]),
        "rejected": rejected,
        "reason": answers.reasons[row],
        "probabilities": dict(zip(labels, probabilities, strict=True)),
    }
    write_json(answer, indent=None)
