"""A classifier in use: what serves, a task's examples, and everything that is asked of the two together."""

from manymetrics.classifier.adapted import DEFAULT, PAPER, Adapted, Answers, adapt
from manymetrics.classifier.doctor import Diagnosis
from manymetrics.classifier.explanation import Explanation
from manymetrics.classifier.few_shot import FewShotClassifier
from manymetrics.classifier.serving import Serving, Trust
from manymetrics.classifier.suggestion import Suggestion
from manymetrics.classifier.trust import learn_trust

__all__ = [
    "DEFAULT",
    "PAPER",
    "Adapted",
    "Answers",
    "Diagnosis",
    "Explanation",
    "FewShotClassifier",
    "Serving",
    "Suggestion",
    "Trust",
    "adapt",
    "learn_trust",
]
