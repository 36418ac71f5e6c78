"""Low-rank factors: a tuned encoder as what differs from its base."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import Floats


@dataclass(frozen=True, eq=False)
class LowRankFactors:
    """For some weight matrices W (out, in) the factors A (in, rank) and B (rank, out): W acts as W + (A @ B).T.

    They are rounded to half precision, in which they are saved, so that saving changes no embedding.
    """

    pairs: Mapping[str, tuple[Floats, Floats]]  # by the name of the matrix, such as encoder.layer.0.output.dense

    def __post_init__(self) -> None:
        pairs = {name: (_half(a), _half(b)) for name, (a, b) in self.pairs.items()}
        object.__setattr__(self, "pairs", pairs)
        for name, (a, b) in pairs.items():
            if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
                raise DataError(f"The factors of {name} have shapes {a.shape} and {b.shape}, which do not multiply.")
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise DataError(f"The factors of {name} hold values that are not finite in half precision.")

    def tensors(self) -> dict[str, Floats]:
        """The factors by name, in half precision: NAME.A and NAME.B."""
        return {
            f"{name}.{part}": factor
            for name, pair in self.pairs.items()
            for part, factor in zip("AB", pair, strict=True)
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats]) -> "LowRankFactors":
        """The factors that `tensors` gave."""
        names = sorted({name.removesuffix(".A") for name in tensors if name.endswith(".A")})
        if set(tensors) != {f"{name}.{part}" for name in names for part in "AB"}:
            raise DataError("Low-rank factors are incomplete: every matrix needs A and B.")
        return cls({name: (tensors[f"{name}.A"], tensors[f"{name}.B"]) for name in names})

    def inputs(self) -> dict[str, Floats]:
        """The inputs that the graph of the base takes."""
        return {name: factor.astype(np.float32) for name, factor in self.tensors().items()}

    def check_fit(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse factors of matrices (out, in) that the base does not have."""
        for name, (a, b) in self.pairs.items():
            if shapes.get(name) != (b.shape[1], a.shape[0]):
                raise DataError(
                    f"The factors of {name} are for a matrix of shape {(b.shape[1], a.shape[0])}, "
                    f"the encoder has {shapes.get(name, 'none of that name')}."
                )


def _half(factor: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(factor, dtype=np.float16)
