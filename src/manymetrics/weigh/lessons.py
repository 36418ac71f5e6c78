"""Held-out tasks' problems -> `Trust`: what is off topic, and what probabilities are worth.

Each problem is adapted to as a user would. Its own texts are in scope; texts of other held-out tasks and gibberish are
not. The targets of any evaluation are nowhere near.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manymetrics.encode.tokens import join
from manymetrics.encode.vectors import WordVectors
from manymetrics.specialize.metric import Metric
from manymetrics.weigh.calibration import Lesson, faith, learn_calibration
from manymetrics.weigh.classifier import FewShotClassifier
from manymetrics.weigh.rules import Rules
from manymetrics.weigh.scope import Scope, learn_scope
from manymetrics.weigh.selection import Drawn
from manymetrics.weigh.trust import Trust

STRANGE_TEXTS = 60  # of other tasks, in each problem
STRANGE_PROBLEMS = 10  # that these are drawn from
GIBBERISH = 30
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz  ", "asdfghjkl;qwertyuiop", "0123456789!@#$%^&*()_+-=[]{}|;:,.<>?/~ ")


@dataclass(frozen=True, eq=False)
class Parts:
    """As much of a model as adapting needs."""

    vectors: WordVectors
    metrics: tuple[Metric, ...]
    rules: Rules
    trust: Trust = field(default_factory=Trust)


def make_gibberish(count: int, rng: np.random.Generator) -> list[str]:
    """Random letters, mashed keys, random signs."""
    return [
        "".join(rng.choice(list(ALPHABETS[place % len(ALPHABETS)]), int(rng.integers(3, 40)))) for place in range(count)
    ]


def learn_trust(parts: Parts, problems: Sequence[Drawn], *, seed: int) -> Trust:
    """Scope first, then the calibration of the answers it leaves."""
    tasks = {drawn.task for drawn in problems}
    if len(tasks) < 2:
        return Trust()
    own, strange, adapted = [], [], []
    for drawn in problems:
        classifier = FewShotClassifier(parts).fit(drawn.shots.tokens.texts, drawn.shots.labels)
        looks = classifier.look(drawn.texts.tokens)
        own.append(looks.features)
        adapted.append((drawn, classifier, looks))
        rng = _rng(drawn, seed)
        others = [other.texts.tokens for other in problems if other.task != drawn.task]
        some = join([others[place] for place in rng.integers(len(others), size=STRANGE_PROBLEMS)])
        strange.append(classifier.look(some.take(rng.integers(len(some), size=STRANGE_TEXTS))).features)
        nonsense = parts.vectors.read(make_gibberish(GIBBERISH, rng))
        strange.append(classifier.look(nonsense).features)
    scope = learn_scope(own, strange)
    lessons = [_lesson(drawn, classifier, looks, scope) for drawn, classifier, looks in adapted]
    return Trust(scope, learn_calibration(lessons))


def _lesson(drawn: Drawn, classifier: FewShotClassifier, looks: Any, scope: Scope) -> Lesson:
    columns = np.searchsorted(classifier.classes_, drawn.texts.labels)
    return Lesson(classifier.case_, looks.chances, columns, faith(scope.log_odds(looks.features)))


def _rng(drawn: Drawn, seed: int) -> np.random.Generator:
    text = "\n".join([str(seed), drawn.task, *drawn.shots.tokens.texts])
    return np.random.default_rng(list(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))
