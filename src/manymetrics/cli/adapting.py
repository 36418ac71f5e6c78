"""`adapt`: what a model makes of a new task's examples, to look at and to keep. `doctor`: what is wrong with them.

The options that say what the task is, and when a text is rejected, are here for all commands that answer.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.input import read_counter_examples
from manymetrics.cli.output import (
    Command,
    examples_of_use,
    json_option,
    make_table,
    name_tasks,
    say,
    without_breaks,
    write_json,
    write_lines,
    write_table,
)

FORMAT = 1
REJECTED = "rejected"  # the label of a text that is rejected, if nothing else is said
EVEN = 0.5  # what `reject=True` stands for
SHARES = (0.01, 0.05, 0.1)  # of texts in scope that may be lost, for which `adapt` tells a threshold
EVEN_TO = 1e-6  # shares of labels that differ by less are alike


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one."""
    return lambda command: reduce(lambda so_far, option: option(so_far), reversed(options), command)


mix_options = with_options(
    click.option(
        "--mix",
        type=click.Choice(["default", "paper"]),
        help="paper: the clusters' metrics alone, weighed as published.  [default: default]",
    ),
    click.option("--no-fallback", is_flag=True, help="Use the metrics even if no cluster fits."),
    click.option(
        "--no-label-names", is_flag=True, help="Compare texts with examples alone, whatever labels are called."
    ),
)
task_options = with_options(
    click.option(
        "--examples",
        "path",
        type=click.Path(path_type=Path),
        help="Examples of the new task: a .tsv file of text<TAB>label lines, .csv, .jsonl or .parquet.",
    ),
    click.option(
        "--classifier", "saved", type=click.Path(path_type=Path), help="Instead: a folder saved by `adapt --save`."
    ),
    click.option(
        "--counter-examples",
        "counters",
        type=click.Path(path_type=Path),
        help="File of texts that are out of scope, one a line.",
    ),
    click.option(
        "--descriptions",
        type=click.Path(path_type=Path),
        help="What labels mean: a file as of examples, a line for each label. Such a label needs no example.",
    ),
    mix_options,
)
threshold_options = with_options(
    click.option(
        "--reject",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Reject a text whose probability of being in scope is below P; 0 rejects none.",
    ),
    click.option(
        "--reject-share",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="S",
        help="Instead: the P that loses about the share S of the texts in scope, estimated from the examples, each "
        "left out in turn.",
    ),
)
rejection_options = with_options(
    threshold_options,
    click.option(
        "--margin",
        type=click.FloatRange(0, 1),
        metavar="M",
        help="Also reject a text whose two likeliest labels have probabilities closer than M.",
    ),
    click.option(
        "--rejected-label", "word", metavar="WORD", help=f"What stands for a label then.  [default: {REJECTED}]"
    ),
    click.option(
        "--class-prior",
        "prior",
        multiple=True,
        metavar="LABEL=SHARE",
        help="How common a label is among the texts to come; give it for every label.",
    ),
)


