"""Several metrics' answers for a few shots -> how much each metric counts. Arrays in, arrays out.

Paper: eqn:fsl, p(y | x) = sum_k alpha_k P(y | x; f_k). Names here and there:
    mix.weights                alpha
    probabilities[i, k, y]     P(y | x_i; f_k), for shot i as though it had not been given

`fit_mix` is ours: weights on the simplex, the shots' log-likelihood against the distance from a prior, convex,
solved with a certificate. `fit_posterior` is ours, too, for metrics that speak for clusters of which one is the task's.
`fit_mix_as_published` is the paper's: weights free to go anywhere, a number of gradient steps. The paper tunes rate and
steps on meta-validation tasks (`weigh.published`); `descend_as_published` gives the weights after every step, so that
one descent tries all numbers of steps.
"""

import warnings

import numpy as np
from scipy.special import softmax

from manymetrics.errors import DataError, DidNotConverge
from manymetrics.values import Floats, Ints, Mix

PAPER_STEPS, PAPER_RATE = 40, 0.1
_SMALLEST = 1e-12


def fit_mix(probabilities: Floats, labels: Ints, *, prior: Floats, prior_shots: float, tolerance: float = 1e-6,
            max_steps: int = 2000) -> Mix:  # fmt: skip
    """The weights that explain the shots best without straying from the prior: *alpha*, on the simplex.

    Minimises  -sum_i log sum_k alpha_k P(y_i | x_i; f_k) + prior_shots * KL(alpha | prior):  so many shots weigh as
    much as the prior. Rows of NaN (a label's only example) say nothing and are skipped; with no row left, or infinitely
    many `prior_shots`, the prior is the answer. Solved by exponentiated gradient steps; `gap` bounds
    how far the objective can still fall.
    """
    right, prior = _right_answers(probabilities, labels, prior)
    if not len(right) or np.isinf(prior_shots):
        return Mix(prior, 0, 0.0)
    right = np.maximum(right, _SMALLEST)
    return fit_weights(right, prior, prior_shots=prior_shots, tolerance=tolerance, max_steps=max_steps)


def fit_posterior(probabilities: Floats, labels: Ints, *, prior: Floats, temperature: float, clusters: Ints) -> Mix:
    """How likely the task is each cluster's own, as far as its shots tell: *alpha*, on the simplex.

    Metrics that share a number in `clusters` (metrics,) speak for one cluster c, in the parts the prior gives them;
    alpha_c is prior_c times (prod_i P(y_i | x_i; c)) ** (1 / temperature), scaled to sum to one. A temperature of one
    is right for shots drawn at random; examples that people pick tell less, so `temperature` of them count as one. Rows
    of NaN are skipped as in `fit_mix`.
    """
    right, prior = _right_answers(probabilities, labels, prior)
    if not temperature > 0:
        raise DataError(f"Found the temperature {temperature!r}. Give a number above 0.")
    _, places = np.unique(clusters, return_inverse=True)  # (metrics,)
    belongs = np.eye(places.max() + 1)[places]  # (metrics, clusters)
    given = prior @ belongs  # (clusters,)
    parts = prior / given[places]  # (metrics,): each metric's part of its cluster's answer
    likelihoods = np.maximum(right @ (belongs * parts[:, None]), _SMALLEST)  # (shots, clusters)
    weights = softmax(np.log(given) + np.log(likelihoods).sum(axis=0) / temperature)
    return Mix(weights[places] * parts, 0, 0.0)


def _right_answers(probabilities: Floats, labels: Ints, prior: Floats) -> tuple[Floats, Floats]:
    """What each metric gives right answers, (shots that can be left out, metrics), and the prior, scaled."""
    prior = np.asarray(prior, dtype=np.float64)
    if probabilities.ndim != 3 or probabilities.shape[1] != len(prior) or len(probabilities) != len(labels):
        raise DataError(
            f"Found probabilities of shape {probabilities.shape} for {len(labels)} labels and {len(prior)} metrics. "
            "Give (shots, metrics, classes)."
        )
    if not (prior > 0).all():
        raise DataError(f"Found the prior {prior!r}. Give every metric a prior weight above 0.")
    right = probabilities[np.arange(len(labels)), :, labels].astype(np.float64)
    return right[np.isfinite(right).all(axis=1)], prior / prior.sum()


