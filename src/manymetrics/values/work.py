"""A piece of a long computation, who does it, what all pieces share, and random generators made from content."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from manymetrics.values.tasks import TaskBank

Item = TypeVar("Item")


def random_key(seed: int, *parts: str) -> bytes:
    """A hash of the seed and some content: equal content gives an equal key in every process."""
    return hashlib.sha256(" ".join([str(seed), *parts]).encode("utf-8", "surrogatepass")).digest()


def rng_for(seed: int, *parts: str) -> np.random.Generator:
    """A generator that depends on the seed and on some content, such as the hash of a task, and on nothing else."""
    return np.random.default_rng(list(random_key(seed, *parts)))


@dataclass(frozen=True)
class Job:
    """A piece of work whose result depends on nothing but its `spec` and its `inputs`.

    The result of a job with `parts` is a JSON object with a value for each. The value of a part depends on the job
    and on what the part's hash stands for, never on the other parts, so parts can be stored and repeated one by one.
    """

    name: str
    spec: Mapping[str, Any]  # numbers, texts and hashes that can be written as JSON
    inputs: tuple[bytes, ...] = ()  # results of earlier jobs
    parts: Mapping[str, str] = field(default_factory=dict)  # name -> hash
    size: float = 1.0  # how much work it is beside the others of its stage; no part of what it is

    def rng(self, seed: int) -> np.random.Generator:
        """A generator made from the job's content, not from its name or from when and where it runs.

        `representation`, which says how other values of the spec are read, does not count.
        """
        content = {name: _without_names(value) for name, value in self.spec.items() if name != "representation"}
        text = json.dumps([seed, content], sort_keys=True)
        return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


def _without_names(value: Any) -> Any:
    """Hashes by name as a sorted list of hashes, so that random numbers do not depend on the names of tasks."""
    is_named = isinstance(value, Mapping) and value and all(isinstance(item, str) for item in value.values())
    return sorted(value.values()) if is_named else value


@dataclass(frozen=True, eq=False)
class SharedData:
    """What every job of a stage may use: the bank's tasks, and the encoder that learning starts from."""

    bank: TaskBank
    base: Any

    def only(self, names: Iterable[str]) -> "SharedData":
        """The same with these tasks alone, in the order of the bank."""
        wanted = set(names)
        return replace(self, bank=self.bank.only([name for name in self.bank.names if name in wanted]))


class Each(Protocol):
    """The items of a loop, one after the other, with its progress reported as a stage."""

    def __call__(self, stage: str, items: Sequence[Item], *, name: Callable[[Item], str] = str,
                 size: Callable[[Item], float] = lambda item: 1.0) -> Iterator[Item]:  # fmt: skip
        """`name` says what an item is called, `size` how much work it is beside the others."""


def no_progress(stage: str, items: Sequence[Item], *, name: Any = None, size: Any = None) -> Iterator[Item]:
    """The items alone, where nobody wants to know how far a loop has come."""
    return iter(items)


class RunJobs(Protocol):
    """Where jobs are worked on: a function from jobs to their results, by name."""

    def __call__(self, stage: str, do: Callable[[Job, Any], bytes], jobs: Sequence[Job]) -> dict[str, bytes]:
        """Do every job. A job without a result is skipped."""

    @property
    def each(self) -> Each:
        """A loop in this process whose progress is reported."""