@click.command(
    short_help="Show, and save, what a model makes of a new task's examples.",
    epilog=examples_of_use(
        "manymetrics adapt model --examples shots.tsv",
        "manymetrics adapt model --examples shots.tsv --reject-share 0.05 --save classifier",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@task_options
@rejection_options
@click.option("--save", "place", type=click.Path(path_type=Path), help="Folder to save the classifier to.")
@json_option
def adapt(*, model: Path, place: Path | None, as_json: bool, **task: Any) -> None:
    """Show what MODEL makes of a new task: how much each of its metrics counts, and how well that does.

    To tell how well, every example is answered once as though it were not given, a tenth of them at a time. The weights
    are shared by the model's metrics and by "regression", one on the cosines of all of them. With --save the
    examples and settings are kept in a folder, for `predict`, `explain` and `doctor --classifier`, beside MODEL.
    """
    learned = mm.load_model(model)
    classifier = open_classifier(learned, **task)
    if place is not None:
        classifier.save(place)
    about = _describe(learned, classifier)
    if as_json:
        write_json(about)
    else:
        _show(about, classifier)
    if place is not None:
        say(f"The classifier is in {place}, with its example texts. Use it with: --classifier {place}")


@click.command(
    short_help="Look a new task's examples over.",
    epilog=examples_of_use("manymetrics doctor model --examples shots.tsv"),
)
@click.argument("model", type=click.Path(path_type=Path))
@task_options
@json_option
def doctor(*, model: Path, as_json: bool, **task: Any) -> None:
    """Look the examples over: contradictions, duplicates, labels that are confused or have too few examples.

    To tell how well they answer, every example is answered once as though it were not given, a tenth at a time.
    """
    found = open_classifier(mm.load_model(model), **task).doctor()
    if as_json:
        unknown = {} if found.tried else dict.fromkeys(("accuracy", "low", "high"))
        write_json({"format": FORMAT, **asdict(found), **unknown, "chance": found.is_chance})
    else:
        write_lines(str(without_breaks(found)))


def open_classifier(
    model: mm.MetricModel,
    *,
    path: Path | None,
    saved: Path | None,
    counters: Path | None,
    descriptions: Path | None,
    mix: str | None,
    no_fallback: bool,
    no_label_names: bool,
    reject: float | None = None,
    reject_share: float | None = None,
    margin: float | None = None,
    word: str | None = None,
    prior: tuple[str, ...] = (),
) -> mm.FewShotClassifier:
    """The model adapted to the examples of a file, or as it was saved; with the limits asked for."""
    if reject is not None and reject_share is not None:
        raise click.UsageError("Give --reject or --reject-share, not both.")
    if saved is not None:
        if path or counters or descriptions or mix or no_fallback or no_label_names:
            raise click.UsageError(
                "--classifier has examples and a mix of its own. Leave out --examples, --counter-examples, "
                "--descriptions, --mix, --no-fallback and --no-label-names, or --classifier."
            )
        classifier = mm.load_classifier(saved, model)
    elif path is not None:
        with _naming(path):
            examples = mm.read_examples(path)
            outside = read_counter_examples(counters) if counters is not None else []
            meant = mm.read_examples(descriptions) if descriptions is not None else mm.Examples()
            classifier = model.adapt(
                examples.texts,
                examples.labels,
                outside,
                dict(zip(meant.labels, meant.texts, strict=True)),
                mix=mix or "default",
                adaptive=not no_fallback,
                label_names=not no_label_names,
            )
    else:
        raise click.UsageError("Say what the task is: --examples FILE, or --classifier FOLDER.")
    if reject_share is not None:
        reject = classifier.scope_threshold(reject_share)
    asked: dict[str, Any] = {
        "reject": reject,
        "margin": margin,
        "rejected": REJECTED if word is None and saved is None else word,
        "class_prior": _read_prior(prior) or None,
    }
    return classifier.set_params(**{name: value for name, value in asked.items() if value is not None})


def _read_prior(given: tuple[str, ...]) -> dict[str, float]:
    """Shares of labels; the last equals sign parts them, as a label may hold others."""
    found: dict[str, float] = {}
    for one in given:
        label, _, share = one.rpartition("=")
        if label in found:
            raise click.UsageError(f"Found --class-prior twice for {label!r}. Give every label once.")
        try:
            found[label] = float(share)
        except ValueError as problem:
            told = f"Found --class-prior {one}. Write a label and its share, as in: refund=0.2"
            raise click.UsageError(told) from problem
    return found


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say of examples that are too few which file they are of."""
    try:
        yield
    except mm.NotEnoughExamples as problem:
        raise mm.NotEnoughExamples(f"{path}: {problem}") from problem


def _describe(model: mm.MetricModel, classifier: mm.FewShotClassifier) -> dict[str, Any]:
    members = {member.name: member for member in classifier.adapted_.ensemble.members}
    counts = Counter(str(label) for _, label in classifier.examples_)
    found: mm.Diagnosis = classifier.doctor()
    return {
        "format": FORMAT,
        "labels": {str(label): counts[str(label)] for label in classifier.classes_},
        "examples": counts.total(),
        "counter_examples": len(classifier.counter_examples_),
        "weights": [
            {"metric": name, "kind": members[name].kind, "weight": weight, "tasks": list(members[name].tasks)}
            for name, weight in sorted(classifier.weights_.items(), key=lambda pair: -pair[1])
        ],
        "class_prior": {str(label): share for label, share in classifier.class_prior_.items()},
        "same_labels": _tasks_with_labels(model, classifier),
        "label_names": classifier.uses_names_,
        "strange": _tell_strange(model, classifier),
        "route": None if classifier.route_ is None else classifier.route_.as_dict(),
        "fallback": classifier.fallback_,
        "left_out_accuracy": found.accuracy if found.tried else None,  # None: no label has two examples
        "chance": found.is_chance,
        "reject": threshold_of(classifier),
        "margin": float(classifier.margin),
        "thresholds": {f"{share:g}": _threshold(classifier, share) for share in SHARES},
    }  # fmt: skip


def _tasks_with_labels(model: mm.MetricModel, classifier: mm.FewShotClassifier) -> list[str]:
    """The tasks of the bank with the same labels, where they have metrics of their own."""
    labels = tuple(sorted(map(str, classifier.classes_)))
    return [name for one in model.origin.by_labels if one.labels == labels for name in one.tasks]


def _tell_strange(model: mm.MetricModel, classifier: mm.FewShotClassifier) -> str | None:
    """A sentence on examples in words that the model's sentence encoder hardly knows; None where there are few."""
    texts = mm.Texts([text for text, _ in classifier.examples_])
    encoders = [metric.encoder for metric in model.metrics if isinstance(metric.encoder, mm.SentenceEncoder)]
    return mm.tell_foreign(encoders[0], texts) if encoders and len(texts) else None


def _threshold(classifier: mm.FewShotClassifier, share: float) -> float | None:
    """The threshold that loses a share of the texts in scope; None where the examples cannot tell."""
    try:
        return classifier.scope_threshold(share)
    except mm.NotEnoughExamples:
        return None


def _show(about: dict[str, Any], classifier: mm.FewShotClassifier) -> None:
    counts = ", ".join(f"{label} ({count})" for label, count in about["labels"].items())
    accuracy = about["left_out_accuracy"]
    others = f", and {about['counter_examples']} counter-examples" if about["counter_examples"] else ""
    chance = ", which is chance: the examples do not tell the labels apart" if about["chance"] else ""
    lines = [
        f"{about['examples']} examples of {len(about['labels'])} labels{others}: {without_breaks(counts)}",
        f"Examples answered from the others: {'not tried' if accuracy is None else f'{accuracy:.0%} right'}{chance}",
        *_same_labels_told(about["same_labels"]),
        *_prior_told(about["class_prior"]),
        "The labels' names count as examples." if about["label_names"] else "The labels' names do not count.",
        *([] if about["strange"] is None else [about["strange"]]),
        *([] if about["route"] is None else [f"It is {without_breaks(about['route']['said'])}."]),
        rejection_told(classifier),
        *_thresholds_told(about["thresholds"]),
        f"{about['fallback']} The weights below are not used."
        if about["fallback"]
        else "The metrics below answer together.",
    ]
    write_lines("\n".join(lines) + "\n")
    table = make_table("metric", "kind", "learned from", numbers=["weight"])
    for row in about["weights"]:
        table.add_row(row["metric"], row["kind"], name_tasks(row["tasks"]), f"{row['weight']:.3f}")
    write_table(table)


def _same_labels_told(tasks: list[str]) -> list[str]:
    told = f"{len(tasks)} tasks of the bank have the same labels: what was learned from them alone answers."
    return [told] if tasks else []


def _prior_told(shares: dict[str, float]) -> list[str]:
    """How common labels are taken to be, where they are not all alike."""
    if max(shares.values()) - min(shares.values()) < EVEN_TO:
        return []
    told = ", ".join(f"{label} {share:.0%}" for label, share in shares.items())
    return [f"Labels are taken to be as common as this: {without_breaks(told)}. Set it with --class-prior."]


def threshold_of(classifier: mm.FewShotClassifier) -> float:
    """The probability of being in scope below which a text is rejected; 0 where none is."""
    return EVEN if classifier.reject is True else float(classifier.reject)


def rejection_told(classifier: mm.FewShotClassifier) -> str:
    """When a classifier rejects a text, in a sentence."""
    reject, margin = threshold_of(classifier), float(classifier.margin)
    when = [f"its probability of being in scope is below {reject:.3f}"] if reject else []
    when += [f"its two likeliest labels are closer than {margin:g}"] if margin else []
    return f"A text is rejected if {' or '.join(when)}." if when else "No text is rejected."


def _thresholds_told(thresholds: dict[str, float | None]) -> list[str]:
    known = [
        f"{float(share):.0%} with --reject {value:.3f}" for share, value in thresholds.items() if value is not None
    ]
    return [f"Of texts like the examples about this share would be lost: {', '.join(known)}."] if known else []
