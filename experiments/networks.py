"""The networks that the paper trains on its clusters; window, width and word vectors tuned where it tunes them.

    FIXED    word vectors as they are
    LEARNED  begun at these, and learned with the network
    RANDOM   begun at random, and learned

The paper tunes these while it trains the encoders of clusters, by the validation texts of its past tasks. Here each
cluster's network answers few-shot problems of the tasks of its cluster that it was kept from, and the accuracy on all
of these counts; first the words are chosen, then the window, then the width.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from experiments.problems import answer_problems, draw_problems
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.baselines import by_metric
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.start import Learning, hold_out
from manymetrics.values import Clusters, Work

FIXED, LEARNED, RANDOM = "fixed", "learned", "random"


@dataclass(frozen=True)
class Network:
    """The shape of a cluster's network, and what its word vectors are."""

    words: str = FIXED
    window: int = 5
    width: int = 200

    def knobs(self, recipe: Recipe, given: WordVectors) -> dict[str, Any]:
        """What the training of such networks needs."""
        training = replace(recipe, window=self.window, width=self.width).metric_training()
        learn, (classifier, steps) = self.words != FIXED, training["classifier"]
        return {
            **training,
            "convolution": replace(training["convolution"], learn_words=learn),
            "classifier": (replace(classifier, learn_words=learn), steps),
            "words": at_random(given) if self.words == RANDOM else given,
        }


TRIED: Mapping[str, tuple[Any, ...]] = {
    "words": (FIXED, LEARNED, RANDOM),
    "window": (5, 3, 7),
    "width": (200, 100, 400),
}


@cache
def at_random(given: WordVectors) -> WordVectors:
    """Vectors for the same words that know nothing of them; of the same size, so that training is as fast."""
    drawn = np.random.default_rng(0).standard_normal(given.table.shape, dtype=np.float32)
    return WordVectors(f"{given.name}, {RANDOM}", drawn * given.table.std(), given.tokenizer)


def with_random_words(learning: Learning) -> Learning:
    """The same, ready for networks that begin at random words."""
    drawn = at_random(learning.words)
    encoders = {**learning.material.encoders, drawn.fingerprint: drawn}
    return replace(learning, material=replace(learning.material, encoders=encoders))


def train_on(clusters: Clusters, learning: Learning, work: Work, recipe: Recipe, network: Network | None = None
             ) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """A metric for each of some clusters, and the tasks that they were kept from; the recipe's unless a network is
    given.
    """
    held_out, words = hold_out(learning, recipe, clusters), learning.words
    knobs = network.knobs(recipe, words) if network else {**recipe.metric_training(), "words": words}
    return train_metrics(learning.material, clusters, work, **knobs, held_out=held_out, seed=recipe.seed), held_out


def choose_network(clusters: Clusters, learning: Learning, work: Work, recipe: Recipe) -> Network:
    """The network that answers tasks held out from its cluster most accurately, one knob after the other."""

    @cache
    def score(network: Network) -> float:
        metrics, held_out = train_on(clusters, learning, work, recipe, network)
        return _accuracy(metrics, clusters, held_out, learning, recipe)

    best = Network()
    for knob, values in TRIED.items():
        best = max((replace(best, **{knob: value}) for value in values), key=score)
    return best


def _accuracy(metrics: list[Metric], clusters: Clusters, held_out: tuple[str, ...], learning: Learning,
              recipe: Recipe) -> float:  # fmt: skip
    """On problems of the held-out tasks, each answered by the metric of its own cluster; 0 where there are none."""
    answered = []
    for number, group in enumerate(clusters):
        problems = draw_problems(learning.material.bank, sorted(set(held_out) & set(group)), seed=recipe.seed)
        for metric in metrics:
            if metric.cluster == number and len(problems):
                answered += answer_problems(by_metric(metric), problems)
    return float(np.mean([one.accuracy for one in answered])) if answered else 0.0
