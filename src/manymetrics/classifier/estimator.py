"""scikit-learn's estimator contract, without loading scikit-learn.

Loading it costs a second, and neither adapting nor predicting needs it. Whoever clones, searches, cross-validates or
calibrates has loaded it already; it is asked for only inside the two methods that speak its own types.
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
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set some of the constructor's arguments."""
        known = _parameters(type(self))
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
        defaults = _parameters(type(self))
        params = self.get_params().items()
        changed = [f"{name}={_shown(value)}" for name, value in params if not _same(value, defaults[name])]
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

    def require_fitted(self) -> None:
        """Refuse to answer before `fit`."""
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with some examples first."
            )


def _parameters(estimator: type) -> dict[str, Any]:
    """The constructor's arguments and their defaults."""
    arguments = list(inspect.signature(estimator).parameters.values())
    return {argument.name: argument.default for argument in arguments}


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, PRINTED_TYPES) else f"<{type(value).__name__}>"


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, PRINTED_TYPES) and type(value) is type(default) and value == default)
