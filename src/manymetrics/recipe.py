"""Every knob, flat, in the order of the stages. `learn.py` hands each stage the few it needs; stages see no recipe.

The defaults are the paper's where it says them, else what did best on meta-validation tasks.
"""

import json
import tomllib
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from manymetrics.encode.settings import Convolution, Training
from manymetrics.errors import RecipeError


@dataclass(frozen=True)
class Recipe:
    """How to learn metrics from a bank."""

    # encode
    vectors: str = "wordllama"  # word vectors: a known name or the path of a text file
    window: int = 5  # tokens a filter sees at once; odd
    width: int = 200  # filters of an encoder
    # measure
    task_dropout: float = 0.5
    task_steps: int = 200  # of a single-task model, at most
    score: str = "auto"  # what S holds: accuracy (the paper's), logme, log-loss where tasks share labels; auto: chosen
    pairs: int | None = None  # pairs of tasks to measure; None: all, or a sample for a large bank
    # partition
    p1: float = 0.5  # how many standard deviations above its column's mean a score must lie to speak for a pair
    p2: float = 0.5  # and how many below to speak against it; where a sample of pairs is measured, 0.25 at most
    sparsity: float | None = None  # lambda; None: from the share of pairs observed
    clusters: int | None = None  # K; None: chosen
    most_clusters: int = 30  # when K is chosen
    # specialize
    objective: str = "auto"  # matching, prototypical, shared-label, or auto
    metric_dropout: float = 0.2
    word_dropout: float = 0.1  # share of the words hidden in each training step
    metric_steps: int = 1500  # episodes of a cluster's metric, at most
    ways: int = 8  # labels of an episode
    shots: int = 5  # examples of each label
    queries: int = 32  # texts of an episode to be answered
    classifier_steps: int = 6000  # batches, at most, where a cluster's metric is a classifier over shared labels
    learn_words: bool = True  # such a classifier moves the word vectors too, in a copy of its own
    held_out: float = (
        0.2  # share of each cluster's tasks kept from training, to stop and to choose the settings of the mix on
    )
    # all
    learning_rate: float = 2e-3
    batch: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value is None and name in _MAY_BE_NONE:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise RecipeError(f"The knob {name} is {value!r}. Set it to a number from {least:g} to {most:g}.")
            if name in _WHOLE and not isinstance(value, int):
                raise RecipeError(f"The knob {name} is {value!r}. Set it to a whole number.")
        if self.window % 2 == 0:
            raise RecipeError(f"The knob window is {self.window}. Set it to an odd number, so a window has a middle.")
        if not isinstance(self.learn_words, bool):
            raise RecipeError(f"The knob learn_words is {self.learn_words!r}. Set it to true or false.")
        if not isinstance(self.vectors, str):
            raise RecipeError(f"The knob vectors is {self.vectors!r}. Set it to a name or a path, in quotes.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise RecipeError(f"The knob {name} is {getattr(self, name)!r}. Choose one of {', '.join(choices)}.")

    def as_dict(self) -> dict[str, Any]:
        """The knobs by name."""
        return asdict(self)

    def task_training(self) -> dict[str, Any]:
        """What the training of single-task models needs."""
        return {
            "convolution": Convolution(self.window, self.width, self.task_dropout),
            "training": Training(
                self.task_steps, _looks(self.task_steps), learning_rate=self.learning_rate, batch=self.batch
            ),
        }

    def transfer_scores(self) -> dict[str, Any]:
        """What the measuring of transfer needs."""
        return {"score": self.score, "pairs": self.pairs}

    def word_training(self) -> dict[str, Any]:
        """What the training of the word vectors for all tasks needs."""
        training = Training(
            self.metric_steps,
            _looks(self.metric_steps),
            learning_rate=self.learning_rate,
            batch=self.batch,
            ways=self.ways,
            shots=self.shots,
            queries=self.queries,
        )
        return {"objective": self.objective, "training": training}

    def metric_training(self) -> dict[str, Any]:
        """What the training of the clusters' metrics needs."""
        return {
            **self.word_training(),
            "convolution": Convolution(self.window, self.width, self.metric_dropout, self.word_dropout),
            "classifier": (
                Convolution(self.window, self.width, self.metric_dropout, self.word_dropout, self.learn_words),
                Training(
                    self.classifier_steps,
                    _looks(self.classifier_steps),
                    learning_rate=self.learning_rate,
                    batch=self.batch,
                ),
            ),
        }

    @classmethod
    def from_dict(cls, knobs: dict[str, Any], *, where: str = "the recipe") -> "Recipe":
        """A recipe from named knobs; what is not named keeps its default."""
        known = [field.name for field in fields(cls)]
        for name in knobs:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}."
                raise RecipeError(f"There is no knob {name!r} in {where}. {hint}")
        return cls(**knobs)

    @classmethod
    def load(cls, path: str | Path) -> "Recipe":
        """Read a recipe from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            knobs = tomllib.loads(text)
        except (OSError, UnicodeDecodeError) as problem:
            raise RecipeError(f"Cannot read the recipe {path}: {problem}. Give the path of a TOML file.") from problem
        except tomllib.TOMLDecodeError as problem:
            raise RecipeError(f"{path} is not TOML: {problem}. Write one knob a line, as in: clusters = 5") from problem
        return cls.from_dict(knobs, where=str(path))

    def as_toml(self) -> str:
        """The recipe as TOML; knobs left to be chosen are commented out."""
        lines = [
            f"# {name} is chosen from the data" if value is None else f"{name} = {_toml(value)}"
            for name, value in self.as_dict().items()
        ]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the recipe as a TOML file."""
        Path(path).write_text(self.as_toml(), encoding="utf-8")


def _looks(steps: int) -> int:
    """Steps between two looks at the held-out score: thirty looks at most, so that longer training is more patient."""
    return max(20, steps // 30)


def _toml(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


_DEFAULTS = {field.name: field.default for field in fields(Recipe)}
_MAY_BE_NONE = ("pairs", "sparsity", "clusters")
_WHOLE = ("pairs", "clusters", *(name for name, default in _DEFAULTS.items() if isinstance(default, int)))
_RANGES = (
    ("window", 1, 99),
    ("width", 1, 10_000),
    ("task_dropout", 0, 0.95),
    ("task_steps", 1, 1_000_000),
    ("pairs", 1, 10**12),
    ("p1", 0, 10),
    ("p2", 0, 10),
    ("sparsity", 1e-9, 1e9),
    ("clusters", 1, 10_000),
    ("most_clusters", 1, 10_000),
    ("metric_dropout", 0, 0.95),
    ("word_dropout", 0, 0.95),
    ("metric_steps", 1, 1_000_000),
    ("classifier_steps", 1, 1_000_000),
    ("ways", 2, 1000),
    ("shots", 1, 1000),
    ("queries", 1, 100_000),
    ("held_out", 0, 0.9),
    ("learning_rate", 1e-9, 10),
    ("batch", 1, 100_000),
    ("seed", 0, 2**63 - 1),
)
_CHOICES = {
    "score": ("auto", "accuracy", "logme", "log-loss"),
    "objective": ("auto", "matching", "prototypical", "shared-label"),
}
