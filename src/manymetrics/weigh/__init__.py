"""Room 6, metrics + examples -> classifier: the mix, its rules, and what to do when no cluster fits."""

from manymetrics.weigh.classifier import FewShotClassifier
from manymetrics.weigh.doctor import Diagnosis
from manymetrics.weigh.explanation import Explanation
from manymetrics.weigh.lessons import learn_trust
from manymetrics.weigh.mix import fit_mix, fit_mix_as_published
from manymetrics.weigh.rules import Rules
from manymetrics.weigh.selection import (
    answer_likelihood,
    choose_rules,
    choose_unlearned_metrics,
    draw_problems,
    hold_out_tasks,
)
from manymetrics.weigh.suggestion import Suggestion
from manymetrics.weigh.trust import Trust

__all__ = [
    "Diagnosis",
    "Explanation",
    "FewShotClassifier",
    "Rules",
    "Suggestion",
    "Trust",
    "answer_likelihood",
    "choose_rules",
    "choose_unlearned_metrics",
    "draw_problems",
    "fit_mix",
    "fit_mix_as_published",
    "hold_out_tasks",
    "learn_trust",
]
