"""How a mix is fitted, and when it is not used: numbers chosen on meta-validation tasks (`weigh.selection`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints, Mix
from manymetrics.weigh.mix import PAPER_RATE, PAPER_STEPS, fit_mix, fit_posterior
from manymetrics.weigh.pooling import Coefficients, ProblemSize, alike, exponents_of, pooled_mix

NEVER = -np.inf  # a threshold no task falls below
LARGEST = 1e6  # of any setting, but for a threshold that is infinite
MOST_STEPS = 10_000  # of the paper's mix
LEAST_SHARE = 1e-9  # of a kind that is worth nothing; a prior has no zeros


@dataclass(frozen=True)
class MixSettings:
    """The settings of a mix."""

    shares: Mapping[str, float] = field(default_factory=dict)  # of the prior, by kind of metric; empty: all alike
    exponents: Mapping[str, Coefficients] = field(default_factory=dict)  # by group of members; empty: all alike
    exponents_without_names: Mapping[str, Coefficients] = field(default_factory=dict)
    names_count: bool = False  # whether label names were worth something
    prior_shots: float = 5.0  # how many shots the prior of the clusters weighs as much as
    likelihood_temperature: float = 5.0  # how many shots count as one, where tasks share their labels
    threshold: float = 0.1  # a task is out of clusters when no learned metric rises above chance by more than this

    paper_rate: float = PAPER_RATE  # of the gradient steps of the paper's mix
    paper_steps: int = PAPER_STEPS

    def __post_init__(self) -> None:
        coefficients = [*self.exponents.values(), *self.exponents_without_names.values()]
        usable = (
            all(0 <= number <= LARGEST for number in (*self.shares.values(), self.prior_shots))
            and all(abs(number) <= LARGEST for row in coefficients for number in row)
            and 1 / LARGEST <= self.likelihood_temperature <= LARGEST
            and (abs(self.threshold) <= LARGEST or np.isinf(self.threshold))
            and 1 / LARGEST <= self.paper_rate <= LARGEST
            and 0 <= self.paper_steps <= MOST_STEPS
        )
        if not usable:
            raise DataError(f"The settings of the mix hold numbers that cannot be used: {self}.")

    def prior(self, kinds: Sequence[str], sizes: Sequence[float]) -> Floats:
        """What each metric counts for before any shot is seen: (metrics,), above 0, sums to one.

        Within its kind a metric counts by its size: how likely the task is to be of its cluster.
        """
        share = {kind: max(self.shares.get(kind, 0.0), LEAST_SHARE) if self.shares else 1.0 for kind in kinds}
        total = {kind: sum(size for other, size in zip(kinds, sizes, strict=True) if other == kind) for kind in kinds}
        weights = np.array([share[kind] * size / total[kind] for kind, size in zip(kinds, sizes, strict=True)])
        return weights / weights.sum()  # type: ignore[no-any-return]

    def fit(self, leave_one_out: Floats, labels: Ints, *, prior: Floats, clusters: Ints | None,
            groups: Sequence[str], names: bool, tolerance: float = 1e-6) -> Mix:  # fmt: skip
        """The members' weights for some shots.

        Where members speak for clusters that share their labels, a posterior. Elsewhere groups are pooled by their
        exponents, `names` saying which, and the members of a group are mixed by what the shots say of them.
        """
        if clusters is not None:
            temperature = self.likelihood_temperature
            return fit_posterior(leave_one_out, labels, prior=prior, temperature=temperature, clusters=clusters)
        found = list(dict.fromkeys(groups))
        places = np.array([found.index(group) for group in groups])  # (members,)
        size = ProblemSize(len(labels) / leave_one_out.shape[2], leave_one_out.shape[2])
        inner = self._mix_groups(leave_one_out, labels, prior, places, tolerance)
        return pooled_mix(inner, places, exponents_of(self.coefficients(found, names=names), size))

    def coefficients(self, groups: Sequence[str], *, names: bool) -> list[Coefficients]:
        """Of some groups; those that nothing is known of count for next to nothing, unless none is known."""
        known = self.exponents if names else self.exponents_without_names
        if not any(group in known for group in groups):
            return list(alike(groups).values())
        return [known.get(group, (float(np.log(LEAST_SHARE)), 0.0, 0.0)) for group in groups]

    def _mix_groups(self, leave_one_out: Floats, labels: Ints, prior: Floats, places: Ints, tolerance: float) -> Mix:
        """The members of every group mixed by themselves; what groups count for is not told by this."""
        weights, steps, gap = prior.copy(), 0, 0.0
        for group in np.unique(places):
            inside = places == group
            if inside.sum() < 2:
                continue
            mix = fit_mix(leave_one_out[:, inside], labels, prior=prior[inside], prior_shots=self.prior_shots,
                          tolerance=tolerance)  # fmt: skip
            weights[inside], steps, gap = mix.weights * prior[inside].sum(), max(steps, mix.steps), max(gap, mix.gap)
        return Mix(weights, steps, gap)
