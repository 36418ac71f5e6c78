"""`families`: how far the clusters of a bank, and the routes of its targets, agree with families that a manifest names.

The families are looked at afterwards; nothing is learned or chosen by them.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from manymetrics.cli.group import remember_run
from manymetrics.cli.learning import choose_recipe
from manymetrics.cli.output import json_option, make_table, say, write_json, write_table
from manymetrics.cli.progress import Stages
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder
from manymetrics.errors import InputError
from manymetrics.learn import SENTENCE, WORDS, learn_metrics
from manymetrics.measure import join_evidence
from manymetrics.measure.evidence import average_directions, similar_names, similar_texts, standardise
from manymetrics.model import MetricModel
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, keep_reliable_pairs
from manymetrics.store import write_atomically
from manymetrics.values import Bools, Floats, ObservedPairs, Similarity, TaskBank, TransferMatrix

PUBLISHED = 0.5  # p1 and p2 of the paper
HALF = 0.5  # above it a completed similarity says alike


@click.command(short_help="Clusters and routes against the families of a manifest.")
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of tasks, its targets marked.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results and finished work.")
@click.option("--recipe", default="default", show_default=True, help="default, fast, or a TOML file of knobs.")
@click.option("--by", default="family", show_default=True, help="Entry of manifest.json that names the family.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="How many seeds.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to learn in.  [default: one for each core]")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@json_option
def families(*, data: Path, out: Path, recipe: str, by: str, seeds: int, workers: int | None, quiet: bool,
             as_json: bool) -> None:  # fmt: skip
    """Learn from the tasks of --data, and compare what was found with the families of its manifest."""
    remember_run(out)
    past, new = load_tasks(data).split_off()
    known = read_families(data, by)
    found = []
    with Stages(quiet=quiet) as stages:
        for seed in range(seeds):
            knobs, count = choose_recipe(recipe, seed=seed), workers or os.cpu_count() or 1
            model = learn_metrics(past, knobs, run=out / "run", workers=count, report=stages)
            found.append(examine(model, past, new, known))
    results = {
        "format": 1,
        "command": f"python -m experiments families --data {data.name} --recipe {recipe} --by {by} --seeds {seeds}",
        "data": past.fingerprint,
        "seeds": found,
    }
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "families.json", json.dumps(results, indent=1).encode())
    write_json(results) if as_json else _show(results)
    if not quiet:
        say(f"Everything is in {out}.")


def read_families(data: Path, by: str) -> dict[str, str]:
    """The family of every task."""
    entries = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    missing = [entry["name"] for entry in entries if by not in entry]
    if missing:
        raise InputError(f"{data / 'manifest.json'} names no {by} of {missing[0]!r}. Name one for every task.")
    return {entry["name"]: str(entry[by]) for entry in entries}


def examine(model: MetricModel, past: TaskBank, new: TaskBank, known: Mapping[str, str]) -> dict[str, Any]:
    """Evidence, pairs, clusters and routes of one model, against the families."""
    names, transfer = model.clusters.names, model.transfer
    own = [known[name] for name in names]
    together = np.equal.outer(np.array(own), np.array(own))
    bank = past.only(names)
    base = next(metric.encoder for metric in model.metrics if metric.name in (SENTENCE, WORDS))
    alone = TransferMatrix(names, average_directions(standardise(transfer.scores)), transfer.score)
    chosen = choose_p1(transfer)
    by_transfer = keep_reliable_pairs(alone, p1=chosen, p2=model.recipe.p2)
    published = keep_reliable_pairs(transfer, p1=PUBLISHED, p2=PUBLISHED)
    completed = complete_similarity(by_transfer)
    return {
        "families": len(set(own)),
        "p1": chosen,
        "auc": {kind: told_apart(one, together) for kind, one in evidence(transfer, bank, base).items()},
        "wrong": {
            "transfer, as published": wrong_pairs(published, complete_similarity(published), together),
            "transfer": wrong_pairs(by_transfer, completed, together),
            "all evidence": wrong_pairs(model.origin.pairs, model.similarity, together),
        },
        "rand": {
            "transfer": rand(completed, own, None),
            "transfer, families counted": rand(completed, own, len(set(own))),
            "all evidence": float(adjusted_rand_score(own, model.clusters.labels)),
            "all evidence, families counted": rand(model.similarity, own, len(set(own))),
        },
        "clusters": [len(group) for group in model.clusters],
        "routed": routed(model, new, known),
    }


def evidence(transfer: TransferMatrix, bank: TaskBank, base: Encoder) -> dict[str, Floats]:
    """Every kind of evidence, directions averaged."""
    kinds = {"transfer": transfer.scores, "names": similar_names(bank, base), "texts": similar_texts(bank, base)}
    found = {kind: average_directions(standardise(scores)) for kind, scores in kinds.items()}
    return {**found, "all": join_evidence(transfer, bank, base).scores}


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
        "filtered": _wrong(together[pairs.alike & off]),
        "completed": _wrong(together[filled]),
        "found": float((filled & together).sum() / (together & off).sum()),
    }


def _wrong(right: Bools) -> float | None:
    return float(1 - right.mean()) if len(right) else None


def rand(similarity: Similarity, own: Sequence[str], clusters: int | None) -> float:
    """The adjusted Rand index of the clusters of a similarity."""
    return float(adjusted_rand_score(own, cluster_tasks(similarity, clusters=clusters, most=30).labels))


def routed(model: MetricModel, new: TaskBank, known: Mapping[str, str]) -> dict[str, float]:
    """The share of targets taken for tasks of their own family, most of them: with label names and without."""
    found = {}
    for told in (True, False):
        right = []
        for task in new:
            route = model.adapt(task.train.texts, task.train.labels, label_names=told).route_
            kinds = Counter(known[name] for name in route.alike) if route else Counter()
            right.append(bool(kinds) and kinds.most_common(1)[0][0] == known[task.name])
        found["names and texts" if told else "texts"] = float(np.mean(right))
    return found


def _show(results: Mapping[str, Any]) -> None:
    seeds = results["seeds"]
    table = make_table("against the families", "by", numbers=["mean over seeds"])
    for part, said in (
        ("auc", "pairs told apart, AUC"),
        ("rand", "clusters, adjusted Rand"),
        ("routed", "routed right"),
    ):
        for kind in seeds[0][part]:
            table.add_row(said, kind, f"{np.mean([one[part][kind] for one in seeds]):.2f}")
    for kind, shares in seeds[0]["wrong"].items():
        for step in shares:
            said = "families' pairs found by completion" if step == "found" else f"wrong among alike pairs, {step}"
            known = [one["wrong"][kind][step] for one in seeds if one["wrong"][kind][step] is not None]
            table.add_row(said, kind, f"{np.mean(known):.2f}" if known else "no pair")
    write_table(table)
    told = "; ".join(f"p1 {one['p1']:g}, {len(one['clusters'])} clusters of {one['clusters']}" for one in seeds)
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, {seeds[0]['families']} families; {told}")
