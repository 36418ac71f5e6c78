"""What was said about a source: which columns hold what, how a table is written, what to call the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from manymetrics.collect.delimited import FOUND, Dialect
from manymetrics.collect.formats import LABEL_NAMES, TEXT_NAMES, listed
from manymetrics.collect.opening import require_encoding
from manymetrics.collect.rows import ReadLog
from manymetrics.errors import InputError, TaskFormatError

DELIMITER_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; text and label are found by their usual names if not given."""

    text: str | None = None
    label: str | None = None
    task: str | None = None

    def choose(self, found: Sequence[str], where: str) -> tuple[str | None, ...]:
        """The columns of text, label, task and split among those found; upper and lower case are alike."""
        names = {name.casefold(): name for name in found}
        text = self._one(names, where, "text", self.text, TEXT_NAMES)
        label = self._one(names, where, "label", self.label, LABEL_NAMES)
        task = self._one(names, where, "task", self.task, ()) if self.task else None
        split = names.get("split")
        return text, label, task, split if split not in (text, label, task) else None

    @staticmethod
    def _one(names: Mapping[str, str], where: str, what: str, wanted: str | None, usual: Sequence[str]) -> str:
        for name in [wanted] if wanted else usual:
            if name.casefold() in names:
                return names[name.casefold()]
        expected = repr(wanted) if wanted else " or ".join(repr(name) for name in usual)
        raise TaskFormatError(
            f"{where}: found {listed(list(names.values()))}, expected {expected} for the {what}. "
            f"Name the right one with --{what}-column."
        )


@dataclass(frozen=True)
class Options:
    """What was said about a source: how to read it, and what to call the task; readers write into the log."""

    task: str  # the name of a single task
    prefix: str = ""  # what the names of several begin with
    columns: Columns = Columns()
    dialect: Dialect = FOUND
    log: ReadLog = field(default_factory=ReadLog)

    def name(self, one: str) -> str:
        """What one of several tasks is called."""
        return f"{self.prefix}-{one}" if self.prefix else one


def as_dialect(delimiter: str | None, encoding: str | None) -> Dialect:
    """How a table is written, from what was given: a delimiter by sign or by name, and an encoding."""
    found = DELIMITER_WORDS.get((delimiter or "").casefold(), delimiter)
    if found is not None and (len(found) != 1 or found in '"\r\n'):
        raise InputError(f"The delimiter is {delimiter!r}, expected one character. Try ',', ';', '|' or tab.")
    return Dialect(found, encoding and require_encoding(encoding))
