"""A classifier in use: what serves, a task's examples, and everything that is asked of the two together."""

from manymetrics.classifier.classifier import Answers, Classifier, Explanation, NearExample, adapt
from manymetrics.classifier.doctor import Confusion, Diagnosis, Suggestion, Suspect
from manymetrics.classifier.few_shot import FewShotClassifier
from manymetrics.classifier.learn_scope import learn_scope_and_calibration
from manymetrics.classifier.predictor import Predictor
