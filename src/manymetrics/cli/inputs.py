"""What the shared options name: the texts of a command, and its new task."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.options import REJECTED, STARTER
from manymetrics.cli.output import say

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")  # refused by `read_texts` with advice
SAVED = ("examples", "counter_examples", "descriptions", "no_fallback", "no_label_names", "steps")  # in a classifier


def open_model(model: str) -> mm.MetricModel:
    """Load a model; the encoder of the starter model is fetched if it is not on this machine."""
    if model == STARTER:
        fetch_encoder_if_missing(mm.Recipe().encoder)
    return mm.load_model(model)


def model_and_texts(model: str, texts: tuple[str, ...], path: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The model and the texts of a command whose first argument may be either.

    It is a model if it is a folder or the name of the starter model. A single word before other texts is refused,
    because it may be the misspelled name of a folder. So is what is not UTF-8; Python decodes such bytes as surrogates.
    """
    if model != STARTER and not os.path.isdir(model):
        if (texts or path) and not model.split()[1:]:
            raise mm.InputError(
                f"There is no model folder {model!r}. Give the folder of a model. If it is a text, put {STARTER} "
                "before it."
            )
        model, texts = STARTER, (model, *texts)
    for number, text in enumerate(texts, start=1):
        if any("\ud800" <= character <= "\udfff" for character in text):
            message = f"Text {number} of the command line is not UTF-8. Give it in a UTF-8 file: --input FILE."
            raise mm.InputError(message)
    return model, texts


def make_classifier(model: str, task: dict[str, Any]) -> mm.FewShotClassifier:
    """The classifier of a model for the new task of the options `new_task` and `answers`.

    Files are read before the model is loaded, so that bad ones are refused without delay.
    """
    settings = {"margin": task.get("margin"), "rejected": task.get("rejected_label"), "reject": task.get("reject"),
                "class_prior": task.get("class_prior") or None}  # fmt: skip
    if settings["reject"] is not None and task["reject_share"] is not None:
        raise click.UsageError("Give --reject or --reject-share, not both.")
    given = {} if task["classifier"] else _read_task(task)
    if task["classifier"] and (wrong := [f"--{name.replace('_', '-')}" for name in SAVED if task[name]]):
        raise click.UsageError(f"A saved classifier has its own examples. Give --classifier without {wrong[0]}.")
    learned = open_model(model)
    if task["classifier"]:
        classifier = mm.load_classifier(task["classifier"], learned)
    else:
        try:
            classifier = learned.adapt(**given).set_params(rejected=REJECTED)
        except mm.NotEnoughExamples as error:
            raise mm.NotEnoughExamples(f"{task['examples']}: {error}") from error
    if task["steps"]:
        classifier = take_steps(classifier, task["steps"])
    if task.get("reject_share") is not None:
        settings["reject"] = classifier.scope_threshold(task["reject_share"])
    return classifier.set_params(**{name: value for name, value in settings.items() if value is not None})


def _read_task(task: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `MetricModel.adapt`."""
    if task["examples"] is None:
        raise click.UsageError("The new task is missing. Give --examples FILE, or --classifier FOLDER.")
    examples = mm.read_examples(task["examples"])
    described = mm.read_examples(task["descriptions"]) if task["descriptions"] else mm.Examples()
    outside, path = [], task["counter_examples"]
    if path and not (outside := [text for text in _read_lines(str(path)) if text.strip()]):
        raise mm.InputError(f"{path}: found no counter-examples. Write one text per line.")
    return {
        "texts": examples.texts,
        "labels": examples.labels,
        "counter_examples": outside,
        "descriptions": dict(zip(described.labels, described.texts, strict=True)),
        "adaptive": not task["no_fallback"],
        "label_names": not task["no_label_names"],
    }


def take_steps(classifier: mm.FewShotClassifier, steps: int | str) -> mm.FewShotClassifier:
    """Take gradient steps on the examples, with their progress on stderr."""
    started = time.monotonic()
    with mm.engine.ProgressDisplay() as show:

        def on_step(done: int, total: int) -> None:
            show(mm.Progress("steps", done, total, time.monotonic() - started if done else 0.0))

        return classifier.take_steps(steps, on_step)


def read_texts(texts: tuple[str, ...], path: str | None, column: str | None) -> Iterator[str]:
    """The texts of the options `texts`: arguments, the rows of a table, or the lines of another file or of stdin."""
    if texts and path:
        raise click.UsageError("Give texts as arguments or with --input, not both.")
    if column is not None and path in (None, "-"):
        raise click.UsageError("--text-column names a column of a table. Give the table with --input FILE.")
    for text in texts:
        if os.path.isfile(text):
            say(f"warning: {text} is a file, but is classified as a text. To read the file, give --input {text}.")
    if texts:
        return iter(texts)
    path = path or "-"
    is_table = Path(path).suffix.casefold() in (*TABLES, *SPREADSHEETS)
    return mm.read_texts(path, column=column) if is_table or column is not None else _read_lines(path)


def _read_lines(path: str) -> Iterator[str]:
    """The lines of a UTF-8 file, or of stdin for `-`. An empty line is a text, too."""
    if path == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise mm.InputError("There are no texts. Give them as arguments, with --input FILE, or on stdin.")
    try:
        file = click.open_file(path, "rb")
    except OSError as error:
        raise mm.InputError(f"{path}: cannot be opened ({error.strerror}). Give a file of texts.") from error
    return _decode(file, "stdin" if path == "-" else path)


def _decode(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            message = f"{name}, line {number}: the byte 0x{byte:02x} is not UTF-8. Save the texts as UTF-8."
            raise mm.InputError(message) from None
