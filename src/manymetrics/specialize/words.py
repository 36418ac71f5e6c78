"""All tasks -> one metric more: word vectors, moved until their plain mean tells the bank's labels apart.

The clusters' networks see windows of words and learn from their own tasks; this metric sees single words and learns
from all tasks, the held-out ones excepted, on which its training stops. Where tasks share their labels there is none:
linear metrics do there what it does here (`specialize.linear`).
"""

import warnings
from collections.abc import Collection
from dataclasses import asdict, replace

from safetensors.numpy import load

from manymetrics.encode.settings import Training
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import UnitLeftOut, UnitsFailed
from manymetrics.specialize.metric import SHARED_LABEL, TUNED, Metric, SimilarityMetric
from manymetrics.specialize.training import choose_objective, open_words, pack_metric, read_about, training_episodes
from manymetrics.values import Clusters, Material, Unit, Work

STAGE = "specialize-words"
NAME = "tuned-vectors"
WORD_DROPOUT = 0.3  # chosen on meta-validation tasks
LONGER = 4  # times as many steps as a network takes: each is that much shorter


def train_word_metric(material: Material, clusters: Clusters, work: Work, *, words: WordVectors, objective: str,
                      training: Training, held_out: Collection[str] = (), seed: int = 0) -> list[Metric]:  # fmt: skip
    """Train the metric on the tasks of all clusters; none where tasks share their labels, or where it failed."""
    objective = choose_objective(material.bank, objective)
    if objective == SHARED_LABEL:
        return []
    longer = replace(training, steps=LONGER * training.steps, check_every=LONGER * training.check_every)
    prints = {name: material.bank[name].fingerprint for name in sorted(clusters.names)}
    tasks = {name: fingerprint for name, fingerprint in prints.items() if name not in held_out}
    stop_on = {name: fingerprint for name, fingerprint in prints.items() if name in held_out}
    spec = {"seed": seed, "objective": objective, "words": words.fingerprint}
    spec |= {"word_dropout": WORD_DROPOUT, "training": asdict(longer), "tasks": tasks, "held_out": stop_on}
    try:
        payload = work(STAGE, train_words, [Unit(NAME, spec)])[NAME]
    except UnitsFailed as failed:  # its only unit; the clusters have metrics of their own
        warnings.warn(f"{failed} The model comes out without it.", UnitLeftOut, stacklevel=2)
        return []
    temperature = read_about(payload)["temperature"]
    return [SimilarityMetric(NAME, TUNED, open_words(load(payload), words), objective, temperature, tuple(tasks))]


def train_words(unit: Unit, material: Material) -> bytes:
    """Move the word vectors on episodes of the unit's tasks."""
    from manymetrics.encode.fitting import fit_words

    tasks, held_out = ([material.bank[name] for name in unit.spec[part]] for part in ("tasks", "held_out"))
    training, rng = Training(**unit.spec["training"]), unit.rng(unit.spec["seed"])
    train, episodes = training_episodes(tasks, held_out, training.shots, rng)
    words, kind, dropout = material.encoders[unit.spec["words"]], unit.spec["objective"], unit.spec["word_dropout"]
    fitted = fit_words(words, train, episodes, kind=kind, word_dropout=dropout, training=training, rng=rng)
    return pack_metric(fitted, kind=kind)
