"""`adapt`: what a model makes of a new task's examples. `predict`: what it then answers on texts. `explain`: why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.output import (
    Command,
    examples_of_use,
    json_option,
    make_table,
    name_tasks,
    on_one_line,
    say,
    write_json,
    write_table,
    write_tsv,
)

AT_ONCE = 1024  # texts read before they are answered
FORMAT = 1


def examples_option(command: Command) -> Command:
    """The few labelled examples of the new task."""
    return click.option(
        "--examples", "path", required=True, type=click.Path(path_type=Path),
        help="Examples of the new task: a .tsv file of text<TAB>label lines, .csv, .jsonl or .parquet.",
    )(command)  # fmt: skip


def mix_options(command: Command) -> Command:
    """How the metrics are mixed, and whether a task that no cluster fits gets a model of its own."""
    command = click.option("--no-fallback", is_flag=True, help="Use the metrics even if no cluster fits.")(command)
    return click.option(
        "--mix", type=click.Choice(["default", "paper"]), default="default", show_default=True,
        help="paper: the clusters' metrics alone, weighed as published.",
    )(command)  # fmt: skip


@click.command(
    short_help="Answer texts, from a few examples of a new task.",
    epilog=examples_of_use(
        'manymetrics predict model --examples shots.tsv "where is my parcel"',
        "manymetrics predict model --examples shots.tsv --input texts.txt --json > answers.jsonl",
        "cut -f1 new.tsv | manymetrics predict model --examples shots.tsv",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@examples_option
@click.option(
    "--input",
    "source",
    metavar="FILE",
    help="File of texts, one a line; - for stdin, which is also read if no TEXT is given.",
)
@click.option("--proba", is_flag=True, help="A column for every label's probability, and a header line.")
@click.option(
    "--reject",
    type=click.FloatRange(0, 1),
    default=None,
    metavar="P",
    help="No label for a text whose probability of being in scope is below P; 0.5 is a good one.",
)
@mix_options
@json_option
def predict(*, model: Path, texts: tuple[str, ...], path: Path, source: str | None, proba: bool, reject: float | None,
            mix: str, no_fallback: bool, as_json: bool) -> None:  # fmt: skip
    """Answer texts with the mix of MODEL's metrics that fits the examples.

    Writes one line for each text: label, probability, text, with tabs between them; with --json one object a line. With
    --reject the label of a text that is out of scope is empty, and null in JSON.
    """
    if texts and source:
        raise click.UsageError("Give texts as arguments or with --input, not both.")
    asked = iter(_check(texts)) if texts else _read_lines(source or "-")
    _, classifier = adapt_to(path, mm.load_model(model), mix=mix, adaptive=not no_fallback, reject=reject or False)
    if classifier.fallback_:
        say(classifier.fallback_)
    labels = [str(label) for label in classifier.classes_]
    if proba and not as_json:
        write_tsv(["label", "probability", *labels, "text"])
    while batch := list(islice(asked, AT_ONCE)):
        answers = classifier.answer(batch)
        for text, probabilities, out in zip(batch, answers.probabilities.tolist(), answers.rejected, strict=True):
            every = dict(zip(labels, probabilities, strict=True))
            _write_answer(text, every, out=bool(out), proba=proba, as_json=as_json)


@click.command(
    short_help="Show what a model makes of a new task's examples.",
    epilog=examples_of_use("manymetrics adapt model --examples shots.tsv"),
)
@click.argument("model", type=click.Path(path_type=Path))
@examples_option
@json_option
def adapt(*, model: Path, path: Path, as_json: bool) -> None:
    """Show what MODEL makes of a new task: how much each of its metrics counts, and how well that does.

    To tell how well, every example is answered once as though it were not given, a tenth of them at a time.
    """
    learned = mm.load_model(model)
    examples, classifier = adapt_to(path, learned)
    metrics = {metric.name: metric for metric in learned.metrics}
    about = {
        "format": FORMAT,
        "labels": {str(label): examples.labels.count(str(label)) for label in classifier.classes_},
        "examples": len(examples),
        "weights": [
            {"metric": name, "kind": metrics[name].kind if name in metrics else name, "weight": weight,
             "tasks": list(metrics[name].tasks) if name in metrics else []}
            for name, weight in sorted(classifier.weights_.items(), key=lambda pair: -pair[1])
        ],
        "fallback": classifier.fallback_,
        "left_out_accuracy": _left_out_accuracy(classifier),
    }  # fmt: skip
    if as_json:
        write_json(about)
    else:
        _show(about)


@click.command(
    short_help="Show why texts are answered as they are.",
    epilog=examples_of_use('manymetrics explain model --examples shots.tsv "where is my parcel"'),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@examples_option
@mix_options
@json_option
def explain(*, model: Path, texts: tuple[str, ...], path: Path, mix: str, no_fallback: bool, as_json: bool) -> None:
    """Show why MODEL, adapted to the examples, answers each TEXT as it does.

    The examples that decided and their shares, the metrics that counted and the tasks they were learned from, and
    whether the text looks out of scope.
    """
    _, classifier = adapt_to(path, mm.load_model(model), mix=mix, adaptive=not no_fallback, reject=True)
    explanations = [classifier.explain(text) for text in _check(texts)]
    if as_json:
        write_json({"format": FORMAT, "explanations": [asdict(one) for one in explanations]})
    else:
        click.echo("\n\n".join(on_lines(str(one)) for one in explanations))


@click.command(
    short_help="Look a new task's examples over.",
    epilog=examples_of_use("manymetrics doctor model --examples shots.tsv"),
)
@click.argument("model", type=click.Path(path_type=Path))
@examples_option
@json_option
def doctor(*, model: Path, path: Path, as_json: bool) -> None:
    """Look the examples over: contradictions, duplicates, labels that are confused or have too few examples.

    To tell how well they answer, every example is answered once as though it were not given, a tenth at a time.
    """
    _, classifier = adapt_to(path, mm.load_model(model))
    found = classifier.doctor()
    if as_json:
        unknown = {} if found.tried else dict.fromkeys(("accuracy", "low", "high"))
        write_json({"format": FORMAT, **asdict(found), **unknown})
    else:
        click.echo(on_lines(str(found)))


def on_lines(text: str) -> str:
    """Several lines, each safe to be shown in a terminal."""
    return "\n".join(on_one_line(line) for line in text.split("\n"))


def adapt_to(path: Path, model: mm.MetricModel, **options: Any) -> tuple[mm.Examples, mm.FewShotClassifier]:
    """The examples of a file, and the model adapted to them."""
    examples: mm.Examples = mm.read_examples(path)
    try:
        return examples, model.adapt(examples.texts, examples.labels, **options)
    except mm.NotEnoughExamples as problem:
        raise mm.NotEnoughExamples(f"{path}: {problem}") from problem


def _left_out_accuracy(classifier: mm.FewShotClassifier) -> float | None:
    """The share of examples answered rightly from the others, among those whose label has others."""
    found: mm.Diagnosis = classifier.doctor()
    return found.accuracy if found.tried else None


def _show(about: dict[str, Any]) -> None:
    counts = ", ".join(f"{label} ({count})" for label, count in about["labels"].items())
    click.echo(on_one_line(f"{about['examples']} examples of {len(about['labels'])} labels: {counts}"))
    accuracy = about["left_out_accuracy"]
    click.echo(f"Examples answered from the others: {'not tried' if accuracy is None else f'{accuracy:.0%} right'}")
    click.echo(on_one_line(about["fallback"] or "The metrics below answer together.") + "\n")
    table = make_table("metric", "kind", "learned from", numbers=["weight"])
    for row in about["weights"]:
        table.add_row(row["metric"], row["kind"], name_tasks(row["tasks"]), f"{row['weight']:.3f}")
    write_table(table)


def _write_answer(text: str, probabilities: dict[str, float], *, out: bool, proba: bool, as_json: bool) -> None:
    likeliest = max(probabilities, key=lambda label: probabilities[label])
    if as_json:
        label = None if out else likeliest
        answer = {"text": text, "label": label, "probability": probabilities[likeliest], "probabilities": probabilities}
        click.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False))
    else:
        every = [f"{probability:.4f}" for probability in probabilities.values()] if proba else []
        write_tsv(["" if out else likeliest, f"{probabilities[likeliest]:.4f}", *every, text])


def _read_lines(source: str) -> Iterator[str]:
    """The lines of a UTF-8 file, one by one; an empty line is a text too."""
    where = "stdin" if source == "-" else source
    if source == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise mm.InputError("There are no texts to answer. Give them as arguments, with --input FILE, or on stdin.")
    try:
        file = click.open_file(source, "rb")
    except OSError as problem:
        raise mm.InputError(f"{source}: cannot be opened ({problem.strerror}). Give a file of texts.") from problem
    return _decode(file, where)


def _decode(lines: Iterable[bytes], where: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as problem:
            found = f"the byte 0x{problem.object[problem.start]:02x} is not UTF-8"
            raise mm.InputError(f"{where}, line {number}: {found}. Save the texts as UTF-8.") from None


def _check(texts: tuple[str, ...]) -> tuple[str, ...]:
    for number, text in enumerate(texts, start=1):
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise mm.InputError(f"Text {number} of the command line is not UTF-8. Give it with --input, as UTF-8.")
    return texts
