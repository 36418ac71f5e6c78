"""`together`: what it costs the tasks of several folders to be learned from in one bank, and how that bank is parted.

Metrics are learned from each folder alone and from all of them together, and answer the targets of each. Where many
tasks of a folder share their labels, what is learned from these is the same in both. Intervals are 95 % bootstrap
intervals over families (sources, where a manifest names no families) and texts, answers of several seeds averaged
first. The families are looked at afterwards; a folder whose manifest names none is one family.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.comparison import points, share_right
from experiments.families import examine
from experiments.methods import adapted
from experiments.options import folders_option, run_options, seeds_option
from experiments.problems import answer_problems
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, say, write_json
from manymetrics.cli.progress import Stages
from manymetrics.collect import load_tasks, read_families
from manymetrics.errors import InputError, TaskFormatError
from manymetrics.evaluation.scoring import Answered, mean_gain
from manymetrics.learn import learn_metrics
from manymetrics.model import MetricModel
from manymetrics.store import write_atomically
from manymetrics.values import TaskBank

Answers = list[list[Answered]]  # (seeds, targets)
Learn = Callable[[TaskBank, int], MetricModel]  # from a bank, with a seed


@click.command(short_help="Several folders learned from alone and in one bank.")
@folders_option
@click.option("--by", default="family", show_default=True, help="Entry of manifest.json that names the family.")
@seeds_option
@run_options
def together(*, folders: tuple[Path, ...], out: Path, recipe: str, by: str, seeds: int, workers: int | None,
             quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Learn from every folder alone and from all of them, and answer the targets of each by both models."""
    remember_run(out)
    banks = {folder.resolve().name: load_tasks(folder) for folder in folders}
    every = join(list(banks.values()))
    families = {name: known for folder in folders for name, known in families_of(folder, by).items()}
    with Stages(quiet=quiet) as stages:

        def learn(bank: TaskBank, seed: int) -> MetricModel:
            count = workers or os.cpu_count() or 1
            return learn_metrics(bank, choose_recipe(recipe, seed=seed), run=out / "run", workers=count, report=stages)

        results = {
            "format": 1,
            "command": f"python -m experiments together {' '.join(f'--data {name}' for name in banks)} "
            f"--recipe {recipe} --by {by} --seeds {seeds}",
            "data": every.split_off()[0].fingerprint,
            **learn_and_score(banks, every, families, learn, seeds),
        }
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "together.json", json.dumps(results, indent=1).encode())
    write_json(results) if as_json else _show(results)
    if not quiet:
        say(f"Everything is in {out}.")


def join(banks: Sequence[TaskBank]) -> TaskBank:
    """All tasks in one bank, each for what it is for."""
    tasks = tuple(task for bank in banks for task in bank)
    if len({task.name for task in tasks}) < len(tasks):
        raise InputError("Tasks of two folders have the same name. Rename them in one.")
    return TaskBank(tasks, {task.name: bank.role(task.name) for bank in banks for task in bank})


def families_of(folder: Path, by: str) -> dict[str, str]:
    """The family of every task of a folder; the folder's name where its manifest names none."""
    names, own = load_tasks(folder).names, folder.resolve().name
    try:
        named = read_families(folder, by=by)
    except TaskFormatError:
        named = {}
    return {name: named.get(name, own) for name in names}


def learn_and_score(banks: Mapping[str, TaskBank], every: TaskBank, families: Mapping[str, str], learn: Learn,
                    seeds: int) -> dict[str, Any]:  # fmt: skip
    """The rows of every folder, and the clusters of all tasks against the families."""
    past, new = every.split_off()
    models = [learn(past, seed) for seed in range(seeds)]
    rows = []
    for name, bank in banks.items():
        own, targets = bank.split_off()
        alone = [learn(own, seed) for seed in range(seeds)]
        groups = grouped(targets, families)
        for names in (False, True) if own.shared_labels is None else (False,):
            rows.append({"bank": name, "tasks": len(own), "targets": len(targets), "names": "on" if names else "off",
                         **cost(answer(alone, targets, names), answer(models, targets, names), groups)})  # fmt: skip
    found = [examine(model, past, new, families) for model in models]
    return {"rows": rows, "tasks": len(past), "seeds": found}


def grouped(targets: TaskBank, families: Mapping[str, str]) -> list[str]:
    """What each target is resampled with: its family, or its source where all are of one family."""
    known = [families[name] for name in targets.names]
    return known if len(set(known)) > 1 else [task.source for task in targets]


def answer(models: Sequence[MetricModel], targets: TaskBank, names: bool) -> Answers:
    """What each model answers."""
    return [answer_problems(adapted(model, names=names), targets) for model in models]


def cost(alone: Answers, joined: Answers, groups: Sequence[str]) -> dict[str, Any]:
    """Both models' scores, and how far the one of all folders is behind."""
    found: dict[str, Any] = {}
    for how, answers in (("alone", alone), ("together", joined)):
        found[how] = {
            "accuracy": asdict(mean_gain(share_right(answers), sources=groups)),
            "balanced_accuracy": float(np.mean([one.balanced_accuracy for seed in answers for one in seed])),
        }
    lost = [one - other for one, other in zip(share_right(alone), share_right(joined), strict=True)]
    return {**found, "cost": asdict(mean_gain(lost, sources=groups))}


def _show(results: Mapping[str, Any]) -> None:
    table = Table("targets of", "label names", numbers=["alone", "balanced", "together", "balanced", "cost"])
    for row in results["rows"]:
        scores = [(points(row[how]["accuracy"], plus=False), f"{100 * row[how]['balanced_accuracy']:.1f}")
                  for how in ("alone", "together")]  # fmt: skip
        table.add_row(row["bank"], row["names"], *scores[0], *scores[1], points(row["cost"]))
    table.write()
    seeds = results["seeds"]
    for part, said in (
        ("auc", "pairs told apart, AUC"),
        ("rand", "clusters, adjusted Rand"),
        ("routed", "routed right"),
    ):
        told = ", ".join(f"{kind} {np.mean([one[part][kind] for one in seeds]):.2f}" for kind in seeds[0][part])
        click.echo(f"{said}: {told}")
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, {results['tasks']} tasks of "
               f"{seeds[0]['families']} families, clusters {[one['clusters'] for one in seeds]}")  # fmt: skip
