"""What comes before learning: making and reading tasks, drawing episodes, and texts that are made to be slow."""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.harness import Options, Row, Target, repeat, seconds, settle, timed
from benchmarks.material import paper_vectors, usual_vectors
from manymetrics.collect.importers.rasa import is_rasa, read_rasa
from manymetrics.encode import Tokenizer
from manymetrics.episodes import draw_indices

EPISODES = 1000


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    settle(1)
    tasks = options.size(1000, 16)
    return [
        _row(f"sample_bank, {tasks:,} tasks", lambda: mm.sample_bank(1, tasks=tasks), 10, options),
        _row(f"draw {EPISODES:,} episodes, 5-way 5-shot", _draw_episodes(), 2, options, "3,000 texts of 20 labels"),
        _rasa(options.size(400_000, 4_000), options),
        _long_texts(options.size(1_000_000, 10_000), options),
    ]


def _row(what: str, task: Callable[[], Any], bound: float, options: Options, note: str = "") -> Row:
    times = repeat(task, options.rounds)
    target = Target(bound, "s", at_least=False)
    return Row(what, seconds(times), target=target, value=statistics.median(times), note=note)


def _draw_episodes() -> Callable[[], None]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 20, size=3_000)
    groups = [np.flatnonzero(labels == label) for label in range(20)]

    def draw() -> None:
        for _ in range(EPISODES):
            draw_indices(groups, 5, 5, 25, rng)

    return draw


def _rasa(size: int, options: Options) -> Row:
    """Openings that nothing closes: a careless pattern would look for the end from each of them."""
    slow = {
        "comments.md": "## intent:a\n- " + "<!--" * (size // 2),
        "brackets.md": "## intent:a\n- " + "[" * size,
        "links.md": "## intent:a\n- b " + "[a](" * (size // 4) + "[a][{" * (size // 4),
        "braces.yml": "\n \t{" * (3 * size // 4),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in slow.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")

        def read() -> list[Any]:
            files = [Path(folder) / name for name in slow]
            return [read_rasa(file) for file in files if is_rasa(file)]

        note = f"some {size:,} openings without an end in each; the last is found to be no such file"
        return _row("read four Rasa files made to be slow", read, 5, options, note)


def _long_texts(size: int, options: Options) -> Row:
    """The slowest of several texts without end, under each kind of tokenizer."""
    texts = ["helo" * (size // 4), "!" * size, "😀" * (size // 4), " " * size, "x " * (size // 2)]
    kinds = [usual_vectors().tokenizer, paper_vectors().tokenizer, Tokenizer("words", vocabulary={"helo": 1})]
    times = {(kind.kind, text[:4]): _cut(kind, text, options.rounds) for kind in kinds for text in texts}
    slowest = max(times, key=lambda one: statistics.median(times[one]))
    return Row(
        f"cut one text of {size:,} characters into tokens",
        seconds(times[slowest]),
        target=Target(1, "s", at_least=False),
        value=statistics.median(times[slowest]),
        note=f"the slowest of five texts and three kinds of tokenizer: {slowest[1]!r} again and again, {slowest[0]}",
    )


def _cut(tokenizer: Tokenizer, text: str, rounds: int) -> list[float]:
    """The seconds of each round, by a tokenizer that remembers no word."""
    fresh = [Tokenizer.from_dict(tokenizer.as_dict()) for _ in range(rounds)]
    return [timed(partial(one.cut, [text]))[0] for one in fresh]