def fit_weights(right: Floats, prior: Floats, *, prior_shots: float, tolerance: float = 1e-6,
                max_steps: int = 2000) -> Mix:  # fmt: skip
    """What `fit_mix` solves, from the probabilities of the right answers: right (texts, metrics), all above 0."""
    logs, log_prior = np.log(prior), np.log(prior)  # (metrics,) each
    total = len(right) + prior_shots
    rate, gap = 1.0, np.inf

    def objective(log_weights: Floats) -> float:
        weights = np.exp(log_weights)
        fit = -np.log(right @ weights).sum()
        return float(fit + prior_shots * weights @ (log_weights - log_prior)) / total

    value = objective(logs)
    for step in range(1, max_steps + 1):
        weights = np.exp(logs)
        slope = (-(right / (right @ weights)[:, None]).sum(axis=0) + prior_shots * (logs - log_prior + 1)) / total
        gap = float(weights @ slope - slope.min())  # no point of the simplex lies lower by more than this
        if gap <= tolerance:
            return Mix(weights, step, gap)
        while True:
            tried = logs - rate * slope
            tried -= tried.max()
            tried -= np.log(np.exp(tried).sum())
            new = objective(tried)
            if new <= value + 1e-15 or rate < 1e-9:
                break
            rate /= 2
        logs, value, rate = np.maximum(tried, -700), new, rate * 1.5
    warnings.warn(
        f"fit_mix stopped after {max_steps} steps with gap {gap:.1e} (wanted {tolerance:.1e}). "
        "Raise max_steps, or loosen tolerance.",
        DidNotConverge,
        stacklevel=3,
    )
    return Mix(np.exp(logs), max_steps, gap)


def fit_mix_as_published(probabilities: Floats, labels: Ints, *, rate: float = PAPER_RATE,
                         steps: int = PAPER_STEPS) -> Mix:  # fmt: skip
    """The paper's weights: from uniform, full-batch Adam steps on the cross-entropy of the shots, no constraint."""
    path, slope = descend_as_published(probabilities, labels, rate=rate, steps=steps)
    return Mix(path[-1], len(path) - 1, slope)


def descend_as_published(probabilities: Floats, labels: Ints, *, rate: float, steps: int) -> tuple[Floats, float]:
    """The weights before the first step and after each, (steps + 1, metrics), and the steepest slope at the last.

    Where no shot can be left out there is nothing to step by, and the even weights are all there is.
    """
    known = np.isfinite(probabilities).all(axis=(1, 2))
    shots, answers = probabilities[known].astype(np.float64), labels[known]  # (shots, metrics, classes), (shots,)
    count = probabilities.shape[1]
    path = [np.full(count, 1 / count)]
    truth = np.eye(probabilities.shape[2])[answers]  # (shots, classes)
    mean, square, slope = np.zeros(count), np.zeros(count), np.zeros(count)
    for step in range(1, steps + 1 if len(shots) else 1):
        over = softmax(np.einsum("k,ikc->ic", path[-1], shots), axis=1) - truth  # (shots, classes)
        slope = np.einsum("ikc,ic->k", shots, over) / len(shots)  # (metrics,)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        path.append(path[-1] - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8))
    return np.stack(path), float(np.abs(slope).max())


def blend(weights: Floats, probabilities: Floats) -> Floats:
    """*p(y | x)* of eqn:fsl: probabilities (texts, metrics, classes) -> (texts, classes) that sum to one.

    Weights off the simplex (the paper's) give scores instead of probabilities, which a softmax turns into some.
    """
    scores = np.einsum("k,ikc->ic", weights, probabilities)
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
        return softmax(scores, axis=1)  # type: ignore[no-any-return]
    return scores / scores.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]
