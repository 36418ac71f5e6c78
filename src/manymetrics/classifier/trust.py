"""Held-out tasks' episodes -> `Trust`: what is out of scope, and what probabilities are worth.

Each episode is adapted to as a user would. Its own texts are in scope; texts of other held-out tasks and gibberish are
not. The targets of any evaluation are nowhere near.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from manymetrics.classifier.adapted import Adapted, Evidence, adapt
from manymetrics.classifier.calibration import CalibrationEpisode, learn_calibration, share_kept
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.scope import Scope, learn_scope
from manymetrics.classifier.serving import Serving, Trust
from manymetrics.encode.encoder import Features
from manymetrics.values import Episode, Texts

OTHER_TEXTS = 60  # of other tasks, asked in each episode
OTHER_EPISODES = 10  # that these are drawn from
GIBBERISH, GIBBERISH_POOL = 30, 300  # in each episode, of so many in all
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz  ", "asdfghjkl;qwertyuiop", "0123456789!@#$%^&*()_+-=[]{}|;:,.<>?/~ ")


def make_gibberish(count: int, rng: np.random.Generator) -> list[str]:
    """Random letters, mashed keys, random signs."""
    return [
        "".join(rng.choice(list(ALPHABETS[place % len(ALPHABETS)]), int(rng.integers(3, 40)))) for place in range(count)
    ]


def learn_trust(serving: Serving, episodes: Sequence[Episode], *, seed: int) -> Trust:
    """Scope first, then the calibration of the answers it leaves."""
    if len({episode.task for episode in episodes}) < 2:
        return Trust()
    inside, outside, examined = [], [], []
    names: tuple[str, ...] = ()
    gibberish = Texts(make_gibberish(GIBBERISH_POOL, np.random.default_rng(seed)))
    for episode in episodes:
        labels = [episode.classes[number] for number in episode.support.labels]
        adapted = adapt(serving, support_set(episode.support.texts, labels))
        evidence, rng = adapted.examine(episode.query.texts), _rng(episode, seed)
        examined.append((episode, adapted, evidence))
        inside.append(adapted.scope.features(evidence.texts))
        others = [other.query.texts for other in episodes if other.task != episode.task]
        some = Texts.join([others[place] for place in rng.integers(len(others), size=OTHER_EPISODES)])
        mashed = gibberish.take(rng.integers(len(gibberish), size=GIBBERISH))
        for texts in (some.take(rng.integers(len(some), size=OTHER_TEXTS)), mashed):
            outside.append(adapted.scope.features(adapted.ensemble.compare(Features(texts))))
        names = adapted.scope.names
    scope = learn_scope(inside, outside, names)
    return Trust(scope, learn_calibration([_calibration_episode(*one, scope) for one in examined]))


def _calibration_episode(episode: Episode, adapted: Adapted, evidence: Evidence, scope: Scope) -> CalibrationEpisode:
    log_odds = scope.log_odds(adapted.scope.features(evidence.texts), adapted.scope.names)
    return CalibrationEpisode(adapted.case, evidence.probabilities, episode.query.labels, share_kept(log_odds))


def _rng(episode: Episode, seed: int) -> np.random.Generator:
    text = "\n".join([str(seed), episode.task, *episode.support.texts])
    return np.random.default_rng(list(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))
