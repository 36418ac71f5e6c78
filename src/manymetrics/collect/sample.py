"""seed -> TaskBank: a made-up bank on which several metrics beat one.

Every utterance mixes several aspects: an action, a thing, a time, a person, a tone ... In each family of tasks another
aspect decides the label and the others are noise, drawn from a stock of phrases that all families share. A metric
trained on one family learns what to look at and what to ignore; one metric for all tasks cannot. The labels of a
target are partly values that no task of its family has had, so that it takes a metric, not a list of words.

The family of a task is the first word of its name (`banking-07`); outliers, which belong to no family, are `other-...`.
A task is made from the seed and its own name only: asking for more tasks leaves those already there as they are. The
phrases are in `sample_phrases.json`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import META_TRAIN, TARGET, Examples, Task, TaskBank, Texts

FEWEST_TASKS = 16
SHOTS = 5  # examples per label in the train split of a target
LONGEST, SHORTEST = 25, 5  # words in an utterance
_OTHER, _NEW = "other", "new"
_FIRST_FAMILIES = 7  # in every bank; the others join as the bank grows
_KEPT_BACK = 0.1  # share of a family's label values that only its target has
_DRAWS = 64  # random numbers at hand for one utterance

Phrases = tuple[str, ...]
Draw = Callable[[], float]


@dataclass(frozen=True)
class Domain:
    """How people talk in one family of tasks, and which aspect decides the labels there."""

    aspect: str
    things: Phrases  # what is talked about where no `object` of the shared stock is
    asides: Phrases  # half sentences that only show the domain


@dataclass(frozen=True)
class Outlier:
    """A topic that has nothing to do with any family: label -> phrases, and asides that do not depend on the label."""

    labels: Mapping[str, Phrases]
    asides: Phrases


@dataclass(frozen=True)
class SamplePhrases:
    """The phrases of the sample bank.

    A phrase never contains the name of its own value, so that a label cannot be read off the text. Phrases of the
    aspect `action` are followed by a thing, phrases of `object` are things, all others can stand anywhere in a
    sentence.
    """

    aspects: Mapping[str, Mapping[str, Phrases]]  # aspect -> value -> ways to say it
    domains: Mapping[str, Domain]  # by family
    outliers: Mapping[str, Outlier]  # by topic
    outlier_target: str  # the topic that no task to learn from has
    frames: Phrases  # around an action and a thing
    bare_frames: Phrases  # around a thing alone
    greetings: Phrases
    fillers: Phrases

    @cached_property
    def stock(self) -> Mapping[str, Phrases]:
        """All phrases of each aspect, whatever their value."""
        return {aspect: sum(values.values(), ()) for aspect, values in self.aspects.items()}


@cache
def sample_phrases() -> SamplePhrases:
    """The phrases of the sample bank, read once."""
    text = resources.files("manymetrics.collect").joinpath("sample_phrases.json").read_text(encoding="utf-8")
    content = _with_tuples(json.loads(text))
    domains = {family: Domain(**domain) for family, domain in content.pop("domains").items()}
    outliers = {topic: Outlier(**outlier) for topic, outlier in content.pop("outliers").items()}
    return SamplePhrases(domains=domains, outliers=outliers, **content)


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class _Style:
    """How one task talks: what its labels mean, and what else is in its sentences, how often."""

    meanings: Mapping[str, Phrases]  # label -> ways to say it
    aspect: str  # the one that decides the label
    things: Phrases
    asides: Phrases
    frames: Phrases
    clutter: tuple[tuple[str, float], ...]  # (aspect, how often it is in a sentence), never the deciding one
    fillers: float
    typos: float  # share of utterances with a slip of the keyboard
    wrong: float  # share of train labels that are wrong


def sample_bank(seed: int = 0, *, tasks: int = 48) -> TaskBank:
    """Make a bank of `tasks` tasks to learn from, and one unseen target for each family and one for none.

    Up to 95 tasks there are seven families; every further 48 tasks bring one more, up to fourteen. The same seed
    makes the same bank to the bit.
    """
    if tasks < FEWEST_TASKS:
        raise DataError(
            f"Asked for a sample bank of {tasks} tasks. Seven families and their outliers need at least "
            f"{FEWEST_TASKS}: ask for more."
        )
    roles = _names_and_roles(tasks)
    made = tuple(_make_task(name, seed, target=roles[name] == TARGET) for name in sorted(roles))
    return TaskBank(made, roles)


def planted_family(name: str) -> str | None:
    """The family a task of the sample bank was made for; None for a task that belongs to no family."""
    family = name.partition("-")[0]
    if family == _OTHER:
        return None
    if family not in (known := sample_phrases().domains):
        raise DataError(f"Task {name!r} is not from the sample bank. Its tasks begin with {', '.join(known)}.")
    return family


def _names_and_roles(tasks: int) -> dict[str, str]:
    phrases = sample_phrases()
    families = list(phrases.domains)[: _FIRST_FAMILIES + max(0, tasks - 48) // 48]
    topics = [topic for topic in phrases.outliers if topic != phrases.outlier_target]
    topics = topics[: min(tasks // 12, 4 + max(0, tasks - 48) // 192)]
    rounds = ((family, number) for number in range(1, tasks + 1) for family in families)
    past = [f"{family}-{number:02d}" for (family, number), _ in zip(rounds, range(tasks - len(topics)), strict=False)]
    past += [f"{_OTHER}-{topic}" for topic in topics]
    new = [f"{family}-{_NEW}" for family in families] + [f"{_OTHER}-{phrases.outlier_target}"]
    return dict.fromkeys(past, META_TRAIN) | dict.fromkeys(new, TARGET)


def _rng(seed: int, *words: str) -> np.random.Generator:
    digest = hashlib.sha256("\x00".join((str(seed), *words)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _pick(options: Sequence[str], draw: float) -> str:
    return options[int(draw * len(options))]


def _some(options: Sequence[str], count: int, rng: np.random.Generator) -> Phrases:
    """`count` of the options, in their order."""
    chosen = np.argsort(rng.random(len(options)), kind="stable")[:count]
    return tuple(options[place] for place in sorted(chosen.tolist()))


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
    return Task(name, train if target else _with_wrong_labels(train, style.wrong, rng), valid, test)


def _label_counts(labels: int, rng: np.random.Generator, *, target: bool) -> list[int]:
    """How many utterances each label has: balanced in half of the tasks, mildly uneven in the others."""
    if target:
        return [SHOTS + -(-(120 + int(rng.random() * 60)) // labels)] * labels
    total = max(14.0 * labels, 95 * 5.8 ** float(rng.random()))
    uneven = 0.0 if rng.random() < 0.5 else 0.5
    weights = 1 + uneven * (2 * rng.random(labels) - 1)  # (labels,)
    return [max(8, int(share)) for share in (min(total, 560) * weights / weights.sum()).tolist()]


def _family_style(family: str, seed: int, rng: np.random.Generator, *, target: bool) -> _Style:
    phrases = sample_phrases()
    domain = phrases.domains[family]
    aspects = [other.aspect for other in phrases.domains.values()]
    weights = {aspect: 1.0 if place < _FIRST_FAMILIES else 0.2 for place, aspect in enumerate(aspects)}
    clutter = tuple(
        (aspect, weights[aspect] * (0.08 + 0.2 * float(rng.random())))
        for aspect in phrases.aspects
        if aspect != domain.aspect
    )
    return _Style(
        meanings=_tone_meanings(rng) if domain.aspect == "tone" else _meanings(family, seed, rng, target=target),
        aspect=domain.aspect,
        things=domain.things,
        asides=_some(domain.asides, 3, rng),
        frames=_some(phrases.frames, 6, rng),
        clutter=clutter,
        fillers=0.2 + 0.4 * float(rng.random()),
        typos=0.1 + 0.25 * float(rng.random()),
        wrong=0.01 + 0.05 * float(rng.random()),
    )


def _meanings(family: str, seed: int, rng: np.random.Generator, *, target: bool) -> dict[str, Phrases]:
    """The labels of a task: some values of the deciding aspect; half of a target's are new to the family."""
    phrases = sample_phrases()
    values = phrases.aspects[phrases.domains[family].aspect]
    kept_back = _some(list(values), round(_KEPT_BACK * len(values)), _rng(seed, "kept back", family))
    open_values = [value for value in values if value not in kept_back]
    if target:
        labels = (*kept_back, *_some(open_values, 4 + int(rng.random() * 2), rng))
    else:
        labels = _some(open_values, 4 + int(rng.random() * (len(open_values) - 3)), rng)
    return {label: values[label] for label in labels}


