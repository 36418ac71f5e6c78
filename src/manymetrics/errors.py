"""Everything that can go wrong, as one family tree.

    ManyMetricsError                 1
    ├── InputError                   2   what the user handed in cannot be used (also a ValueError)
    │   ├── TaskFormatError          2   a file is not a task: names file, line, and the cure
    │   ├── NotEnoughExamples        2   a task is too small for what was asked of it
    │   ├── DataError                2   an array or a list has the wrong shape or values
    │   └── RecipeError              2   a setting is unknown or out of range
    ├── StageFailed                  3   nothing came of a stage: every piece of its work failed
    ├── ModelError                   2   a saved model is damaged, foreign, or from a newer version
    ├── ServiceError                 2   the service refuses a request; `status` is that of HTTP
    └── EnvironmentProblem           4   the machine lacks something; the same command works once it is there
        ├── MissingExtra             4   an optional part of the package is not installed
        ├── MissingVectors           4   word vectors are not in the cache
        └── MissingEncoder           4   a sentence encoder is not in the cache

    DidNotConverge                             a warning: an iteration stopped before it reached its tolerance
    TaskSkipped                                a warning: one task of a folder could not be used
    JobSkipped                                a warning: one piece of a long computation failed
    TrainingWarning                            a warning: a training had nothing to validate on, or gained nothing

The number is the exit code of the command line. Every message says what was found, where, and what to do about it.
"""


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
    """The service refuses a request of a client."""

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
