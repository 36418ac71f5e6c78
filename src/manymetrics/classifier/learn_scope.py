"""The scope model and the calibration, learned on episodes of held-out tasks.

A classifier is adapted to each episode. Its queries are in scope. Out of scope are texts of other held-out tasks, half
of them of the tasks whose texts are most similar, and gibberish. Both models are shrunk towards defaults that hold over
several banks.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from manymetrics.classifier.classifier import adapt
from manymetrics.classifier.confidence import DEFAULTS, Calibration, Scope, fit_own_temperature
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.predictor import Predictor
from manymetrics.encode.encoder import EmbeddedTexts, Encoder, centroid_of
from manymetrics.values import Each, Episode, Floats, Ints, no_progress

MIN_TASKS = 2  # held out; of fewer, nothing is learned and the defaults stay
N_OTHER, N_NEAR = 30, 30  # texts of any other held-out task, and of the most similar ones, in each episode
N_SIMILAR_TASKS = 3
N_GIBBERISH, GIBBERISH_POOL = 30, 300  # in each episode, of so many in all
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz  ", "asdfghjkl;qwertyuiop", "0123456789!@#$%^&*()_+-=[]{}|;:,.<>?/~ ")
SCALES = np.array([1.0, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0])  # usual deviation of the scope's features, after the intercept's
SCOPE_PENALTY = 0.01  # on the squared distance from the defaults, over the number of held-out tasks
CALIBRATION_PENALTY = 0.05  # on the same of the calibration, times the number of held-out tasks


def learn_scope_and_calibration(
    predictor: Predictor, episodes: Sequence[Episode], *, seed: int, each: Each = no_progress
) -> tuple[Scope, Calibration]:
    """The scope model and the calibration; the defaults where fewer than two tasks are held out."""
    tasks = list(dict.fromkeys(episode.task for episode in episodes))
    if len(tasks) < MIN_TASKS:
        return Scope(), Calibration()
    gibberish = make_gibberish(GIBBERISH_POOL, np.random.default_rng(seed))
    queries = {
        task: [text for episode in episodes if episode.task == task for text in episode.query.texts] for task in tasks
    }
    nearest = _similar_tasks(predictor.base, queries)
    inside: list[Floats] = []
    outside: list[Floats] = []
    answered: list[tuple[Floats, Ints, float]] = []
    comparisons = {episode: len(episode.support) * (len(episode.support) + len(episode.query)) for episode in episodes}
    for episode in each("weigh-scope", episodes, name=lambda e: e.task, size=comparisons.__getitem__):
        adapted = adapt(predictor, support_set(episode.support.texts, episode.support.labels))
        content = "\n".join([str(seed), *episode.support.texts]).encode("utf-8", "surrogatepass")
        rng, features = np.random.default_rng([*hashlib.sha256(content).digest()]), EmbeddedTexts(episode.query.texts)
        answered.append((adapted.head.logits(features), episode.query.numbers, adapted.own_temperature))
        inside.append(adapted.scope.features(features))
        others = [text for task in tasks if task != episode.task for text in queries[task]]
        near = [text for task in nearest[episode.task] for text in queries[task]]
        for texts, count in ((others, N_OTHER), (near, N_NEAR), (gibberish, N_GIBBERISH)):
            drawn = [texts[row] for row in rng.integers(len(texts), size=count)]
            outside.append(adapted.scope.features(EmbeddedTexts(drawn)))
    scope = learn_scope(inside, outside, len(tasks))
    calibration = learn_calibration(answered, len(tasks)) if predictor.gradient is None else Calibration()
    return scope, calibration


def make_gibberish(count: int, rng: np.random.Generator) -> list[str]:
    """Random letters, random neighbouring keys, random signs."""
    alphabets = [list(ALPHABETS[number % len(ALPHABETS)]) for number in range(count)]
    return ["".join(rng.choice(alphabet, int(rng.integers(3, 40)))) for alphabet in alphabets]


def _similar_tasks(base: Encoder, queries: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each task, the others whose texts are most similar: in-domain texts that are out of scope."""
    tasks = list(queries)
    centroids = np.stack([centroid_of(base, texts) for texts in queries.values()])
    cosines = centroids @ centroids.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, : min(N_SIMILAR_TASKS, len(tasks) - 1)]
    return {task: [tasks[index] for index in indices] for task, indices in zip(tasks, order.tolist(), strict=True)}


def learn_scope(inside: Sequence[Floats], outside: Sequence[Floats], n_tasks: int) -> Scope:
    """Logistic regression of in scope against out of scope, both with the same weight.

    `inside` and `outside` hold the features of some texts each, of `n_tasks` held-out tasks; every array of one kind
    has the same weight. The penalty is on the distance from the defaults.
    """
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    arrays, n_inside, n_outside = [*inside, *outside], len(inside), len(outside)
    sizes = [len(array) for array in arrays]
    design = np.column_stack([np.ones(sum(sizes)), np.concatenate(arrays)]) / SCALES
    signs = np.repeat([1.0] * n_inside + [-1.0] * n_outside, sizes)
    weights = np.repeat([0.5 / n_inside] * n_inside + [0.5 / n_outside] * n_outside, sizes) / np.repeat(sizes, sizes)
    start, penalty = np.array(DEFAULTS) * SCALES, SCOPE_PENALTY / max(n_tasks, 1)

    def loss_and_gradient(scaled: Floats) -> tuple[float, Floats]:
        margins = signs * (design @ scaled)
        gradient = penalty * (scaled - start) - design.T @ (weights * signs * expit(-margins))
        return float(weights @ np.logaddexp(0, -margins) + penalty / 2 * ((scaled - start) ** 2).sum()), gradient

    solved = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B").x
    return Scope(tuple(float(b) for b in solved / SCALES))


def learn_calibration(episodes: Sequence[tuple[Floats, Ints, float]], n_tasks: int) -> Calibration:
    """Least squares from what is known of an episode to the logarithm of the temperature that fits its queries.

    An episode: logits (texts, classes) and labels (texts,) of its queries, and the temperature of its left-out shots.
    """
    default = Calibration()
    start = np.array([default.intercept, default.classes, default.own])
    sizes = [logits.shape[1] for logits, _, _ in episodes]
    own_temperatures = np.log([own_temperature for _, _, own_temperature in episodes])
    design = np.column_stack([np.ones(len(episodes)), np.log(sizes), own_temperatures])
    best = np.log([fit_own_temperature(logits, labels) for logits, labels, _ in episodes])
    penalty = CALIBRATION_PENALTY / max(n_tasks, 1) * np.eye(len(start))
    residuals = design.T @ (best - design @ start) / len(episodes)
    solved = start + np.linalg.solve(design.T @ design / len(episodes) + penalty, residuals)
    intercept, classes, own_slope = solved.tolist()
    return Calibration(intercept, classes, own_slope, max(sizes))
