"""A frozen encoder -> metrics: one projection that all tasks share, and each cluster's own step away from it.

Paper: section 3.2.1, with projections for networks. Training stops on the held-out tasks: of all for the shared
projection, of its own cluster for a cluster's. A cluster's step that does not make its held-out tasks likelier than the
shared projection does is not kept; where a cluster has no held-out task, its step is. For the clusters without a step
of their own the shared projection stands among the clusters' metrics.
"""

from collections.abc import Collection
from dataclasses import asdict

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.projection import ProjectionEncoder, fit_projection
from manymetrics.encode.settings import PROTOTYPICAL, ProjectionTraining
from manymetrics.measure.projections import open_projection, pack_projection, task_problem, task_rows
from manymetrics.specialize.metric import LEARNED, TUNED, Metric, SimilarityMetric
from manymetrics.values import Clusters, Material, Unit, Work

STAGE = "specialize-projections"
SHARED, OTHERS = "projection", "other-clusters"  # the names of the shared metric, alone and among the clusters'
STOP_SHOTS = 3  # examples of each label in the problems that training stops on


def train_shared_projection(material: Material, work: Work, *, base: Encoder, training: ProjectionTraining,
                            held_out: Collection[str], seed: int) -> bytes:  # fmt: skip
    """The projection of all tasks that are not held out."""
    spec = {"seed": seed, "encoder": base.fingerprint, "training": asdict(training)}
    unit = Unit(SHARED, {**spec, **_parted(material, material.bank.names, held_out)})
    return work(STAGE, train_projection, [unit])[SHARED]


def train_cluster_projections(material: Material, clusters: Clusters, work: Work, *, base: Encoder, shared: bytes,
                              training: ProjectionTraining, held_out: Collection[str],
                              seed: int) -> list[Metric]:  # fmt: skip
    """The metrics of the clusters whose own step pays, and the shared one."""
    spec = {"seed": seed, "encoder": base.fingerprint, "training": asdict(training)}
    units = [
        Unit(f"cluster-{number}", {**spec, **_parted(material, group, held_out)}, (shared,))
        for number, group in enumerate(clusters)
        if len(clusters) > 1
    ]
    payloads = work(STAGE, train_projection, units) if units else {}
    learned_from = tuple(name for name in sorted(material.bank.names) if name not in held_out)
    one_for_all = open_projection(shared)
    encoder = ProjectionEncoder(base, one_for_all.matrix)
    metrics: list[Metric] = [
        SimilarityMetric(SHARED, TUNED, encoder, PROTOTYPICAL, one_for_all.temperature, learned_from)
    ]
    left: list[str] = []
    for number, unit in enumerate(units):
        if unit.name not in payloads or not (found := open_projection(payloads[unit.name])).steps:
            left += unit.spec["tasks"]
            continue
        encoder, tasks = ProjectionEncoder(base, found.matrix), tuple(unit.spec["tasks"])
        metrics.append(SimilarityMetric(unit.name, LEARNED, encoder, PROTOTYPICAL, found.temperature, tasks, number))
    if left and len(metrics) > 1:
        metrics.append(
            SimilarityMetric(OTHERS, LEARNED, metrics[0].encoder, PROTOTYPICAL, one_for_all.temperature, tuple(left))
        )
    return metrics


def _parted(material: Material, group: Collection[str], held_out: Collection[str]) -> dict[str, dict[str, str]]:
    """The tasks to train on and those to stop on, with their fingerprints."""
    prints = {task: material.bank[task].fingerprint for task in sorted(group)}
    return {
        "tasks": {task: one for task, one in prints.items() if task not in held_out},
        "held_out": {task: one for task, one in prints.items() if task in held_out},
    }


def train_projection(unit: Unit, material: Material) -> bytes:
    """Train on the unit's tasks, from the shared projection where there is one."""
    base, bank = material.encoders[unit.spec["encoder"]], material.bank
    seed, training = unit.spec["seed"], ProjectionTraining(**unit.spec["training"])
    tasks = [task_rows(bank[name], base) for name in unit.spec["tasks"]]
    problems = [task_problem(bank[name], base, seed=seed, shots=STOP_SHOTS) for name in unit.spec["held_out"]]
    start = open_projection(unit.inputs[0]) if unit.inputs else None
    return pack_projection(fit_projection(tasks, problems, training, rng=unit.rng(seed), start=start))
