"""All tasks -> one metric more: word vectors, moved until their plain mean tells the bank's labels apart.

The clusters' networks see windows of words and learn from their own tasks; this metric sees single words and learns
from all tasks, the held-out ones excepted, on which its training stops. Where tasks share their labels there is none:
linear metrics do there what it does here (`specialize.linear`).
"""

import warnings
from collections.abc import Collection
from dataclasses import asdict, replace

from safetensors.numpy import load

from manymetrics.encode.encoders import open_mean_encoder
from manymetrics.encode.reading import ReadBank
from manymetrics.encode.settings import Training
from manymetrics.errors import UnitLeftOut, UnitsFailed
from manymetrics.specialize.metric import SHARED_LABEL, TUNED, Metric, SimilarityMetric
from manymetrics.specialize.training import choose_objective, draw_material, pack_metric, read_about
from manymetrics.values import Clusters, Unit, Work

STAGE = "specialize-words"
VERSION = 1
NAME = "tuned-vectors"
LOST_WORDS = 0.3  # share of the words hidden at each step; chosen on meta-validation tasks
LONGER = 4  # times as many steps as a network takes: each is that much shorter


def train_word_metric(bank: ReadBank, clusters: Clusters, work: Work, *, objective: str, training: Training,
                      held_out: Collection[str] = (), seed: int = 0) -> list[Metric]:  # fmt: skip
    """Train the metric on the tasks of all clusters; none where tasks share their labels, or where it failed."""
    objective = choose_objective(bank, objective)
    if objective == SHARED_LABEL:
        return []
    longer = replace(training, steps=LONGER * training.steps, check_every=LONGER * training.check_every)
    prints = {name: bank[name].fingerprint for name in sorted(clusters.names)}
    tasks = {name: fingerprint for name, fingerprint in prints.items() if name not in held_out}
    stop_on = {name: fingerprint for name, fingerprint in prints.items() if name in held_out}
    spec = {"version": VERSION, "seed": seed, "objective": objective, "vectors": bank.vectors.fingerprint}
    spec |= {"lost_words": LOST_WORDS, "training": asdict(longer), "tasks": tasks, "held_out": stop_on}
    try:
        payload = work(STAGE, train_words, [Unit(NAME, spec)])[NAME]
    except UnitsFailed as failed:  # its only unit; the clusters have metrics of their own
        warnings.warn(f"{failed} The model comes out without it.", UnitLeftOut, stacklevel=2)
        return []
    about = read_about(payload)
    encoder = open_mean_encoder(load(payload), bank.vectors.table)
    return [SimilarityMetric(NAME, TUNED, encoder, objective, about["temperature"], tuple(tasks))]


def train_words(unit: Unit, bank: ReadBank) -> bytes:
    """Move the word vectors on episodes of the unit's tasks."""
    from manymetrics.encode.fitting import fit_words

    tasks, held_out = ([bank[name] for name in unit.spec[part]] for part in ("tasks", "held_out"))
    training, rng = Training(**unit.spec["training"]), unit.rng(unit.spec["seed"])
    train, trials = draw_material(tasks, held_out, training.shots, rng)
    kind, lost_words, table = unit.spec["objective"], unit.spec["lost_words"], bank.vectors.table
    fitted = fit_words(table, train, trials, kind=kind, lost_words=lost_words, training=training, rng=rng)
    return pack_metric(fitted, table, kind=kind)
