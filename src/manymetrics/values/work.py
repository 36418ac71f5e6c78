"""A piece of a long computation, who does it, and what all pieces share."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from manymetrics.values.tasks import TaskBank


@dataclass(frozen=True)
class Unit:
    """A piece of work whose result depends on nothing but its `spec` and its `inputs`.

    The result of a unit with `parts` is a JSON object with a value for each. The value of a part depends on the unit
    and on what the part's hash stands for, never on the other parts, so parts can be kept and done again one by one.
    """

    name: str
    spec: Mapping[str, Any]  # numbers, texts and hashes that can be written as JSON
    inputs: tuple[bytes, ...] = ()  # results of earlier units
    parts: Mapping[str, str] = field(default_factory=dict)  # name -> hash

    def rng(self, seed: int) -> np.random.Generator:
        """Randomness of the unit's own: made from what the unit is, not from when or where it runs."""
        said = json.dumps([seed, self.name, self.spec], sort_keys=True, ensure_ascii=True)
        return np.random.default_rng(list(hashlib.sha256(said.encode()).digest()))


@dataclass(frozen=True, eq=False)
class Material:
    """What every unit of a stage may look at: the bank's tasks, and the encoders that learning starts from."""

    bank: TaskBank
    encoders: Mapping[str, Any]  # by fingerprint

    def only(self, names: Iterable[str]) -> "Material":
        """The same with these tasks alone, in the order of the bank."""
        wanted = set(names)
        return replace(self, bank=self.bank.only([name for name in self.bank.names if name in wanted]))


class Work(Protocol):
    """Where units are worked on: a function from units to their results, by name."""

    def __call__(self, stage: str, do: Callable[[Unit, Any], bytes], units: Sequence[Unit]) -> dict[str, bytes]:
        """Do every unit. Stages go on without a unit that has no result."""