def _tone_meanings(rng: np.random.Generator) -> dict[str, Phrases]:
    """Opinions have the same two labels everywhere, but every task draws the line between them elsewhere."""
    levels = list(sample_phrases().aspects["tone"].values())
    line = 1 + int(rng.random() * (len(levels) - 1))
    return {"negative": sum(levels[:line], ()), "positive": sum(levels[line:], ())}


def _outlier_style(topic: str, rng: np.random.Generator) -> _Style:
    outlier = sample_phrases().outliers[topic]
    return _Style(
        meanings=outlier.labels,
        aspect=topic,
        things=(),
        asides=outlier.asides,
        frames=(),
        clutter=(("time", 0.1), ("tone", 0.1)),
        fillers=0.3,
        typos=0.1 + 0.25 * float(rng.random()),
        wrong=0.03,
    )


def _examples(labels: list[str], style: _Style, rng: np.random.Generator) -> Examples:
    """One utterance for each label, in a random order."""
    order = np.argsort(rng.random(len(labels)), kind="stable").tolist()
    shuffled = tuple(labels[place] for place in order)
    draws = rng.random((len(labels), _DRAWS)).tolist()
    texts = Texts(_utterance(label, style, iter(row).__next__) for label, row in zip(shuffled, draws, strict=True))
    return Examples(texts, shuffled)


