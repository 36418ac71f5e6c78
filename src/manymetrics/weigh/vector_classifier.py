"""The core of the classifier for people who have vectors of their own: numbers in, labels out.

Two ways of comparing with the examples, by the labels' mean examples (eqn:base_protonet) and by every example
(eqn:base_mnet), are mixed as a task's metrics are: by how well each answers the examples from the others. This class is
a scikit-learn estimator through and through, and the only module that needs scikit-learn to be loaded.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from manymetrics.encode.encoders import unit_rows
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.errors import InputError, NotEnoughExamples
from manymetrics.specialize.metric import FROZEN, SimilarityMetric
from manymetrics.values import Floats
from manymetrics.weigh.mix import blend, fit_mix


@dataclass(frozen=True, eq=False)
class _Centred:
    """Vectors less the mean of the examples, scaled to length one."""

    centre: Floats  # (features,)

    def encode(self, rows: Any) -> Floats:
        return unit_rows(rows - self.centre)


class VectorClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies vectors from a handful of examples of each label.

    Parameters
    ----------
    temperature : what cosines are multiplied by before the softmax.
    strength : how many examples the even mix of the two ways is worth.

    Attributes
    ----------
    classes_ : the labels, sorted; the columns of `predict_proba`.
    mix_ : how much each of the two ways counts.
    """

    def __init__(self, *, temperature: float = 10.0, strength: float = 5.0) -> None:
        self.temperature = temperature
        self.strength = strength

    def fit(self, X: Any, y: Any) -> "VectorClassifier":
        """Take in the examples, (examples, features) and (examples,)."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if self.temperature <= 0 or self.strength < 0:
            raise InputError("The temperature must be above 0, and the strength 0 or more.")
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise NotEnoughExamples("Found examples of one class. A classifier needs examples of at least two classes.")
        numbers = numbers.astype(np.int64)
        order = np.lexsort((*X.T[::-1], numbers))  # the order of the examples must not matter
        X, numbers = X[order], numbers[order]
        space, names = _Centred(X.mean(axis=0)), tuple(str(label) for label in self.classes_)
        metrics = [SimilarityMetric(rule, FROZEN, space, rule, self.temperature) for rule in (PROTOTYPICAL, MATCHING)]
        self._fitted = [metric.learn(X, numbers, names) for metric in metrics]
        left_out = np.stack([fitted.chances_left_out() for fitted in self._fitted], axis=1)
        self.mix_ = fit_mix(left_out, numbers, prior=np.full(2, 0.5), strength=self.strength)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """P(y | x): (vectors, labels), in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return blend(self.mix_.weights, np.stack([fitted.chances(X) for fitted in self._fitted], axis=1))

    def predict(self, X: Any) -> Any:
        """The likeliest label of each vector."""
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]
