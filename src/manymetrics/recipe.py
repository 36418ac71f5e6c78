"""The settings of learning, in the order of the stages, each with what it is and what it can be set to.

The defaults are the paper's where it gives them, else what did best on meta-validation tasks.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import Field, asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Any

from manymetrics.encode.low_rank import LowRankRepresentation
from manymetrics.encode.projection import ProjectionRepresentation
from manymetrics.encode.representation import Phases, representation_kind
from manymetrics.errors import RecipeError
from manymetrics.measure.convolution import OBJECTIVES, ConvolutionRepresentation
from manymetrics.values import SharedData

AUTO = "auto"
STATIC = WORDS = "words"  # in place of a sentence encoder: the mean of word vectors
PROJECTION, LOW_RANK = ProjectionRepresentation.kind, LowRankRepresentation.kind
CONVOLUTION = ConvolutionRepresentation.kind
SENTENCE = "sentence"  # every other encoder
ONLY = {WORDS: "word vectors", SENTENCE: "a sentence encoder", PROJECTION: "projections", CONVOLUTION: "convolutions"}
TYPES: dict[Any, Any] = {str: str, int: int, int | None: int, float: int | float, float | None: int | float}
NAMES = ("default", "tuned", "fast", "paper")
PUBLISHED_PARTITION: dict[str, Any] = {"evidence": "transfer", "p1": 0.5, "p2": 0.5}


def _setting(default: Any, about: str, *allowed: Any, odd: bool = False, only: str | None = None) -> Any:
    """A setting and what it can be set to: the smallest and the largest number, or the words to choose from.

    Where the default is None, None is allowed too: the value is chosen from the data. `only` is the encoder or the
    representation with which the setting has an effect, None for all: see ONLY.
    """
    return field(default=default, metadata={"about": about, "allowed": allowed, "odd": odd, "only": only})


def _describe_allowed(setting: Field[Any]) -> str:
    """What a setting can be set to."""
    allowed = setting.metadata["allowed"]
    if setting.type is str:
        return f"one of {', '.join(allowed)}" if allowed else "a name or a path, in quotes"
    kind = "an odd number" if setting.metadata["odd"] else "an integer" if TYPES[setting.type] is int else "a number"
    return f"{kind} from {allowed[0]:,} to {allowed[1]:,}"


def _is_allowed(setting: Field[Any], value: Any) -> bool:
    allowed = setting.metadata["allowed"]
    if value is None:
        return setting.default is None
    if isinstance(value, bool) or not isinstance(value, TYPES[setting.type]):
        return False
    if setting.type is str:
        return not allowed or value in allowed
    return allowed[0] <= value <= allowed[1] and not (setting.metadata["odd"] and value % 2 == 0)


class _Settings:
    """Settings that are checked when they are made, and can be written as TOML."""

    def __post_init__(self) -> None:
        """Refuse a value that a setting cannot have."""
        for setting, value in self._scalars():
            if not _is_allowed(setting, value):
                raise RecipeError(f"The setting {setting.name} is {value!r}. Set it to {_describe_allowed(setting)}.")

    def _scalars(self) -> Iterator[tuple[Field[Any], Any]]:
        """The settings that are no table, with their values."""
        settings: tuple[Field[Any], ...] = fields(self)  # type: ignore[arg-type]
        return ((setting, getattr(self, setting.name)) for setting in settings if "about" in setting.metadata)

    def _toml_lines(self, *, explained: bool) -> Iterator[str]:
        for setting, value in self._scalars():
            if explained:
                allowed, only = _describe_allowed(setting), setting.metadata["only"]
                parts = [setting.metadata["about"]]
                parts += [f"{allowed[0].upper()}{allowed[1:]}."] if setting.metadata["allowed"] else []
                parts += [f"Only with {ONLY[only]}."] if only else []
                yield from ("", *(f"# {line}" for part in parts for line in wrap(part, 110)))
            yield f"# {setting.name} is chosen from the data" if value is None else f"{setting.name} = {_toml(value)}"


@dataclass(frozen=True)
class ConvolutionSettings(_Settings):
    """The paper's networks: their shape and their training."""

    window: int = _setting(5, "Tokens that a filter covers.", 1, 99, odd=True)
    width: int = _setting(200, "Filters of an encoder.", 1, 10_000)
    task_steps: int = _setting(200, "Training steps of a single task's model, at most.", 1, 1_000_000)
    objective: str = _setting(AUTO, "How a cluster's metric is trained; auto: matching, or a classifier where all "
                              "tasks share their labels.", *OBJECTIVES)  # fmt: skip
    metric_steps: int = _setting(1500, "Training episodes of a cluster's metric, at most.", 1, 1_000_000)
    classifier_steps: int = _setting(6000, "Training steps, at most, where a cluster's metric is a classifier over "
                                     "shared labels.", 1, 1_000_000)  # fmt: skip
    learning_rate: float = _setting(2e-3, "Size of a training step.", 1e-9, 10)


