"""What the shared options name: the texts of a command, and its new task."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.options import REJECTED
from manymetrics.cli.output import say

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")  # refused by `read_texts` with advice


@dataclass(frozen=True)
class NewTask:
    """The values of the options `new_task` and `answers`: a new task, and when its texts are rejected.

    Its files are read when it is made, so that bad ones are refused before a model is loaded.
    """

    examples: Path | None
    classifier: Path | None
    counter_examples: Path | None
    descriptions: Path | None
    no_fallback: bool
    no_label_names: bool
    steps: int | str = 0
    reject: float | None = None
    reject_share: float | None = None
    margin: float | None = None
    rejected_label: str | None = None
    class_prior: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.reject is not None and self.reject_share is not None:
            raise click.UsageError("Give --reject or --reject-share, not both.")
        fixed = (self.examples, self.counter_examples, self.descriptions, self.no_fallback, self.no_label_names,
                 self.steps)  # fmt: skip
        if self.classifier is not None and any(fixed):
            raise click.UsageError(
                "A saved classifier has its own examples. Give --classifier without --examples, --counter-examples, "
                "--descriptions, --no-fallback, --no-label-names and --steps."
            )
        if self.classifier is None and self.examples is None:
            raise click.UsageError("The new task is missing. Give --examples FILE, or --classifier FOLDER.")
        _ = self._content

    def make_classifier(self, model: mm.MetricModel) -> mm.FewShotClassifier:
        """Adapt the model to the examples, or load the saved classifier; then set what the options set."""
        rejected = self.rejected_label
        if self.classifier is not None:
            classifier = mm.load_classifier(self.classifier, model)
        else:
            classifier = self._adapt(model)
            rejected = REJECTED if rejected is None else rejected
        share = self.reject_share
        settings: dict[str, Any] = {
            "reject": self.reject if share is None else classifier.scope_threshold(share),
            "margin": self.margin,
            "rejected": rejected,
            "class_prior": _read_prior(self.class_prior) or None,
        }
        return classifier.set_params(**{name: value for name, value in settings.items() if value is not None})

    @cached_property
    def _content(self) -> tuple[mm.Examples, list[str], dict[str, str]]:
        """Examples, counter-examples, and descriptions by label."""
        examples = mm.read_examples(self.examples) if self.examples else mm.Examples()
        counter_examples = _read_counter_examples(self.counter_examples) if self.counter_examples else []
        described = mm.read_examples(self.descriptions) if self.descriptions else mm.Examples()
        return examples, counter_examples, dict(zip(described.labels, described.texts, strict=True))

    def _adapt(self, model: mm.MetricModel) -> mm.FewShotClassifier:
        examples, counter_examples, descriptions = self._content
        adapt = partial(model.adapt, adaptive=not self.no_fallback, label_names=not self.no_label_names)
        try:
            classifier = adapt(examples.texts, examples.labels, counter_examples, descriptions)
        except mm.NotEnoughExamples as error:
            raise mm.NotEnoughExamples(f"{self.examples}: {error}") from error
        return _take_steps(classifier, self.steps) if self.steps else classifier


def _take_steps(classifier: mm.FewShotClassifier, steps: int | str) -> mm.FewShotClassifier:
    """Take gradient steps on the examples, with their progress on stderr."""
    started = time.monotonic()
    with mm.ProgressDisplay() as show:

        def on_step(done: int, total: int) -> None:
            show(mm.Progress("steps", done, total, time.monotonic() - started if done else 0.0))

        return classifier.take_steps(steps, on_step)


def read_texts(texts: tuple[str, ...], path: str | None, column: str | None) -> Iterator[str]:
    """The texts of the options `texts`: arguments, the rows of a table, or the lines of another file or of stdin."""
    if texts and path:
        raise click.UsageError("Give texts as arguments or with --input, not both.")
    if column is not None and path in (None, "-"):
        raise click.UsageError("--text-column names a column of a table. Give the table with --input FILE.")
    if texts:
        for text in check_utf8(texts):
            if _is_file(text):
                say(f"warning: {text} is a file, but is classified as a text. To read the file, give --input {text}.")
        return iter(texts)
    path = path or "-"
    is_table = Path(path).suffix.casefold() in (*TABLES, *SPREADSHEETS)
    return mm.read_texts(path, column=column) if is_table or column is not None else _read_lines(path)


def check_utf8(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse arguments that are not UTF-8; Python decodes such bytes as surrogates."""
    for number, text in enumerate(texts, start=1):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise mm.InputError(
                f"Text {number} of the command line is not UTF-8. Give it in a UTF-8 file: --input FILE."
            )
    return texts


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a file name, or with a NUL character
        return False


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


def _read_counter_examples(path: Path) -> list[str]:
    texts = [text for text in _read_lines(str(path)) if text.strip()]
    if not texts:
        raise mm.InputError(f"{path}: found no counter-examples. Write one text per line.")
    return texts


def _read_prior(given: tuple[str, ...]) -> dict[str, float]:
    """Read LABEL=SHARE; the last equals sign separates, because a label may contain others."""
    shares: dict[str, float] = {}
    for pair in given:
        label, _, share = pair.rpartition("=")
        if label in shares:
            raise click.UsageError(f"Found --class-prior twice for {label!r}. Give each label once.")
        try:
            shares[label] = float(share)
        except ValueError as error:
            raise click.UsageError(f"Found --class-prior {pair}. Give LABEL=SHARE, such as refund=0.2.") from error
    return shares
