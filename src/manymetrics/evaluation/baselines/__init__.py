"""What a model is compared with: from the shots alone, from all tasks at once, and what others install today.

    alone     the target's shots and nothing else: baselines (1) and (2) of the paper, TF-IDF, frozen vectors
    shared    one model of the whole bank: baselines (3) to (6), and TF-IDF over all texts
    peers     a pre-trained sentence encoder and SetFit, where the extra `peers` is installed

A method is a function from a task to an answer for each of its test texts. It sees the shots and the texts; whoever
calls it strikes the test labels out first (`evaluation.targets.blind`).
"""

from manymetrics.evaluation.baselines.alone import (
    frozen_prototypes,
    frozen_regression,
    majority,
    single_task_fasttext,
    single_task_network,
    tfidf_regression,
)
from manymetrics.evaluation.baselines.peers import sentence_regression, setfit
from manymetrics.evaluation.baselines.shared import (
    by_metric,
    by_task_models,
    everything_in_one,
    fine_tuned,
    pooled_tfidf,
    train_one_metric,
    train_together,
)

__all__ = [
    "by_metric",
    "by_task_models",
    "everything_in_one",
    "fine_tuned",
    "frozen_prototypes",
    "frozen_regression",
    "majority",
    "pooled_tfidf",
    "sentence_regression",
    "setfit",
    "single_task_fasttext",
    "single_task_network",
    "tfidf_regression",
    "train_one_metric",
    "train_together",
]
