"""*K* by trial on held-out tasks, for the paper's figure over K."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manymetrics.learn import Learning, find_clusters, train_candidates
from manymetrics.recipe import Recipe
from manymetrics.values import Work
from manymetrics.weigh import answer_likelihood


def choose_cluster_count(learning: Learning, work: Work, recipe: Recipe, counts: Sequence[int]) -> int | None:
    """*K* by trial: the number of clusters whose metrics, mixed, make right answers on held-out tasks likeliest.

    Compared on the tasks that were held out under every number; None where there are none. Of equals the smallest.
    """
    tried = []
    for count in counts:
        counted = replace(recipe, clusters=count)
        tried.append(train_candidates(learning, find_clusters(learning, work, counted).clusters, work, counted))
    common = set.intersection(*(set(one.held_out) for one in tried))
    if not common:
        return None
    scores = [
        answer_likelihood(one.metrics, [episode for episode in one.episodes if episode.task in common], one.settings)
        for one in tried
    ]
    return counts[int(np.argmax(scores))]
