"""Meta-validation tasks -> the rules of the mix: how much to trust learned metrics, shots, and clusters at all.

A few of the bank's tasks were kept from the training of every metric. Few-shot problems are drawn from them, each
metric answers, and the rules that answer best are kept. Nothing here looks at a task that anybody will be evaluated on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from manymetrics.specialize.metric import LEARNED
from manymetrics.values import Bools, Floats, Ints
from manymetrics.weigh.mix import blend, fit_mix

NEVER = -np.inf  # a threshold no task falls below
LEARNED_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
STRENGTHS = (0.5, 1.5, 5.0, 15.0, 50.0)
THRESHOLDS = (NEVER, 0.05, 0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True)
class Rules:
    """How a mix is fitted, and when it is not used."""

    learned_share: float = 0.5  # of the prior, for the learned metrics together; the other kinds share the rest
    strength: float = 5.0  # how many shots the prior is worth
    threshold: float = 0.1  # a task is out of clusters when no learned metric rises above chance by more than this

    def prior(self, kinds: Sequence[str]) -> Floats:
        """What each metric counts for before any shot is seen: (metrics,), sums to one."""
        names = list(dict.fromkeys(kinds))
        others = [name for name in names if name != LEARNED]
        share = {name: (1 - self.learned_share) / max(len(others), 1) for name in others}
        share[LEARNED] = self.learned_share if others else 1.0
        weights = np.array([share[kind] / kinds.count(kind) for kind in kinds])
        return weights / weights.sum()  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Problem:
    """Every metric's answers on one few-shot problem, and those of the single-task model to fall back to."""

    left_out: Floats  # (shots, metrics, classes): each shot as though it had not been given
    labels: Ints  # (shots,)
    chances: Floats  # (texts, metrics, classes)
    alone: Floats  # (texts, classes): the single-task model
    answers: Ints  # (texts,)


def lift_over_chance(left_out: Floats, labels: Ints, learned: Bools) -> float:
    """How far the best learned metric rises above guessing on the shots: 1 is perfect, 0 is no better than chance.

    The paper asks for 20 % accuracy, which with two labels anything reaches; so accuracy is taken from chance = 0.
    Infinite where the shots cannot tell (each label has a single example, or there is no learned metric).
    """
    known = np.isfinite(left_out).all(axis=(1, 2))
    if not known.any() or not learned.any():
        return float(np.inf)
    guesses = left_out[known][:, learned].argmax(axis=2)  # (shots, learned metrics)
    accuracy = (guesses == labels[known][:, None]).mean(axis=0).max()
    chance = 1 / left_out.shape[2]
    return float((accuracy - chance) / (1 - chance))


def tune_rules(problems: Sequence[Problem], kinds: Sequence[str]) -> Rules:
    """The rules under which the problems are answered best: accuracy first, likelihood to break ties."""
    if not problems:
        return Rules()
    best, chosen = (-np.inf, -np.inf), Rules()
    for learned_share, strength in product(LEARNED_SHARES, STRENGTHS):
        rules = Rules(learned_share, strength, NEVER)
        found = np.mean([_judge(_answer(problem, rules, kinds), problem) for problem in problems], axis=0)
        if (found[0], found[1]) > best:
            best, chosen = (found[0], found[1]), rules
    return Rules(chosen.learned_share, chosen.strength, _tune_threshold(problems, chosen, kinds))


def _tune_threshold(problems: Sequence[Problem], rules: Rules, kinds: Sequence[str]) -> float:
    learned = np.array([kind == LEARNED for kind in kinds])
    lifts = np.array([lift_over_chance(problem.left_out, problem.labels, learned) for problem in problems])
    mixed = np.array([_judge(_answer(problem, rules, kinds), problem)[0] for problem in problems])
    alone = np.array([_judge(problem.alone, problem)[0] for problem in problems])
    gains = [float(np.where(lifts < threshold, alone, mixed).mean()) for threshold in THRESHOLDS]
    return THRESHOLDS[int(np.argmax(gains))]


def _answer(problem: Problem, rules: Rules, kinds: Sequence[str]) -> Floats:
    prior = rules.prior(kinds)
    mix = fit_mix(problem.left_out, problem.labels, prior=prior, strength=rules.strength, tolerance=1e-4)
    return blend(mix.weights, problem.chances)


def _judge(chances: Floats, problem: Problem) -> tuple[float, float]:
    right = chances[np.arange(len(problem.answers)), problem.answers]
    return float(np.mean(chances.argmax(axis=1) == problem.answers)), float(np.log(np.maximum(right, 1e-12)).mean())
