"""Every knob, flat, in the order of the stages. `learn.py` hands each stage the few it needs; stages see no recipe.

What a knob is and what it can be set to stands beside its default, for the checks and for `manymetrics recipe` alike.
The defaults are the paper's where it says them, else what did best on meta-validation tasks.
"""

import json
import tomllib
from collections.abc import Callable
from dataclasses import Field, asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeVar

from manymetrics.encode.settings import Convolution, ProjectionTraining, Training
from manymetrics.errors import RecipeError

Number = TypeVar("Number", bound=float | None)
WORDS = "words"  # in place of a sentence encoder
PUBLISHED_PARTITION: dict[str, Any] = {"evidence": "transfer", "p1": 0.5, "p2": 0.5}


def _number(default: Number, about: str, least: float, most: float, *, odd: bool = False) -> Number:
    """A knob that is a number within a range; where the default is None, it may be left to be chosen."""
    return field(default=default, metadata={"about": about, "range": (least, most), "odd": odd})


def _word(default: str, about: str, *choices: str) -> str:
    """A knob that is a word: one of the choices, if there are any."""
    return field(default=default, metadata={"about": about, "choices": choices})


@dataclass(frozen=True)
class Recipe:
    """How to learn metrics from a bank; `print(recipe.as_toml(explained=True))` says what each knob is."""

    # encode
    encoder: str = _word(
        "bge-small",
        f"What learning stands on: a sentence encoder, by name or as the path of a folder, or {WORDS!r}: word vectors.",
    )
    tuning_steps: int = _number(
        0,
        "Training episodes of the sentence encoder itself, taken by each of two copies; needs torch. 0: it stays "
        "as it is.",
        0,
        1_000_000,
    )
    vectors: str = _word("wordllama", "Word vectors, where learning stands on them: a known name or a text file.")
    window: int = _number(5, "Tokens that a filter of an encoder sees at once.", 1, 99, odd=True)
    width: int = _number(200, "Filters of an encoder.", 1, 10_000)
    # measure
    task_dropout: float = _number(0.5, "Share of features hidden in each training step of a task's own model.", 0, 0.95)
    task_steps: int = _number(200, "Training steps of a task's own model, at most.", 1, 1_000_000)
    score: str = _word(
        "auto",
        "What S holds of a pair of tasks: accuracy is the paper's, log-loss is for tasks that share their labels.",
        "auto",
        "accuracy",
        "logme",
        "log-loss",
    )
    pairs: int | None = _number(
        None, "Pairs of tasks to measure; if left open, all of a small bank and a sample of a large one.", 1, 10**12
    )
    own_steps: int = _number(30, "Training episodes of a task's own step away from the sentence encoder.", 1, 10**6)
    own_rate: float = _number(1e-4, "Size of a training step of it.", 1e-9, 10)
    # partition
    evidence: str = _word(
        "all",
        "What pairs are told from: transfer alone, or also label names and texts where they agree with it.",
        "all",
        "transfer",
    )
    p1: float | None = _number(
        None,
        "Standard deviations above the mean of its column that a score must lie to speak for a pair; if left open, so "
        "many that two tasks seldom serve one another by chance.",
        0,
        10,
    )
    p2: float = _number(
        0.0, "And below it to speak against the pair; where a sample of pairs is measured, 0.25 at most counts.", 0, 10
    )
    sparsity: float | None = _number(
        None, "The paper's lambda; if left open, it follows from the share of pairs observed.", 1e-9, 10**9
    )
    clusters: int | None = _number(None, "The paper's K: clusters to part the tasks in.", 1, 10_000)
    most_clusters: int = _number(30, "Clusters, at most, where their number is left open.", 1, 10_000)
    # specialize
    objective: str = _word(
        "auto",
        "How a cluster's metric is trained; shared-label is for tasks that all have the same labels.",
        "auto",
        "matching",
        "prototypical",
        "shared-label",
    )
    metric_dropout: float = _number(0.2, "Share of features hidden in each training step of a metric.", 0, 0.95)
    word_dropout: float = _number(0.1, "Share of words hidden in each training step of a metric.", 0, 0.95)
    metric_steps: int = _number(1500, "Training episodes of a cluster's metric, at most.", 1, 1_000_000)
    ways: int = _number(8, "Labels of a training episode.", 2, 1000)
    shots: int = _number(5, "Examples of each label of an episode.", 1, 1000)
    queries: int = _number(32, "Texts of an episode that are to be answered.", 1, 100_000)
    classifier_steps: int = _number(
        6000, "Training steps, at most, where a cluster's metric is a classifier over shared labels.", 1, 1_000_000
    )
    learn_words: bool = field(
        default=True,
        metadata={"about": "Whether such a classifier moves the word vectors too, in a copy of its own."},
    )
    projection_steps: int = _number(
        2000, "Training episodes, at most, of the shared projection over a sentence encoder.", 1, 1_000_000
    )
    projection_rate: float = _number(1e-4, "Size of a training step of a projection.", 1e-9, 10)
    projection_dropout: float = _number(0.1, "Share of features hidden in each training step of a projection.", 0, 0.95)
    held_out: float = _number(
        0.2,
        "Share of each cluster's tasks kept from training: to stop it, and to choose the mix's settings on.",
        0,
        0.9,
    )
    # all stages
    learning_rate: float = _number(2e-3, "Size of a training step.", 1e-9, 10)
    batch: int = _number(32, "Examples of a training step where no episodes are drawn.", 1, 100_000)
    seed: int = _number(0, "Of all randomness; the same seed gives the same model.", 0, 2**63 - 1)

    def __post_init__(self) -> None:
        for knob in fields(self):
            _check(knob, getattr(self, knob.name))
        if self.tuning_steps and self.encoder == WORDS:
            raise RecipeError("Word vectors are not tuned so: set tuning_steps to 0, or name a sentence encoder.")

    @classmethod
    def tuned(cls, **knobs: Any) -> "Recipe":
        """The default, with the sentence encoder tuned on the bank first; learning needs torch, serving does not."""
        return cls(**{"tuning_steps": 240, **knobs})

    @classmethod
    def fast(cls, **knobs: Any) -> "Recipe":
        """Static word vectors: some twenty thousand texts a second; learning needs torch."""
        return cls(**{"encoder": WORDS, **PUBLISHED_PARTITION, **knobs})

    @classmethod
    def paper(cls, **knobs: Any) -> "Recipe":
        """The paper's: convolution networks over fixed GloVe vectors, accuracy as score, its filter; needs torch."""
        published = {"encoder": WORDS, "vectors": "glove-100d", "score": "accuracy", "learn_words": False}
        published |= PUBLISHED_PARTITION
        return cls(**{**published, **knobs})

    @classmethod
    def named(cls, name: str) -> "Recipe":
        """One of the recipes that have a name: default, tuned, fast, paper."""
        made: dict[str, Callable[[], Recipe]] = {
            "default": cls,
            "tuned": cls.tuned,
            "fast": cls.fast,
            "paper": cls.paper,
        }
        if name not in made:
            raise RecipeError(f"There is no recipe {name!r}. Choose one of {', '.join(made)}.")
        return made[name]()

    def projection_training(self) -> dict[str, ProjectionTraining]:
        """What the training of projections needs: the shared one, and a cluster's step away from it."""
        rate, dropout = self.projection_rate, self.projection_dropout
        looks = _looks(self.projection_steps)
        shared = ProjectionTraining(self.projection_steps, max(looks, 100), rate, dropout)
        return {"shared": shared, "cluster": replace(shared, steps=max(1, self.projection_steps // 4), check_every=50)}

    def own_training(self) -> ProjectionTraining:
        """What the training of a task's own projection needs."""
        return ProjectionTraining(self.own_steps, self.own_steps, self.own_rate, self.projection_dropout)

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
        known = [knob.name for knob in fields(cls)]
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
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            raise RecipeError(f"{path} is not TOML: {problem}. Write one knob a line, as in: clusters = 5") from problem
        return cls.from_dict(knobs, where=str(path))

    def as_toml(self, *, explained: bool = False) -> str:
        """The recipe as TOML; knobs left to be chosen are commented out. `explained`: each with what it is."""
        lines = []
        for knob in fields(self):
            value = getattr(self, knob.name)
            lines += ["", *_explain(knob)] if explained else []
            lines.append(f"# {knob.name} is chosen from the data" if value is None else f"{knob.name} = {_toml(value)}")
        return "\n".join(lines).strip() + "\n"

    def save(self, path: str | Path) -> None:
        """Write the recipe as a TOML file, each knob with what it is."""
        Path(path).write_text(self.as_toml(explained=True), encoding="utf-8")


def _looks(steps: int) -> int:
    """Steps between two looks at the held-out score: thirty looks at most, so that longer training is more patient."""
    return max(20, steps // 30)


def _toml(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


def _check(knob: Field[Any], value: Any) -> None:
    """Refuse a value that a knob cannot have."""
    said, told = f"The knob {knob.name} is {value!r}.", knob.metadata
    if "range" in told and not (value is None and knob.default is None):
        least, most = told["range"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise RecipeError(f"{said} Set it to a number from {least:,} to {most:,}.")
        if _is_whole(knob) and not isinstance(value, int):
            raise RecipeError(f"{said} Set it to a whole number.")
        if told["odd"] and value % 2 == 0:
            raise RecipeError(f"{said} Set it to an odd number, so a window has a middle.")
    if knob.type is bool and not isinstance(value, bool):
        raise RecipeError(f"{said} Set it to true or false.")
    if knob.type is str and told["choices"] and value not in told["choices"]:
        raise RecipeError(f"{said} Choose one of {', '.join(told['choices'])}.")
    if knob.type is str and not isinstance(value, str):
        raise RecipeError(f"{said} Set it to a name or a path, in quotes.")


def _explain(knob: Field[Any]) -> list[str]:
    """What a knob is and what it can be set to, as comments."""
    told = knob.metadata
    about = [told["about"]]
    if "range" in told:
        least, most = told["range"]
        kind = "An odd number" if told["odd"] else "A whole number" if _is_whole(knob) else "A number"
        about.append(f"{kind} from {least:,} to {most:,}.")
    if knob.type is bool:
        about.append("True or false, in small letters.")
    if told.get("choices"):
        about.append(f"One of {', '.join(told['choices'])}.")
    return [f"# {line}" for part in about for line in wrap(part, 110)]


def _is_whole(knob: Field[Any]) -> bool:
    return knob.type in (int, int | None)
