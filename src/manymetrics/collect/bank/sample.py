"""seed -> TaskBank: a generated bank on which several metrics are better than one.

Every utterance mixes several aspects: an action, a thing, a time, a person, a tone ... In each family of tasks another
aspect decides the label and the others are noise, drawn from phrases that all families share. A metric trained on one
family learns which aspect matters; one metric for all tasks cannot. Some labels of a target are values that no task of
its family has, so that a list of words is not enough.

The family of a task is the first word of its name (`banking-07`); tasks without a family are named `other-...`. A task
depends on the seed and its name only: a larger bank contains the tasks of a smaller one. The phrases are in
`sample_phrases.json`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import META_TRAIN, TARGET, Examples, Task, TaskBank

MIN_TASKS = 16
SHOTS = 5  # examples per label in the train split of a target
MIN_WORDS, MAX_WORDS = 5, 25  # in an utterance
_OTHER, _NEW = "other", "new"
_FIRST_FAMILIES = 7  # in every bank; larger banks have more
_TARGET_ONLY = 0.1  # share of a family's label values that only its target has
_DRAWS = 64  # random numbers for one utterance

Phrases = Sequence[str]
Draw = Callable[[], float]


@cache
def sample_phrases() -> dict[str, Any]:
    """The phrases of the sample bank, as in `sample_phrases.json`.

    `aspects`: aspect -> value -> phrases. No phrase contains the name of its value, so that no text contains its label.
    Phrases of `action` are followed by a thing, phrases of `object` are things, others can be anywhere in a sentence.
    `domains`: family -> the aspect that decides its labels, things, and asides that only show the domain. `outliers`:
    topic outside all families -> phrases of its labels, and asides; only a target has the topic `outlier_target`.
    """
    path = resources.files("manymetrics.collect.bank").joinpath("sample_phrases.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True)
class _Style:
    """The phrases of one task, and how often other things are in its utterances."""

    meanings: Mapping[str, Phrases]  # label -> phrases
    aspect: str  # the one that decides the label
    things: Phrases
    asides: Phrases
    frames: Phrases
    noise: Sequence[tuple[str, Phrases, float]]  # aspect, its phrases, share of utterances that have one of them
    fillers: float  # share of utterances with a filler
    typos: float  # share of utterances with a typing error
    wrong_labels: float  # share of train labels that are wrong


def sample_bank(seed: int = 0, *, tasks: int = 48) -> TaskBank:
    """Generate a bank of `tasks` tasks to learn from, one target for each family, and one without a family.

    Up to 95 tasks there are seven families; every further 48 tasks add one, up to fourteen. The same seed gives the
    same bank to the bit.
    """
    if tasks < MIN_TASKS:
        raise DataError(f"Asked for a sample bank of {tasks} tasks. Its families need at least {MIN_TASKS} tasks.")
    roles = _names_and_roles(tasks)
    return TaskBank(tuple(_make_task(name, seed, target=roles[name] == TARGET) for name in sorted(roles)), roles)


def planted_family(name: str) -> str | None:
    """The family of a task of the sample bank; None for a task without a family."""
    family = name.partition("-")[0]
    if family == _OTHER:
        return None
    if family not in (known := sample_phrases()["domains"]):
        raise DataError(f"Task {name!r} is not from the sample bank. Its tasks begin with {', '.join(known)}.")
    return family


def _names_and_roles(tasks: int) -> dict[str, str]:
    phrases = sample_phrases()
    families = list(phrases["domains"])[: _FIRST_FAMILIES + max(0, tasks - 48) // 48]
    topics = [topic for topic in phrases["outliers"] if topic != phrases["outlier_target"]]
    topics = topics[: min(tasks // 12, 4 + max(0, tasks - 48) // 192)]
    rounds = ((family, number) for number in range(1, tasks + 1) for family in families)
    past = [f"{family}-{number:02d}" for (family, number), _ in zip(rounds, range(tasks - len(topics)), strict=False)]
    past += [f"{_OTHER}-{topic}" for topic in topics]
    new = [f"{family}-{_NEW}" for family in families] + [f"{_OTHER}-{phrases['outlier_target']}"]
    return dict.fromkeys(past, META_TRAIN) | dict.fromkeys(new, TARGET)


def _rng(seed: int, *words: str) -> np.random.Generator:
    digest = hashlib.sha256("\x00".join((str(seed), *words)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _pick(options: Sequence[str], draw: float) -> str:
    return options[int(draw * len(options))]


def _some(options: Sequence[str], count: int, rng: np.random.Generator) -> Phrases:
    """`count` of the options, in their order."""
    chosen = np.argsort(rng.random(len(options)), kind="stable")[:count]
    return tuple(options[index] for index in sorted(chosen.tolist()))


def _make_task(name: str, seed: int, *, target: bool) -> Task:
    rng = _rng(seed, name)
    family, _, rest = name.partition("-")
    style = _outlier_style(rest, rng) if family == _OTHER else _family_style(family, seed, rng, target=target)
    counts = _label_counts(len(style.meanings), rng, target=target)
    splits: tuple[list[str], list[str], list[str]] = ([], [], [])  # labels of train, valid, test
    for label, count in zip(style.meanings, counts, strict=True):
        first = SHOTS if target else round(0.64 * count)
        second = 0 if target else max(1, round(0.16 * count))
        for split, size in zip(splits, (first, second, count - first - second), strict=True):
            split.extend([label] * size)
    train, valid, test = (_examples(labels, style, rng) for labels in splits)
    return Task(name, train if target else _with_wrong_labels(train, style.wrong_labels, rng), valid, test)


def _label_counts(labels: int, rng: np.random.Generator, *, target: bool) -> list[int]:
    """The number of utterances of each label: equal in half of the tasks, mildly unequal in the others."""
    if target:
        return [SHOTS + -(-(120 + int(rng.random() * 60)) // labels)] * labels
    total = max(14.0 * labels, 95 * 5.8 ** float(rng.random()))
    uneven = 0.0 if rng.random() < 0.5 else 0.5
    weights = 1 + uneven * (2 * rng.random(labels) - 1)  # (labels,)
    return [max(8, int(share)) for share in (min(total, 560) * weights / weights.sum()).tolist()]


def _family_style(family: str, seed: int, rng: np.random.Generator, *, target: bool) -> _Style:
    phrases = sample_phrases()
    domain = phrases["domains"][family]
    later = [other["aspect"] for other in phrases["domains"].values()][_FIRST_FAMILIES:]
    noise = [
        (aspect, [*chain(*values.values())], (0.2 if aspect in later else 1.0) * (0.08 + 0.2 * float(rng.random())))
        for aspect, values in phrases["aspects"].items()
        if aspect != domain["aspect"]
    ]
    return _Style(
        meanings=_meanings(family, seed, rng, target=target),
        aspect=domain["aspect"],
        things=domain["things"],
        asides=_some(domain["asides"], 3, rng),
        frames=_some(phrases["frames"], 6, rng),
        noise=noise,
        fillers=0.2 + 0.4 * float(rng.random()),
        typos=0.1 + 0.25 * float(rng.random()),
        wrong_labels=0.01 + 0.05 * float(rng.random()),
    )


def _outlier_style(topic: str, rng: np.random.Generator) -> _Style:
    outlier, aspects = sample_phrases()["outliers"][topic], sample_phrases()["aspects"]
    noise = [(aspect, [*chain(*aspects[aspect].values())], 0.1) for aspect in ("time", "tone")]
    typos = 0.1 + 0.25 * float(rng.random())
    return _Style(outlier["labels"], topic, (), outlier["asides"], (), noise, 0.3, typos, wrong_labels=0.03)


def _meanings(family: str, seed: int, rng: np.random.Generator, *, target: bool) -> dict[str, Phrases]:
    """The labels of a task: some values of the deciding aspect; half of a target's are new to the family.

    Opinions have the same two labels in all tasks, but each task has its own border between them.
    """
    phrases = sample_phrases()
    aspect = phrases["domains"][family]["aspect"]
    values = phrases["aspects"][aspect]
    if aspect == "tone":
        levels = list(values.values())
        border = 1 + int(rng.random() * (len(levels) - 1))
        return {"negative": [*chain(*levels[:border])], "positive": [*chain(*levels[border:])]}
    target_only = _some(list(values), round(_TARGET_ONLY * len(values)), _rng(seed, "kept back", family))
    others = [value for value in values if value not in target_only]
    count = 4 + int(rng.random() * (2 if target else len(others) - 3))
    return {label: values[label] for label in (*(target_only if target else ()), *_some(others, count, rng))}


def _examples(labels: list[str], style: _Style, rng: np.random.Generator) -> Examples:
    """One utterance for each label, in a random order."""
    order = np.argsort(rng.random(len(labels)), kind="stable").tolist()
    shuffled = tuple(labels[index] for index in order)
    draws = rng.random((len(labels), _DRAWS)).tolist()
    pairs = zip(shuffled, draws, strict=True)
    return Examples(tuple(_utterance(label, style, iter(row).__next__) for label, row in pairs), shuffled)


def _utterance(label: str, style: _Style, draw: Draw) -> str:
    """A sentence with a phrase of the label among other phrases."""
    phrases = sample_phrases()
    chosen = {aspect: _pick(options, draw()) for aspect, options, share in style.noise if draw() < share}
    chosen[style.aspect] = _pick(style.meanings[label], draw())
    core = _core(chosen, style, draw)
    parts = [(draw(), aspect == style.aspect, phrase) for aspect, phrase in chosen.items()]  # (place, needed, phrase)
    if core:
        parts.append((0.25 + 0.5 * draw(), True, core))
    if draw() < style.fillers:
        parts.append((draw(), False, _pick(phrases["fillers"], draw())))
    if draw() < 0.25:
        parts.append((-1.0, False, _pick(phrases["greetings"], draw())))
    if draw() < 0.4:
        parts.append((draw(), False, _pick(style.asides, draw())))
    while _words(parts) < MIN_WORDS:
        parts.append((draw(), False, _pick(style.asides, draw())))
    while _words(parts) > MAX_WORDS:
        parts.remove(next(part for part in parts if not part[1]))
    text = _pick((" ", ", "), draw()).join([phrase for _, _, phrase in sorted(parts)])
    return _mistype(text, draw) if draw() < style.typos else text


def _core(chosen: dict[str, str], style: _Style, draw: Draw) -> str:
    """An action and its thing, which stay together; may be empty."""
    action, thing = chosen.pop("action", ""), chosen.pop("object", "")
    if not thing and style.things and (action or draw() < 0.5):
        thing = _pick(style.things, draw())
    if action:
        return _pick(style.frames, draw()).format(f"{action} {thing}")
    return _pick(sample_phrases()["bare_frames"], draw()).format(thing) if thing else ""


def _words(parts: list[tuple[float, bool, str]]) -> int:
    return len(parts) + sum([phrase.count(" ") for _, _, phrase in parts])


def _mistype(text: str, draw: Draw) -> str:
    """Omit, double or swap one letter; nothing changes beside a space."""
    index = 1 + int(draw() * (len(text) - 2))
    kind = int(draw() * 3)
    before, letter = text[index - 1], text[index]
    if " " in (before, letter):
        return text
    return text[: index - 1] + (before, before + before + letter, letter + before)[kind] + text[index + 1 :]


def _with_wrong_labels(examples: Examples, share: float, rng: np.random.Generator) -> Examples:
    """Give a few examples another label of the task; the first example of each label keeps its label."""
    names = sorted(set(examples.labels))
    draws = rng.random((len(examples), 2)).tolist()
    seen: set[str] = set()
    labels = []
    for label, (chance, choice) in zip(examples.labels, draws, strict=True):
        others = [name for name in names if name != label]
        labels.append(_pick(others, choice) if label in seen and chance < share else label)
        seen.add(label)
    return Examples(examples.texts, tuple(labels))
