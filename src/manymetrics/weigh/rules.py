"""Meta-validation tasks -> the rules of the mix: how much to trust learned metrics, shots, and clusters at all.

A few of the bank's tasks were kept from the training of every metric. Few-shot problems are drawn from them, each
metric answers, and the rules that answer best are kept. To learn when no cluster fits, each problem is posed a second
time without the metric of its own cluster. Nothing here looks at a task that anybody will be evaluated on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manymetrics.specialize.metric import LEARNED
from manymetrics.values import Bools, Floats, Ints, Mix
from manymetrics.weigh.mix import blend, fit_mix, fit_posterior, fit_weights

NEVER = -np.inf  # a threshold no task falls below
STRENGTHS = (0.5, 1.5, 5.0, 15.0, 50.0)
LEAST_STRENGTH = 1.5  # of a posterior: people pick their examples, so each tells less than one drawn at random
LEAST_SHARE = 1e-9  # of a kind that is worth nothing; a prior has no zeros
THRESHOLDS = (NEVER, 0.05, 0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True)
class Rules:
    """How a mix is fitted, and when it is not used."""

    shares: Mapping[str, float] = field(default_factory=dict)  # of the prior, by kind of metric; empty: all alike
    strength: float = 5.0  # how many shots the prior of a mix is worth, or count as one in a posterior
    threshold: float = 0.1  # a task is out of clusters when no learned metric rises above chance by more than this

    def prior(self, kinds: Sequence[str], sizes: Sequence[int]) -> Floats:
        """What each metric counts for before any shot is seen: (metrics,), above 0, sums to one.

        Within its kind a metric counts for as much as the number of tasks it was learned from: that is how likely a
        new task is to be of its cluster.
        """
        share = {kind: max(self.shares.get(kind, 0.0), LEAST_SHARE) if self.shares else 1.0 for kind in kinds}
        total = {kind: sum(size for other, size in zip(kinds, sizes, strict=True) if other == kind) for kind in kinds}
        weights = np.array([share[kind] * size / total[kind] for kind, size in zip(kinds, sizes, strict=True)])
        return weights / weights.sum()  # type: ignore[no-any-return]

    def weigh(
        self, left_out: Floats, labels: Ints, *, prior: Floats, voices: Ints | None, tolerance: float = 1e-6
    ) -> Mix:
        """The metrics' weights for some shots: a posterior where they speak for clusters, a mix where they do not."""
        if voices is None:
            return fit_mix(left_out, labels, prior=prior, strength=self.strength, tolerance=tolerance)
        return fit_posterior(left_out, labels, prior=prior, strength=self.strength, voices=voices)


@dataclass(frozen=True, eq=False)
class Problem:
    """Every metric's answers on one few-shot problem, and those of the single-task model to fall back to."""

    kinds: tuple[str, ...]  # of the metrics
    sizes: tuple[int, ...]  # tasks each was learned from; 1 for a metric that learned from none
    voices: Ints | None  # (metrics,): those with the same number speak for one cluster; None where none does
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


def tune_rules(problems: Sequence[Problem], strangers: Sequence[Problem] = ()) -> Rules:
    """The rules under which the right answers of the problems are likeliest.

    Likelihood tells rules apart by every text, accuracy only by those near the border.

    `strangers` are problems that no learned metric fits; the threshold is chosen on both sorts together.
    """
    if not problems:
        return Rules()
    shares = tune_shares(problems)
    least = 0.0 if problems[0].voices is None else LEAST_STRENGTH
    tried = [Rules(shares, strength, NEVER) for strength in STRENGTHS if strength >= least]
    chosen = tried[int(np.argmax([log_likelihoods(problems, rules).mean() for rules in tried]))]
    return replace(chosen, threshold=_tune_threshold([*problems, *strangers], chosen))


def log_likelihoods(problems: Sequence[Problem], rules: Rules) -> Floats:
    """The mean log-likelihood of the right answers to each problem: (problems,)."""
    return np.array([_judge(_answer(problem, rules), problem)[1] for problem in problems])


def tune_shares(problems: Sequence[Problem]) -> dict[str, float]:
    """How much each kind of metric is worth: the shares under which the right answers are likeliest."""
    kinds = list(dict.fromkeys(problems[0].kinds))
    right = []
    for problem in problems:
        mine = problem.chances[np.arange(len(problem.answers)), :, problem.answers]  # (texts, metrics)
        prior = Rules().prior(problem.kinds, problem.sizes)  # (metrics,)
        members = [prior * (np.array(problem.kinds) == kind) for kind in kinds]
        right.append(np.stack([mine @ (among / among.sum()) for among in members], axis=1))  # (texts, kinds)
    weights = fit_weights(np.concatenate(right), np.full(len(kinds), 1 / len(kinds)), strength=1.0).weights
    return {kind: round(float(weight), 4) for kind, weight in zip(kinds, weights, strict=True)}


def _tune_threshold(problems: Sequence[Problem], rules: Rules) -> float:
    lifts = np.array([_lift(problem) for problem in problems])
    mixed = np.array([_judge(_answer(problem, rules), problem)[0] for problem in problems])
    alone = np.array([_judge(problem.alone, problem)[0] for problem in problems])
    gains = [float(np.where(lifts < threshold, alone, mixed).mean()) for threshold in THRESHOLDS]
    return THRESHOLDS[int(np.argmax(gains))]


def _lift(problem: Problem) -> float:
    return lift_over_chance(problem.left_out, problem.labels, np.array(problem.kinds) == LEARNED)


def _answer(problem: Problem, rules: Rules) -> Floats:
    prior = rules.prior(problem.kinds, problem.sizes)
    mix = rules.weigh(problem.left_out, problem.labels, prior=prior, voices=problem.voices, tolerance=1e-4)
    return blend(mix.weights, problem.chances)


def _judge(chances: Floats, problem: Problem) -> tuple[float, float]:
    right = chances[np.arange(len(problem.answers)), problem.answers]
    return float(np.mean(chances.argmax(axis=1) == problem.answers)), float(np.log(np.maximum(right, 1e-12)).mean())
