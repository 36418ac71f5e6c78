"""What a learning starts from: the tasks of a bank in order, an encoder, tuned if asked for, and encoded texts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder, require_registered
from manymetrics.encode.rows import remember_rows
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sentence_sources import load_encoder
from manymetrics.encode.sources import load_vectors
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Engine
from manymetrics.errors import DataError, InputError, NotEnoughExamples, RecipeError
from manymetrics.measure import get_ready_to_train
from manymetrics.recipe import WORDS as STATIC
from manymetrics.recipe import Recipe
from manymetrics.specialize import tune_encoder
from manymetrics.values import TARGET, Clusters, Material, Task, TaskBank, Work
from manymetrics.weigh import hold_out_tasks

WORDS, SENTENCE = "word-vectors", "sentence"  # the name of the metric that an encoder gives as it is


def past_tasks(tasks: TaskBank | Iterable[Task] | str | Path) -> TaskBank:
    """The tasks to learn from: those given, or those of a folder that it does not mark as targets."""
    if not isinstance(tasks, str | Path):
        return tasks if isinstance(tasks, TaskBank) else TaskBank(tuple(_checked(tasks)))
    bank = load_tasks(tasks)
    return bank.only([name for name in bank.names if bank.role(name) != TARGET])


def _checked(tasks: Iterable[Task]) -> Iterator[Task]:
    for task in tasks:
        if not isinstance(task, Task):
            raise DataError(
                f"Found {str(task)[:40]!r} of type {type(task).__name__} where a task was expected. "
                "Give a folder, a bank, or some of its tasks."
            )
        yield task


def load_base(recipe: Recipe) -> WordVectors | SentenceEncoder:
    """What a recipe stands on."""
    return load_vectors(recipe.vectors) if recipe.encoder == STATIC else load_encoder(recipe.encoder)


def in_order(bank: TaskBank, clusters: int | None) -> TaskBank:
    """The bank with its tasks in the order of their names, so that the order they came in does not matter."""
    if len(bank) < 2:
        found = f"{len(bank)} task{'s' * (len(bank) != 1)}"
        raise NotEnoughExamples(f"Found {found} to learn from. Metrics are learned from at least two.")
    if clusters is not None and clusters > len(bank):
        raise RecipeError(
            f"The recipe asks for {clusters} clusters of {len(bank)} tasks. Ask for fewer, or leave the number open."
        )
    return bank.only(sorted(bank.names))


@dataclass(frozen=True, eq=False)
class Learning:
    """What a learning starts from."""

    material: Material  # the bank without its test examples
    base: WordVectors | SentenceEncoder
    encoders: Mapping[str, Encoder]  # by the names of the metrics they give as they are, the base's among them
    bank_fingerprint: str
    shared: bytes = b""  # the projection that all tasks share, where learning stands on a sentence encoder

    @property
    def words(self) -> WordVectors:
        """The word vectors that networks stand on."""
        if not isinstance(self.base, WordVectors):
            raise InputError("Networks stand on word vectors, and this learning on a sentence encoder.")
        return self.base

    @property
    def base_name(self) -> str:
        """The name of the metric that the base gives as it is."""
        return WORDS if isinstance(self.base, WordVectors) else SENTENCE


def prepare(bank: TaskBank, base: WordVectors | SentenceEncoder, encoders: Mapping[str, Encoder]) -> Learning:
    """Check what is given; with word vectors, cut the bank's texts into tokens, once for all who look at them."""
    for name, encoder in encoders.items():
        if name in (WORDS, SENTENCE, "letters"):
            raise InputError(f"An encoder is named {name!r}, as a metric is already. Give it another name.")
        require_registered(encoder)
    material = Material(bank.without_tests(), {base.fingerprint: base})
    if isinstance(base, WordVectors):
        for task in material.bank:
            base.tokens(task.train.texts)
            base.tokens(task.valid.texts)
    learning = Learning(material, base, {}, bank.fingerprint)
    return replace(learning, encoders={learning.base_name: base, **encoders})


def make_ready(learning: Learning, recipe: Recipe, **where: Any) -> Learning:
    """All that comes before the stages: the sentence encoder is tuned, and texts are encoded."""
    if isinstance(learning.base, SentenceEncoder) and recipe.tuning_steps:
        with Engine(learning.material, **where) as work:
            learning = with_tuned_base(learning, learning.base, work, recipe)
    if isinstance(learning.base, SentenceEncoder):
        with Engine(learning.material, **where) as work:
            remember_rows(learning.material, learning.base, work)
    return learning


def at_work(learning: Learning, **where: Any) -> Engine:
    """Where the stages are worked on."""
    ready: dict[str, Any] = {"get_ready": get_ready_to_train} if isinstance(learning.base, WordVectors) else {}
    return Engine(learning.material, **where, **ready)


def with_tuned_base(learning: Learning, base: SentenceEncoder, work: Work, recipe: Recipe) -> Learning:
    """With the sentence encoder tuned on all tasks but those held out, where that pays on these."""
    tuned = tune_encoder(learning.material, work, base=base, steps=recipe.tuning_steps,
                         held_out=hold_out(learning, recipe), seed=recipe.seed)  # fmt: skip
    others = {name: one for name, one in learning.encoders.items() if name != learning.base_name}
    return replace(prepare(learning.material.bank, tuned, others), bank_fingerprint=learning.bank_fingerprint)


def hold_out(learning: Learning, recipe: Recipe, clusters: Clusters | None = None) -> tuple[str, ...]:
    """The tasks kept from training: a share of each cluster, or of all tasks where nothing is known of clusters yet."""
    bank = learning.material.bank
    sources = {task.name: task.source for task in bank}
    together = Clusters(bank.names, np.zeros(len(bank), dtype=np.int64))
    return hold_out_tasks(clusters or together, sources, recipe.held_out, seed=recipe.seed)
