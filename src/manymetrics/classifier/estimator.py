"""scikit-learn's estimator contract, without loading scikit-learn.

Loading it costs a second or more, and neither adapting nor predicting needs it: it is asked for only inside the two
methods that speak its own types.
"""

import inspect
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from manymetrics.errors import InputError

PRINTED_TYPES = (str, bytes, bool, int, float, tuple, type(None))  # parameters short enough to be shown as they are


class Estimator:
    """A classifier of texts whose parameters are the arguments of its constructor."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and what they are set to."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set some of the constructor's arguments."""
        known = inspect.signature(type(self)).parameters
        for name in params:
            if name not in known:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}. Its parameters are {', '.join(sorted(known))}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def score(self, X: Iterable[str], y: Iterable[Any], sample_weight: Any = None) -> float:
        """The share of right answers."""
        answers = self.predict(X)  # type: ignore[attr-defined]
        right = [answer == label for answer, label in zip(answers, y, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def __repr__(self) -> str:
        changed = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value, is_printed = getattr(self, name), isinstance(getattr(self, name), PRINTED_TYPES)
            if not is_printed or repr(value) != repr(parameter.default):
                changed.append(f"{name}={value!r}" if is_printed else f"{name}=<{type(value).__name__}>")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """A classifier; texts in, not numbers."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(string=True, one_d_array=True, two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return "_classifier" in vars(self)
