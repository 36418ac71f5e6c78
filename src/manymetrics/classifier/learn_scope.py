"""The scope model and the calibration, learned on episodes of held-out tasks.

A classifier is adapted to each episode. Its queries are in scope. Out of scope are texts of other held-out
tasks, half of them of the tasks whose texts are most similar, and gibberish.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from manymetrics.classifier.calibration import Calibration, CalibrationEpisode, learn_calibration
from manymetrics.classifier.classifier import adapt
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.predictor import Predictor
from manymetrics.classifier.scope import Scope, learn_scope
from manymetrics.encode.encoder import EmbeddedTexts, Encoder, centroid_of
from manymetrics.values import Each, Episode, Floats, no_progress

MIN_TASKS = 2  # held out; of fewer, nothing is learned and the defaults stay
N_OTHER, N_NEAR = 30, 30  # texts of any other held-out task, and of the most similar ones, in each episode
N_SIMILAR_TASKS = 3
N_GIBBERISH, GIBBERISH_POOL = 30, 300  # in each episode, of so many in all
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz  ", "asdfghjkl;qwertyuiop", "0123456789!@#$%^&*()_+-=[]{}|;:,.<>?/~ ")


def make_gibberish(count: int, rng: np.random.Generator) -> list[str]:
    """Random letters, random neighbouring keys, random signs."""
    alphabets = [list(ALPHABETS[number % len(ALPHABETS)]) for number in range(count)]
    return ["".join(rng.choice(alphabet, int(rng.integers(3, 40)))) for alphabet in alphabets]


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
    answered: list[CalibrationEpisode] = []
    for episode in each("weigh-scope", episodes, name=lambda e: e.task, size=lambda e: e.comparisons):
        adapted = adapt(predictor, support_set(episode.support.texts, episode.support.labels))
        features, rng = EmbeddedTexts(episode.query.texts), _rng(episode, seed)
        logits = adapted.head.logits(features)
        answered.append(CalibrationEpisode(logits, episode.query.numbers, adapted.own_temperature))
        inside.append(adapted.scope.features(features))
        others = [text for task in tasks if task != episode.task for text in queries[task]]
        near = [text for task in nearest[episode.task] for text in queries[task]]
        for texts, count in ((others, N_OTHER), (near, N_NEAR), (gibberish, N_GIBBERISH)):
            drawn = [texts[row] for row in rng.integers(len(texts), size=count)]
            outside.append(adapted.scope.features(EmbeddedTexts(drawn)))
    scope = learn_scope(inside, outside, len(tasks))
    calibration = learn_calibration(answered, len(tasks)) if predictor.gradient is None else Calibration()
    return scope, calibration


def _similar_tasks(base: Encoder, queries: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each task, the others whose texts are most similar: in-domain texts that are out of scope."""
    tasks = list(queries)
    centroids = np.stack([centroid_of(base, texts) for texts in queries.values()])
    cosines = centroids @ centroids.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, : min(N_SIMILAR_TASKS, len(tasks) - 1)]
    return {task: [tasks[index] for index in indices] for task, indices in zip(tasks, order.tolist(), strict=True)}


def _rng(episode: Episode, seed: int) -> np.random.Generator:
    text = "\n".join([str(seed), *episode.support.texts])
    return np.random.default_rng(list(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))
