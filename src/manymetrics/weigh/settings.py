"""How a mix is fitted, and when it is not used: numbers chosen on meta-validation tasks (`weigh.selection`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints, Mix
from manymetrics.weigh.mix import fit_mix, fit_posterior

NEVER = -np.inf  # a threshold no task falls below
LARGEST = 1e6  # of any setting, but for a threshold that is infinite
LEAST_SHARE = 1e-9  # of a kind that is worth nothing; a prior has no zeros


@dataclass(frozen=True)
class MixSettings:
    """The settings of a mix."""

    shares: Mapping[str, float] = field(default_factory=dict)  # of the prior, by kind of metric; empty: all alike
    prior_shots: float = 5.0  # how many shots the prior weighs as much as, where tasks differ in their labels
    likelihood_temperature: float = 5.0  # how many shots count as one, where tasks share their labels
    threshold: float = 0.1  # a task is out of clusters when no learned metric rises above chance by more than this

    def __post_init__(self) -> None:
        usable = (
            all(0 <= number <= LARGEST for number in (*self.shares.values(), self.prior_shots))
            and 1 / LARGEST <= self.likelihood_temperature <= LARGEST
            and (abs(self.threshold) <= LARGEST or np.isinf(self.threshold))
        )
        if not usable:
            raise DataError(f"The settings of the mix hold numbers that cannot be used: {self}.")

    def prior(self, kinds: Sequence[str], sizes: Sequence[int]) -> Floats:
        """What each metric counts for before any shot is seen: (metrics,), above 0, sums to one.

        Within its kind a metric counts for as much as the number of tasks it was learned from: that is how likely a
        new task is to be of its cluster.
        """
        share = {kind: max(self.shares.get(kind, 0.0), LEAST_SHARE) if self.shares else 1.0 for kind in kinds}
        total = {kind: sum(size for other, size in zip(kinds, sizes, strict=True) if other == kind) for kind in kinds}
        weights = np.array([share[kind] * size / total[kind] for kind, size in zip(kinds, sizes, strict=True)])
        return weights / weights.sum()  # type: ignore[no-any-return]

    def fit(self, leave_one_out: Floats, labels: Ints, *, prior: Floats, clusters: Ints | None,
            tolerance: float = 1e-6) -> Mix:  # fmt: skip
        """The members' weights for some shots: a posterior where they speak for clusters, a mix where they do not."""
        if clusters is None:
            return fit_mix(leave_one_out, labels, prior=prior, prior_shots=self.prior_shots, tolerance=tolerance)
        temperature = self.likelihood_temperature
        return fit_posterior(leave_one_out, labels, prior=prior, temperature=temperature, clusters=clusters)
