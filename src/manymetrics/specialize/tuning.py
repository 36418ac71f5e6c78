"""A bank -> a sentence encoder of its own: copies are tuned side by side, averaged, and tuned again.

In each round two copies take the same number of episodes of the tasks that are not held out, one unit of work each,
from the average of the round before. The number of copies is fixed, so that the result does not depend on how many
workers there are. The tuned encoder is kept only if it makes the held-out tasks' answers likelier than the one given.
"""

import logging
from collections.abc import Collection
from dataclasses import asdict

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.projection import FittedProjection, TaskTexts, log_likelihood
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import ProjectionTraining, TuningSettings
from manymetrics.measure.projections import task_problem
from manymetrics.values import Floats, Material, Task, Unit, Work

LOG = logging.getLogger("manymetrics")
STAGE = "specialize-encoder"
COPIES, ROUNDS = 2, 3
SHOTS, QUERIES = 3, 60  # of a held-out task's problem
TEMPERATURES = (10.0, 15.0, 20.0, 30.0)


def tune_encoder(material: Material, work: Work, *, base: SentenceEncoder, steps: int, held_out: Collection[str],
                 seed: int) -> SentenceEncoder:  # fmt: skip
    """The encoder tuned on all tasks but those held out, or the one given where that is no better for these."""
    from manymetrics.encode.tuning import Transformer, with_weights

    Transformer(base)  # an encoder that cannot be tuned is found out here, not by every unit
    settings = TuningSettings(steps=max(1, steps // ROUNDS))
    tasks = {task.name: task.fingerprint for task in material.bank if task.name not in held_out}
    before: tuple[bytes, ...] = ()
    for number in range(ROUNDS):
        spec = {"encoder": base.fingerprint, "settings": asdict(settings), "tasks": tasks, "seed": seed,
                "share": 1 - number / ROUNDS}  # fmt: skip
        units = [Unit(f"round {number + 1}, copy {copy + 1}", spec, before) for copy in range(COPIES)]
        before = tuple(work(STAGE, tune_copy, units).values())
    tuned = with_weights(base, average(before))
    if not held_out:
        return tuned
    likely, before_it = (mean_likelihood(material, one, held_out, seed=seed) for one in (tuned, base))
    LOG.info("specialize: held-out answers have a log-likelihood of %.3f, %.3f untuned", likely, before_it)
    return tuned if likely > before_it else base


def tune_copy(unit: Unit, material: Material) -> bytes:
    """One copy's weights after its episodes."""
    from manymetrics.encode.tuning import tune

    spec = unit.spec
    encoder, settings = material.encoders[spec["encoder"]], dict(spec["settings"])
    episode = ProjectionTraining(**settings.pop("episode"))
    tasks = [_task_texts(material.bank[name]) for name in spec["tasks"]]
    moved = average(unit.inputs) if unit.inputs else None
    found = tune(encoder, tasks, TuningSettings(**settings, episode=episode), share=spec["share"],
                 rng=unit.rng(spec["seed"]), moved=moved)  # fmt: skip
    return save(found)


def average(payloads: Collection[bytes]) -> dict[str, Floats]:
    """The mean of several copies' weights."""
    copies = [load(payload) for payload in payloads]
    return {name: np.mean([copy[name] for copy in copies], axis=0, dtype=np.float32) for name in copies[0]}


def _task_texts(task: Task) -> TaskTexts:
    labels = task.labelled_train.labels
    groups = [np.flatnonzero(labels == label) for label in range(len(task.labels))]
    kept = [label for label, group in enumerate(groups) if len(group) > 1]
    names = tuple(task.label_names)
    return TaskTexts(tuple(task.train.texts), [groups[label] for label in kept], tuple(names[label] for label in kept))


def mean_likelihood(material: Material, encoder: SentenceEncoder, held_out: Collection[str], *, seed: int) -> float:
    """The mean log-likelihood of held-out tasks' answers, from prototypes, at the best temperature."""
    names = sorted(held_out)
    problems = [task_problem(material.bank[name], encoder, seed=seed, shots=SHOTS, queries=QUERIES) for name in names]
    nowhere = np.zeros((problems[0].support.shape[1],) * 2, np.float32)
    fitted = [FittedProjection(nowhere, temperature, 0) for temperature in TEMPERATURES]
    return max(float(np.mean([log_likelihood(one, problem) for problem in problems])) for one in fitted)
