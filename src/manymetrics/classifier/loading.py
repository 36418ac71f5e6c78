"""A model's folder -> what serves: the two files of it that adapting and answering need."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from safetensors.numpy import load

from manymetrics.classifier.serving import Serving, open_serving
from manymetrics.errors import EnvironmentProblem, ManyMetricsError, ModelError
from manymetrics.store import Kind, read_folder, seal_of

MODEL = Kind("model", 8, "Learn the model again, or load it with the version that saved it.")
SERVING, TENSORS = "serving.json", "serving.safetensors"


def load_serving(folder: Path) -> Serving:
    """What serves, from the folder of a saved model."""
    return open_serving_files(folder, read_folder(folder, [SERVING, TENSORS], MODEL))


def load_serving_once(path: str | os.PathLike[str]) -> Serving:
    """The same, read once in a process as long as the folder holds the same model."""
    folder = Path(path).absolute()
    return _load_once(folder, seal_of(folder))


@lru_cache(maxsize=4)
def _load_once(folder: Path, seal: str | None) -> Serving:
    return load_serving(folder)


def open_serving_files(folder: Path, files: Mapping[str, bytes]) -> Serving:
    """What the two files of a model hold that serving reads."""
    with holding_together(folder):
        return open_serving(load(files[TENSORS]), json.loads(files[SERVING]))


@contextlib.contextmanager
def holding_together(folder: Path, again: str = "Save the model again.") -> Iterator[None]:
    """Whatever goes wrong while the content of a folder is made into something: it does not hold together."""
    try:
        yield
    except (MemoryError, EnvironmentProblem):
        raise
    except Exception as problem:
        raise ModelError(f"{folder} does not hold together: {in_few_words(problem)}. {again}") from problem


def in_few_words(problem: BaseException) -> str:
    """What is wrong, in few words."""
    return str(problem).rstrip(".") if isinstance(problem, ManyMetricsError) else f"{type(problem).__name__} {problem}"
