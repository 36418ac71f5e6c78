"""`together`: what it costs tasks of several folders to be learned from in one bank, and the clusters of that bank.

Metrics are learned from each folder alone and from all of them together, and answer the targets of each. Where many
tasks of a folder share their labels, what is learned from these is the same in both. Intervals are 95 % bootstrap
intervals over families (sources, where a manifest names no families) and texts, answers of several seeds averaged
first. The families are looked at afterwards; a folder whose manifest names none is one family.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from experiments.banks import named_families
from experiments.families import examine, means_over_seeds
from experiments.intervals import Seeds, accuracy, balanced_accuracy, gain_in_accuracy
from experiments.markdown import points, share
from experiments.methods import adapted
from experiments.options import family_option, finish, folders_option, run_options, seeds_option
from experiments.problems import answer_problems
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table
from manymetrics.cli.progress import Stages
from manymetrics.collect import load_tasks
from manymetrics.errors import InputError
from manymetrics.learn import learn_metrics
from manymetrics.model import MetricModel
from manymetrics.values import TaskBank

Learn = Callable[[TaskBank, int], MetricModel]  # from a bank, with a seed


@click.command(short_help="Several folders learned from alone and in one bank.")
@folders_option
@family_option
@seeds_option
@run_options
def together(*, folders: tuple[Path, ...], out: Path, recipe: str, by: str, seeds: int, workers: int, quiet: bool,
             as_json: bool) -> None:  # fmt: skip
    """Learn from every folder alone and from all of them, and answer the targets of each by both models."""
    remember_run(out)
    banks = {folder: load_tasks(folder) for folder in folders}
    every = join(list(banks.values()))
    families = {name: family for folder, bank in banks.items() for name, family in families_of(folder, bank, by)}
    with Stages(quiet=quiet) as stages:

        def learn(bank: TaskBank, seed: int) -> MetricModel:
            settings = choose_recipe(recipe, seed=seed)
            return learn_metrics(bank, settings, run=out / "run", workers=workers, report=stages)

        named = {folder.resolve().name: bank for folder, bank in banks.items()}
        results = {
            "format": 1,
            "command": f"python -m experiments together {' '.join(f'--data {name}' for name in named)} "
            f"--recipe {recipe} --by {by} --seeds {seeds}",
            "data": every.split_off()[0].fingerprint,
            **learn_and_score(named, every, families, learn, seeds),
        }
    finish(results, out / "together.json", _show, quiet=quiet, as_json=as_json)


def join(banks: Sequence[TaskBank]) -> TaskBank:
    """All tasks in one bank, each for what it is for."""
    tasks = tuple(task for bank in banks for task in bank)
    if len({task.name for task in tasks}) < len(tasks):
        raise InputError("Tasks of two folders have the same name. Rename them in one.")
    return TaskBank(tasks, {task.name: bank.role(task.name) for bank in banks for task in bank})


def families_of(folder: Path, bank: TaskBank, by: str) -> list[tuple[str, str]]:
    """Every task of a folder with its family; the folder's name where its manifest names none."""
    named, own = named_families(folder, by), folder.resolve().name
    return [(name, named.get(name, own)) for name in bank.names]


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


def answer(models: Sequence[MetricModel], targets: TaskBank, names: bool) -> Seeds:
    """What each model answers."""
    return [answer_problems(adapted(model, names=names), targets) for model in models]


def cost(alone: Seeds, joined: Seeds, groups: Sequence[str]) -> dict[str, Any]:
    """Both models' scores, and how far the one of all folders is behind."""
    scores = {
        how: {"accuracy": vars(accuracy(answers, groups)), "balanced_accuracy": balanced_accuracy(answers)}
        for how, answers in (("alone", alone), ("together", joined))
    }
    return {**scores, "cost": vars(gain_in_accuracy(alone, joined, groups))}


def _show(results: Mapping[str, Any]) -> None:
    table = Table("targets of", "label names", numbers=["alone", "balanced", "together", "balanced", "cost"])
    for row in results["rows"]:
        scores = [(share(row[how]["accuracy"]), f"{100 * row[how]['balanced_accuracy']:.1f}")
                  for how in ("alone", "together")]  # fmt: skip
        table.add_row(row["bank"], row["names"], *scores[0], *scores[1], points(row["cost"]))
    table.write()
    seeds = results["seeds"]
    for words, kind, mean in means_over_seeds(seeds):
        click.echo(f"{words}, {kind}: {mean:.2f}")
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, {results['tasks']} tasks of "
               f"{seeds[0]['families']} families, clusters {[one['clusters'] for one in seeds]}")  # fmt: skip
