"""*K* by trial on held-out tasks, for the paper's figure over K."""

from collections.abc import Mapping

import numpy as np

from manymetrics.learn import Candidates
from manymetrics.weigh import answer_likelihood


def choose_cluster_count(tried: Mapping[int, Candidates]) -> int | None:
    """*K* by trial: the number of clusters whose metrics, mixed, make right answers on held-out tasks likeliest.

    Compared on the tasks that were held out under every number; None where there are none. Of equals the first.
    """
    common = set.intersection(*(set(one.held_out) for one in tried.values()))
    if not common:
        return None
    scores = [
        answer_likelihood(one.metrics, [episode for episode in one.episodes if episode.task in common], one.settings)
        for one in tried.values()
    ]
    return list(tried)[int(np.argmax(scores))]