@dataclass(frozen=True)
class Recipe(_Settings):
    """How to learn metrics from a bank; `print(recipe.as_toml(explained=True))` says what each setting is."""

    # encode
    encoder: str = _setting("bge-small", "The base encoder: a sentence encoder, by name or folder, or "
                            f"{WORDS!r}: the mean of word vectors.")  # fmt: skip
    pooling: str = _setting(AUTO, "How the encoder of a folder pools token embeddings; auto reads it from the folder's "
                            "files.", AUTO, "cls", "mean", only=SENTENCE)  # fmt: skip
    vectors: str = _setting("wordllama", "The word vectors: a known name or a text file.", only=WORDS)
    representation: str = _setting(
        PROJECTION,
        "What is trained on the tasks of a cluster: a projection of the encoder's embeddings; low-rank factors of the "
        "encoder's own layers, which need torch; the paper's convolution network over word vectors, which needs torch; "
        "or the kind of a representation of your own.",
    )
    # measure
    pairs: int | None = _setting(None, "Pairs of tasks to measure; by default all of a small bank and a sample of a "
                                 "large one.", 1, 10**12)  # fmt: skip
    own_steps: int = _setting(30, "Training episodes of a single task's projection.", 1, 1_000_000, only=PROJECTION)
    own_rate: float = _setting(1e-4, "Size of each of these training steps.", 1e-9, 10, only=PROJECTION)
    # partition
    evidence: str = _setting("all", "What similar pairs are found by: transfer alone, or label names and texts as "
                             "well, where they agree.", "all", "transfer")  # fmt: skip
    p1: float | None = _setting(None, "Standard deviations above the mean of its column that a score must lie for a "
                                "pair to be similar; by default so many that two tasks seldom serve one another by "
                                "chance.", 0, 10)  # fmt: skip
    p2: float = _setting(0.0, "And below it for a pair to be dissimilar; where a sample of pairs is measured, 0.25 at "
                         "most counts.", 0, 10)  # fmt: skip
    sparsity: float | None = _setting(None, "The paper's lambda; by default it follows from the share of pairs "
                                      "observed.", 1e-9, 10**9)  # fmt: skip
    clusters: int | None = _setting(None, "The paper's K: the number of clusters.", 1, 10_000)
    most_clusters: int = _setting(30, "Clusters, at most, where their number is not set.", 1, 10_000)
    # specialize
    shots: int = _setting(5, "Examples of each label of an episode.", 1, 1000)
    projection_steps: int = _setting(2000, "Training episodes, at most, of the projection that all tasks share.",
                                     1, 1_000_000, only=PROJECTION)  # fmt: skip
    projection_rate: float = _setting(1e-4, "Size of each of these training steps.", 1e-9, 10, only=PROJECTION)
    held_out: float = _setting(0.2, "Share of the tasks not trained on: to stop training, and to learn scope and "
                               "calibration.", 0, 0.9)  # fmt: skip
    # all stages
    seed: int = _setting(0, "Of all randomness; the same seed gives the same model.", 0, 2**63 - 1)
    convolution: ConvolutionSettings = field(default=ConvolutionSettings(), metadata={"only": CONVOLUTION})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.representation == CONVOLUTION and self.encoder != WORDS:
            raise RecipeError(f"Convolution networks are trained over word vectors: set encoder to {WORDS!r}.")
        if self.representation == LOW_RANK and self.encoder == WORDS:
            raise RecipeError(
                "Low-rank factors are trained over a sentence encoder: set encoder to its name or folder."
            )
        used = {None, WORDS if self.encoder == WORDS else SENTENCE, self.representation}
        used |= {PROJECTION} if self.representation == LOW_RANK else set()  # of single tasks, and of all tasks
        unused = [setting for setting in fields(self) if setting.metadata["only"] not in used]
        useless = {setting.name: getattr(self, setting.name) for setting in unused}
        listed = [f"{name} = {_toml(value)}" for name, value in useless.items() if value != getattr(Recipe, name)]
        if listed:
            base = "word vectors" if self.encoder == WORDS else f"the sentence encoder {self.encoder!r}"
            raise RecipeError(
                f"Learning with {base} and {self.representation}s does not use {', '.join(listed)}. "
                "Leave out what has no effect."
            )

    @classmethod
    def tuned(cls, **settings: Any) -> "Recipe":
        """The default, with an encoder for each cluster it improves; learning needs torch, answering does not."""
        return cls(**{"representation": LOW_RANK, **settings})

    @classmethod
    def fast(cls, **settings: Any) -> "Recipe":
        """A static encoder, the mean of word vectors: fast, and less accurate; learning needs no torch."""
        return cls(**{"encoder": WORDS, **settings})

    @classmethod
    def paper(cls, **settings: Any) -> "Recipe":
        """The paper's: convolution networks over fixed GloVe vectors, accuracy as score, its filter; needs torch.

        Settings of the networks can be given beside the others.
        """
        networks = {name: settings.pop(name) for name in CONVOLUTION_NAMES if name in settings}
        convolution = ConvolutionSettings(**networks)
        published = {"encoder": WORDS, "representation": CONVOLUTION, "vectors": "glove-100d"} | PUBLISHED_PARTITION
        return cls(**{**published, "convolution": convolution, **settings})

    @classmethod
    def named(cls, name: str) -> "Recipe":
        """One of the recipes that have a name: default, tuned, fast, paper."""
        if name not in NAMES:
            raise RecipeError(f"There is no recipe {name!r}. Choose one of {', '.join(NAMES)}.")
        recipe: Recipe = getattr(cls, name, cls)()
        return recipe

    @property
    def is_published(self) -> bool:
        """Whether metrics are mixed as the paper does it (eqn:fsl)."""
        return self.representation == CONVOLUTION

    def phases(self, shared_data: SharedData) -> Phases:
        """The representations that learning trains on single tasks, on all of them, and on clusters."""
        settings = {**asdict(self), **asdict(self.convolution)}
        return representation_kind(self.representation).phases(shared_data.base, settings, shared_data.bank)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name; those of convolutions as a dict of their own, where these are in use."""
        settings = asdict(self)
        if self.representation != CONVOLUTION:
            del settings["convolution"]
        return settings

    @classmethod
    def from_dict(cls, settings: dict[str, Any], *, where: str = "the recipe") -> "Recipe":
        """A recipe from settings by name; what is not named keeps its default."""
        _check_names(settings, [setting.name for setting in fields(cls)], where)
        nested = settings.get("convolution", {})
        if not isinstance(nested, dict):
            raise RecipeError(f"The setting convolution in {where} is not a table. Write it as: [convolution]")
        _check_names(nested, CONVOLUTION_NAMES, where)
        return cls(**{**settings, "convolution": ConvolutionSettings(**nested)})

    @classmethod
    def load(cls, path: str | Path) -> "Recipe":
        """Read a recipe from a TOML file."""
        try:
            settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise RecipeError(f"Cannot read the recipe {path}: {problem}. Give the path of a TOML file.") from problem
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            message = f"{path} is not TOML: {problem}. Write one setting a line, as in: clusters = 5"
            raise RecipeError(message) from problem
        return cls.from_dict(settings, where=str(path))

    def as_toml(self, *, explained: bool = False) -> str:
        """The recipe as TOML; settings that are None are comments. `explained`: each with what it is."""
        lines = [*self._toml_lines(explained=explained)]
        if self.representation == CONVOLUTION:
            lines += ["", "[convolution]", *self.convolution._toml_lines(explained=explained)]
        return "\n".join(lines).strip() + "\n"


CONVOLUTION_NAMES = [setting.name for setting in fields(ConvolutionSettings)]


def _toml(value: str | float) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


def _check_names(settings: dict[str, Any], known: list[str], where: str) -> None:
    for name in settings:
        if name not in known:
            near = get_close_matches(name, [*known, *CONVOLUTION_NAMES], 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}."
            if name in CONVOLUTION_NAMES:
                hint = "It belongs under [convolution]."
            raise RecipeError(f"There is no setting {name!r} in {where}. {hint}")
