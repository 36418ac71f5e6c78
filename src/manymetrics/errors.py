"""Everything that can go wrong: the classes are one family, and a message says what was found, where, and the cure.

`exit_code` is that of the command line: 1 for a failure, 2 for what the user handed in, 3 for a stage of which nothing
came, 4 for what the machine lacks.
"""

LISTED = 5  # items of a list in a message


def list_first(items: list[str], mark: str = ", ", more: str = " and {:,} more", *, limit: int = LISTED) -> str:
    """The first items of a list and the number of the others, for a message."""
    return mark.join(items[:limit]) + (more.format(len(items) - limit) if len(items) > limit else "")


class ManyMetricsError(Exception):
    """Any error this package raises on purpose."""

    exit_code = 1


class InputError(ManyMetricsError, ValueError):
    """What the user handed in cannot be used as it is."""

    exit_code = 2


class TaskFormatError(InputError):
    """A file cannot be read as a task."""


class NotEnoughExamples(InputError):
    """A task has too few examples or labels for what was asked of it."""


class DataError(InputError):
    """An array or a list has the wrong shape or holds values it must not."""


class RecipeError(InputError):
    """A setting is unknown, or set to a value it cannot have."""


class StageFailed(ManyMetricsError):
    """Every piece of a stage's work failed."""

    exit_code = 3


class ModelError(ManyMetricsError):
    """A saved model is damaged, is not ours, or was written by a newer version."""

    exit_code = 2


class ServiceError(ManyMetricsError):
    """The service refuses a request of a client; `status` is that of HTTP."""

    exit_code = 2

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class EnvironmentProblem(ManyMetricsError):
    """The machine lacks something; the same command works once it is there."""

    exit_code = 4


class MissingExtra(EnvironmentProblem):
    """An optional part of the package is not installed."""


class MissingVectors(EnvironmentProblem):
    """The word vectors asked for are not on this machine."""


class MissingEncoder(EnvironmentProblem):
    """The sentence encoder asked for is not on this machine."""


class DidNotConverge(UserWarning):
    """An iteration stopped before it reached its tolerance."""


class TaskSkipped(UserWarning):
    """One task of a folder could not be used and is skipped."""


class JobSkipped(UserWarning):
    """A job of a long computation failed and is skipped."""


class TrainingWarning(UserWarning):
    """A training had no held-out task to validate on, or was no better than no training."""