def _utterance(label: str, style: _Style, draw: Draw) -> str:
    """A sentence that says what the label means, somewhere, among other things."""
    phrases = sample_phrases()
    chosen = {aspect: _pick(phrases.stock[aspect], draw()) for aspect, often in style.clutter if draw() < often}
    chosen[style.aspect] = _pick(style.meanings[label], draw())
    core = _core(chosen, style, draw)
    parts = [(draw(), aspect == style.aspect, phrase) for aspect, phrase in chosen.items()]
    if core:
        parts.append((0.25 + 0.5 * draw(), True, core))
    if draw() < style.fillers:
        parts.append((draw(), False, _pick(phrases.fillers, draw())))
    if draw() < 0.25:
        parts.append((-1.0, False, _pick(phrases.greetings, draw())))
    if draw() < 0.4:
        parts.append((draw(), False, _pick(style.asides, draw())))
    while _words(parts) < SHORTEST:
        parts.append((draw(), False, _pick(style.asides, draw())))
    while _words(parts) > LONGEST:
        parts.remove(next(part for part in parts if not part[1]))
    text = _pick((" ", ", "), draw()).join([phrase for _, _, phrase in sorted(parts)])
    return _mistype(text, draw) if draw() < style.typos else text


def _core(chosen: dict[str, str], style: _Style, draw: Draw) -> str:
    """What is to be done with what: the part of the sentence whose words cannot be moved about; may be empty."""
    action, thing = chosen.pop("action", ""), chosen.pop("object", "")
    if not thing and style.things and (action or draw() < 0.5):
        thing = _pick(style.things, draw())
    if action:
        return _pick(style.frames, draw()).format(f"{action} {thing}")
    return _pick(sample_phrases().bare_frames, draw()).format(thing) if thing else ""


def _words(parts: list[tuple[float, bool, str]]) -> int:
    return len(parts) + sum([phrase.count(" ") for _, _, phrase in parts])


def _mistype(text: str, draw: Draw) -> str:
    """Leave out, double or swap one letter, or nothing where the slip would fall on a space."""
    place = 1 + int(draw() * (len(text) - 2))
    kind = int(draw() * 3)
    if " " in text[place - 1 : place + 1]:
        return text
    if kind == 0:
        return text[:place] + text[place + 1 :]
    if kind == 1:
        return text[:place] + text[place - 1] + text[place:]
    return text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :]


def _with_wrong_labels(examples: Examples, share: float, rng: np.random.Generator) -> Examples:
    """Give a few examples another label of the task; the first of every label keeps its own."""
    names = sorted(set(examples.labels))
    draws = rng.random((len(examples), 2)).tolist()
    seen: set[str] = set()
    labels = []
    for label, (chance, which) in zip(examples.labels, draws, strict=True):
        others = [name for name in names if name != label]
        labels.append(_pick(others, which) if label in seen and chance < share else label)
        seen.add(label)
    return Examples(examples.texts, tuple(labels))
