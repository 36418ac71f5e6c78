"""Several metrics' answers for a few shots -> how much each metric counts. Arrays in, arrays out.

Paper: eqn:fsl, p(y | x) = sum_k alpha_k P(y | x; f_k). Names here and there:
    mix.weights            alpha
    chances[i, k, y]       P(y | x_i; f_k), for shot i as though it had not been given

`fit_mix` is ours: weights on the simplex, the shots' log-likelihood against the distance from a prior, convex,
solved with a certificate. `fit_posterior` is ours, too, for metrics that speak for clusters of which one is the task's.
`fit_mix_as_published` is the paper's: weights free to go anywhere, a fixed number of gradient steps.
"""

import warnings

import numpy as np
from scipy.special import softmax

from manymetrics.errors import DataError, DidNotConverge
from manymetrics.values import Floats, Ints, Mix

PAPER_STEPS, PAPER_RATE = 40, 0.1
_SMALLEST = 1e-12


def fit_mix(chances: Floats, labels: Ints, *, prior: Floats, strength: float, tolerance: float = 1e-6,
            max_steps: int = 2000) -> Mix:  # fmt: skip
    """The weights that explain the shots best without straying from the prior: *alpha*, on the simplex.

    Minimises  -sum_i log sum_k alpha_k P(y_i | x_i; f_k) + strength * KL(alpha | prior).  `strength` counts in shots:
    that many shots weigh as much as the prior. Rows of NaN (a label's only example) say nothing and are skipped; with
    no row left, or an infinite strength, the prior is the answer. Solved by exponentiated gradient steps; `gap` bounds
    how far the objective can still fall.
    """
    right, prior = _right_answers(chances, labels, prior)
    if not len(right) or np.isinf(strength):
        return Mix(prior, 0, 0.0)
    right = np.maximum(right, _SMALLEST)
    return fit_weights(right, prior, strength=strength, tolerance=tolerance, max_steps=max_steps)


def fit_posterior(chances: Floats, labels: Ints, *, prior: Floats, strength: float, voices: Ints) -> Mix:
    """How likely the task is each cluster's own, as far as its shots tell: *alpha*, on the simplex.

    Metrics that share a number in `voices` (metrics,) speak for one cluster v: the prior parts them, P(y | x; v). Then
    alpha_v is prior_v times (prod_i P(y_i | x_i; v)) ** (1 / strength), scaled to sum to one. A strength of one is
    right for shots drawn at random; examples that people pick tell less, so `strength` of them count as one. Rows of
    NaN are skipped as in `fit_mix`.
    """
    right, prior = _right_answers(chances, labels, prior)
    if not strength > 0:
        raise DataError(f"Found the strength {strength!r}. Give a number above 0.")
    _, places = np.unique(voices, return_inverse=True)  # (metrics,)
    speaks = np.eye(places.max() + 1)[places]  # (metrics, voices)
    given = prior @ speaks  # (voices,)
    parts = prior / given[places]  # (metrics,): each metric's part of its voice
    spoken = np.maximum(right @ (speaks * parts[:, None]), _SMALLEST)  # (shots, voices)
    weights = softmax(np.log(given) + np.log(spoken).sum(axis=0) / strength)
    return Mix(weights[places] * parts, 0, 0.0)


def _right_answers(chances: Floats, labels: Ints, prior: Floats) -> tuple[Floats, Floats]:
    """What each metric gives right answers, (shots that can be left out, metrics), and the prior, scaled."""
    prior = np.asarray(prior, dtype=np.float64)
    if chances.ndim != 3 or chances.shape[1] != len(prior) or len(chances) != len(labels):
        raise DataError(
            f"Found chances of shape {chances.shape} for {len(labels)} labels and {len(prior)} metrics. "
            "Give (shots, metrics, classes)."
        )
    if not (prior > 0).all():
        raise DataError(f"Found the prior {prior!r}. Give every metric a prior weight above 0.")
    right = chances[np.arange(len(labels)), :, labels].astype(np.float64)
    return right[np.isfinite(right).all(axis=1)], prior / prior.sum()


def fit_weights(right: Floats, prior: Floats, *, strength: float, tolerance: float = 1e-6,
                max_steps: int = 2000) -> Mix:  # fmt: skip
    """What `fit_mix` solves, from the probabilities of the right answers: right (texts, metrics), all above 0."""
    logs, log_prior = np.log(prior), np.log(prior)  # (metrics,) each
    total = len(right) + strength
    rate, gap = 1.0, np.inf

    def objective(log_weights: Floats) -> float:
        weights = np.exp(log_weights)
        fit = -np.log(right @ weights).sum()
        return float(fit + strength * weights @ (log_weights - log_prior)) / total

    value = objective(logs)
    for step in range(1, max_steps + 1):
        weights = np.exp(logs)
        slope = (-(right / (right @ weights)[:, None]).sum(axis=0) + strength * (logs - log_prior + 1)) / total
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


def fit_mix_as_published(chances: Floats, labels: Ints) -> Mix:
    """The paper's weights: from uniform, full-batch Adam steps on the cross-entropy of the shots, no constraint."""
    known = np.isfinite(chances).all(axis=(1, 2))
    shots, answers = chances[known].astype(np.float64), labels[known]  # (shots, metrics, classes), (shots,)
    count = chances.shape[1]
    weights = np.full(count, 1 / count)
    if not len(shots):
        return Mix(weights, 0, 0.0)
    truth = np.eye(chances.shape[2])[answers]  # (shots, classes)
    mean, square = np.zeros(count), np.zeros(count)
    slope = np.zeros(count)
    for step in range(1, PAPER_STEPS + 1):
        over = softmax(np.einsum("k,ikc->ic", weights, shots), axis=1) - truth  # (shots, classes)
        slope = np.einsum("ikc,ic->k", shots, over) / len(shots)  # (metrics,)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights = weights - PAPER_RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Mix(weights, PAPER_STEPS, float(np.abs(slope).max()))


def blend(weights: Floats, chances: Floats) -> Floats:
    """*p(y | x)* of eqn:fsl: chances (texts, metrics, classes) -> (texts, classes) that sum to one.

    Weights off the simplex (the paper's) give scores instead of probabilities, which a softmax turns into some.
    """
    scores = np.einsum("k,ikc->ic", weights, chances)
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
        return softmax(scores, axis=1)  # type: ignore[no-any-return]
    return scores / scores.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]
