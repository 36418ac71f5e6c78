"""The types of arrays that values hold, and the one way to make a random generator from content."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]


def random_key(seed: int, *parts: str) -> bytes:
    """A hash of the seed and some content: equal content gives an equal key in every process."""
    return hashlib.sha256(" ".join([str(seed), *parts]).encode("utf-8", "surrogatepass")).digest()


def rng_for(seed: int, *parts: str) -> np.random.Generator:
    """A generator that depends on the seed and on some content, such as the hash of a task, and on nothing else."""
    return np.random.default_rng(list(random_key(seed, *parts)))
