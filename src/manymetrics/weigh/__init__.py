"""Room 6, metrics + examples -> classifier: the mix, its rules, and what to do when no cluster fits."""

from manymetrics.weigh.classifier import FewShotClassifier
from manymetrics.weigh.mix import fit_mix, fit_mix_as_published
from manymetrics.weigh.rules import Rules
from manymetrics.weigh.selection import choose_rules, choose_unlearned_metrics, draw_problems, hold_out_tasks

__all__ = [
    "FewShotClassifier",
    "Rules",
    "choose_rules",
    "choose_unlearned_metrics",
    "draw_problems",
    "fit_mix",
    "fit_mix_as_published",
    "hold_out_tasks",
]
