"""Classifiers that are fitted already.

A version of a classifier never changes, so what is kept under its number is never stale, in whichever process: another
process that changes the classifier makes another version, and the number that answers is read from the database.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import manymetrics as mm

Name = tuple[str, int]  # classifier, version


class FittedCache:
    """Fitted classifiers, the ones used last; bounded by their number and by the examples they hold together."""

    def __init__(self, *, classifiers: int, examples: int) -> None:
        self._most, self._most_examples = classifiers, examples
        self._kept: OrderedDict[Name, mm.FewShotClassifier] = OrderedDict()
        self._examples = 0
        self._lock = threading.Lock()

    def get(self, name: Name, make: Callable[[], mm.FewShotClassifier]) -> mm.FewShotClassifier:
        """The classifier of this name; made where it is not there."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        made = make()
        self.keep(name, made)
        return made

    def keep(self, name: Name, fitted: mm.FewShotClassifier) -> None:
        """Keep a classifier, and drop those that were not used for longest."""
        with self._lock:
            self._drop(name)
            self._kept[name] = fitted
            self._examples += _size(fitted)
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._examples > self._most_examples):
                self._drop(next(iter(self._kept)))

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, name: Name) -> None:
        gone = self._kept.pop(name, None)
        self._examples -= 0 if gone is None else _size(gone)


def _size(fitted: mm.FewShotClassifier) -> int:
    return len(fitted.examples_) + len(fitted.counter_examples_)
