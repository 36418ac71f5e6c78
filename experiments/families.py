"""`families`: how far the clusters of a bank, and the routes of its targets, agree with families that a manifest names.

The families are looked at afterwards; nothing is learned or chosen by them. The table shows, step by step, how many
of the pairs of tasks that are called alike are of two families: of all pairs, of those that one direction calls alike,
of those that both do, which the filter keeps, and of those that are alike after the completion. As published, p1 and p2
are 0.5 and transfer counts as it was measured; as chosen, the two directions of a pair are averaged first.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import zscore
from sklearn.metrics import roc_auc_score

from experiments.banks import named_families
from experiments.clusterings import agreement, transfer_alone
from experiments.options import Results, data_option, experiment, family_option, recipe_option, seeds_option
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.collect import load_tasks
from manymetrics.collect.bank.folder import MANIFEST
from manymetrics.encode.encoder import Encoder
from manymetrics.errors import TaskFormatError
from manymetrics.learn import SENTENCE, WORDS, learn_metrics
from manymetrics.measure import combine_evidence
from manymetrics.measure.evidence import average_directions, similar_names, similar_texts, standardise
from manymetrics.model import MetricModel
from manymetrics.partition import choose_p1, complete_similarity, filter_pairs
from manymetrics.values import Bools, Floats, ObservedPairs, SharedData, Similarity, TaskBank, TransferMatrix

PUBLISHED = 0.5  # p1 and p2 of the paper
HALF = 0.5  # above it a completed similarity says alike
PARTS = {"auc": "pairs told apart, AUC", "rand": "clusters, adjusted Rand", "routed": "routed right"}
STEPS = {  # of the pairs that are called alike
    "before": "all pairs", "one direction": "before the filter", "filtered": "after the filter",
    "completed": "after completion",
}  # fmt: skip


def show(results: Results) -> Iterator[str | Table]:
    """What was examined, as means over seeds."""
    seeds = results["seeds"]
    table = Table("against the families", "by", numbers=["mean over seeds"])
    for part, words in PARTS.items():
        for kind in seeds[0][part]:
            table.add_row(words, kind, f"{np.mean([one[part][kind] for one in seeds]):.2f}")
    for kind, shares in seeds[0]["wrong"].items():
        for step in shares:
            words = "families' pairs found by completion" if step == "found" else f"wrong among alike, {STEPS[step]}"
            known = [one["wrong"][kind][step] for one in seeds if one["wrong"][kind][step] is not None]
            table.add_row(words, kind, f"{np.mean(known):.2f}" if known else "no pair")
    yield table
    yield f"{seeds[0]['families']} families"
    for one in seeds:
        p1 = one["p1"]
        yield f"p1 {p1['all evidence']:g} ({p1['transfer']:g} by transfer alone), clusters of {one['clusters']}"


@experiment("families", data_option, recipe_option, family_option, seeds_option, file="families.json", show=show,
            short_help="Clusters and routes against the families of a manifest.")  # fmt: skip
def families(*, data: Path, out: Path, recipe: str, by: str, seeds: int, **how: Any) -> Results:
    """Learn from the tasks of --data, and compare what was found with the families of its manifest."""
    past, new = load_tasks(data).split_off()
    known = families_of(data, (*past.names, *new.names), by)
    found = []
    for seed in range(seeds):
        settings = choose_recipe(recipe, seed=seed)
        model = learn_metrics(past, settings, run=out / "run", **how)
        found.append(examine(model, past, new, known))
    return {"data": past.fingerprint, "seeds": found}


def families_of(data: Path, names: Sequence[str], by: str) -> dict[str, str]:
    """The family of every task; one for which the manifest names none is a family of its own."""
    named = named_families(data, by)
    if not named:
        raise TaskFormatError(f'{data / MANIFEST}: names the {by} of no task. Give entries a "{by}".')
    return {name: named.get(name, name) for name in names}


def examine(model: MetricModel, past: TaskBank, new: TaskBank, known: Mapping[str, str]) -> dict[str, Any]:
    """Evidence, pairs, clusters and routes of one model, against the families."""
    names, transfer = model.clusters.names, model.transfer
    own = [known[name] for name in names]
    together = np.equal.outer(np.array(own), np.array(own))
    bank = past.only(names)
    base = next(metric.encoder for metric in model.metrics if metric.name in (SENTENCE, WORDS))
    every, p2 = combine_evidence(transfer, bank, base), model.recipe.p2
    chosen = {"transfer": choose_p1(transfer), "all evidence": choose_p1(*every.parts)}
    chosen = {way: p1 if model.recipe.p1 is None else model.recipe.p1 for way, p1 in chosen.items()}
    ways = {
        "transfer, as published": (transfer, PUBLISHED, PUBLISHED),
        "transfer": (transfer_alone(transfer), chosen["transfer"], p2),
        "all evidence, as published": (every.joined, PUBLISHED, PUBLISHED),
    }
    pairs = {way: filter_pairs(scores, p1=p1, p2=p2) for way, (scores, p1, p2) in ways.items()}
    found = {way: complete_similarity(kept) for way, kept in pairs.items()}
    ways["all evidence"] = (every.joined, chosen["all evidence"], p2)
    pairs["all evidence"], found["all evidence"] = model.origin.pairs, model.similarity
    return {
        "families": len(set(own)),
        "p1": chosen,
        "p2": p2,
        "auc": {kind: told_apart(one, together) for kind, one in evidence(transfer, bank, base).items()},
        "wrong": {
            way: {
                "one direction": wrong_in_one_direction(scores, p1, together),
                **wrong_pairs(pairs[way], found[way], together),
            }
            for way, (scores, p1, _) in ways.items()
        },
        "rand": agreement(transfer, SharedData(bank, base), model.recipe, dict(zip(names, own, strict=True))),
        "clusters": [len(group) for group in model.clusters],
        "routed": routed(model, new, known),
    }


def evidence(transfer: TransferMatrix, bank: TaskBank, base: Encoder) -> dict[str, Floats]:
    """Every kind of evidence, directions averaged."""
    kinds = {"transfer": transfer.scores, "names": similar_names(bank, base), "texts": similar_texts(bank, base)}
    found = {kind: average_directions(standardise(scores)) for kind, scores in kinds.items()}
    return {**found, "all": combine_evidence(transfer, bank, base).joined.scores}


def told_apart(scores: Floats, together: Bools) -> float:
    """How often a pair of one family has a higher score than one of two: the area under the ROC curve."""
    measured = np.isfinite(scores) & ~np.eye(len(scores), dtype=bool)
    return float(roc_auc_score(together[measured], scores[measured]))


def wrong_pairs(pairs: ObservedPairs, completed: Similarity, together: Bools) -> dict[str, float | None]:
    """Of the pairs called alike, the share that is of two families: all pairs, those kept, those after completion."""
    off = ~np.eye(len(together), dtype=bool)
    filled = (completed.low_rank > HALF) & off
    return {
        "before": _wrong(together[off]),
        "filtered": _wrong(together[pairs.similar & off]),
        "completed": _wrong(together[filled]),
        "found": float((filled & together).sum() / (together & off).sum()),
    }


def wrong_in_one_direction(scores: TransferMatrix, p1: float, together: Bools) -> float | None:
    """The same of the pairs whose score in one direction is high, whatever the other says: before the filter."""
    others = np.where(np.eye(len(together), dtype=bool), np.nan, scores.scores)  # (n, n)
    with warnings.catch_warnings(action="ignore"):  # columns without scores, or with equal ones
        return _wrong(together[zscore(others, axis=0, nan_policy="omit") > p1])


def _wrong(right: Bools) -> float | None:
    return float(1 - right.mean()) if len(right) else None


def routed(model: MetricModel, new: TaskBank, known: Mapping[str, str]) -> dict[str, float]:
    """The share of targets taken for tasks of their own family, most of them: with label names and without.

    A target whose family no task of the bank is of cannot be, and does not count; nor does one that is answered by
    what tasks with the same labels gave, which takes no route.
    """
    found, there = {}, {known[name] for name in model.clusters.names}
    for told in (True, False):
        right = []
        for task in (task for task in new if known[task.name] in there):
            assignment = model.adapt(task.train.texts, task.train.labels, label_names=told).assignment_
            if assignment is not None:
                kinds = Counter(known[name] for name in assignment.similar_tasks)
                right.append(bool(kinds) and kinds.most_common(1)[0][0] == known[task.name])
        found["names and texts" if told else "texts"] = float(np.mean(right)) if right else 0.0
    return found
