"""Several members' probabilities -> one answer, by how much each kind of member is to be believed.

    p(y | x)  ~  prod_g ( sum_k alpha_k P(y | x; f_k) ) ** w_g

The clusters' metrics are one group: within it they are mixed as the paper mixes them, eqn:fsl. Every other member is a
group of its own. Groups are multiplied: each has seen the same examples in its own way, so what two of them doubt is
doubtful. The exponent w_g is learned on the bank as a function of the examples per label and of the number of labels;
it moves with them only where the bank says so clearly, as problems of a size that the bank has none of are asked, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from manymetrics.values import Floats, Ints, Mix
from manymetrics.weigh.mix import blend

Coefficients = tuple[float, float, float]  # of 1, of log(examples per label), of log(labels / 10)
FEWEST = 0.25  # examples per label that are told apart from none
USUAL_LABELS = 10
LARGEST_LOG = 4.0  # of an exponent
SMALLEST_LOG = -12.0
PENALTIES = (1e-4, 0.03, 0.03)  # pull exponents towards being alike and, harder, towards one value for all problems
STEPS = 100
_SMALLEST = 1e-12


@dataclass(frozen=True)
class ProblemSize:
    """What exponents depend on."""

    examples_per_label: float
    labels: int

    @property
    def features(self) -> Floats:
        """(3,), in the order of `Coefficients`."""
        examples = np.log(max(self.examples_per_label, FEWEST))
        return np.array([1.0, examples, np.log(self.labels / USUAL_LABELS)])


USUAL = ProblemSize(5, USUAL_LABELS)  # what is told of exponents is told of this


def exponents_of(coefficients: Sequence[Coefficients], size: ProblemSize) -> Floats:
    """How often each group's answer is multiplied in: (groups,), above 0."""
    logs = np.array(coefficients, dtype=np.float64).reshape(-1, 3) @ size.features
    return np.exp(np.clip(logs, SMALLEST_LOG, LARGEST_LOG))


def alike(groups: Sequence[str]) -> dict[str, Coefficients]:
    """Exponents that make a geometric mean of the groups, whatever the problem."""
    return dict.fromkeys(groups, (-float(np.log(len(groups))), 0.0, 0.0))


def pooled_mix(inner: Mix, groups: Ints, exponents: Floats) -> Mix:
    """The members' shares of a pooled answer: within its group as `inner` has it, groups by their exponents."""
    within = inner.weights / np.bincount(groups, weights=inner.weights)[groups]  # (members,)
    total = float(exponents.sum())
    return Mix(within * exponents[groups] / total, inner.steps, inner.gap, groups, total)


def pool(mix: Mix, probabilities: Floats, members: Ints | None = None) -> Floats:
    """*p(y | x)* of a pooled mix: probabilities (texts, members, classes) -> (texts, classes) that sum to one.

    `members` says whose answers these are, by place; without it, everybody's. Rows of NaN stay so.
    """
    places = np.arange(len(mix.weights)) if members is None else members
    weights, groups = mix.weights[places], mix.groups[places]  # type: ignore[index]
    logs = np.zeros((len(probabilities), probabilities.shape[2]))
    for group in np.unique(groups):
        inside = groups == group
        share = weights[inside].sum()
        answer = np.einsum("k,ikc->ic", weights[inside] / share, probabilities[:, inside])
        logs += mix.exponent_sum * share * np.log(np.maximum(answer, _SMALLEST))
    return softmax(logs, axis=1)  # type: ignore[no-any-return]


def answer_with(mix: Mix, probabilities: Floats, members: Ints | None = None) -> Floats:
    """*p(y | x)* of a mix, pooled or not: probabilities (texts, members, classes) -> (texts, classes)."""
    if mix.groups is not None:
        return pool(mix, probabilities, members)
    weights = mix.weights if members is None else mix.weights[members]
    if (mix.weights >= 0).all():  # those left out hardly count, but the sum tells whether weights are on the simplex
        weights = weights * (mix.weights.sum() / weights.sum())
    return blend(weights, probabilities)


@dataclass(frozen=True, eq=False)
class PooledEpisode:
    """What every group answers on a few-shot problem of the bank."""

    size: ProblemSize
    logs: Floats  # (texts, groups, classes): of the probabilities
    answers: Ints  # (texts,)


def learn_exponents(episodes: Sequence[PooledEpisode], groups: Sequence[str], *,
                    penalties: Coefficients = PENALTIES) -> dict[str, Coefficients]:  # fmt: skip
    """The exponents under which the right answers are likeliest; every episode weighs alike."""
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    if not episodes:
        return alike(groups)
    start = np.array(list(alike(groups).values()))  # (groups, 3)

    def loss(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(start.shape)
        total, slope = 0.0, np.zeros_like(coefficients)
        for episode in episodes:
            exponents = exponents_of([tuple(row) for row in coefficients], episode.size)
            rows = np.arange(len(episode.answers))
            found = softmax(np.einsum("g,igc->ic", exponents, episode.logs), axis=1)
            total -= float(np.log(np.maximum(found[rows, episode.answers], _SMALLEST)).mean())
            found[rows, episode.answers] -= 1
            pull = np.einsum("igc,ic->g", episode.logs, found) / len(rows)
            slope += np.outer(exponents * pull, episode.size.features)
        away, count = coefficients - start, len(episodes)
        pull_back = np.array(penalties) * away
        return total / count + float((pull_back * away).sum()) / 2, (slope / count + pull_back).ravel()

    solved = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    rows = np.round(solved.x.reshape(start.shape), 4).tolist()
    return {group: (row[0], row[1], row[2]) for group, row in zip(groups, rows, strict=True)}


def group_logs(probabilities: Floats, weights: Floats, groups: Ints) -> Floats:
    """The logarithms of the groups' answers, members mixed within them by their weights: (texts, groups, classes)."""
    logs = []
    for group in range(int(groups.max()) + 1):
        inside = groups == group
        answer = np.einsum("k,ikc->ic", weights[inside] / weights[inside].sum(), probabilities[:, inside])
        logs.append(np.log(np.maximum(answer, _SMALLEST)))
    return np.stack(logs, axis=1)


def share_by_group(exponents: Mapping[str, Coefficients], size: ProblemSize) -> dict[str, float]:
    """What part of an answer each group makes in a problem of this size."""
    found = exponents_of(list(exponents.values()), size)
    return {group: float(one / found.sum()) for group, one in zip(exponents, found, strict=True)}
