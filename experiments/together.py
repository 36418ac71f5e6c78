"""`together`: what it costs tasks of several folders to be learned from in one bank, and the clusters of that bank.

Metrics are learned from each folder alone and from all of them together, and answer the targets of each. Where many
tasks of a folder share their labels, what is learned from these is the same in both. Intervals are 95 % bootstrap
intervals over families (sources, where a manifest names no families) and texts, answers of several seeds averaged
first. The families are looked at afterwards; a folder whose manifest names none is one family.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.banks import named_families
from experiments.families import examine, means_over_seeds
from experiments.intervals import Seeds, gain_in_accuracy, scores
from experiments.markdown import percent, points, share
from experiments.methods import adapted
from experiments.options import Results, experiment, family_option, folders_option, recipe_option, seeds_option
from experiments.problems import answer_problems
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.collect import load_tasks
from manymetrics.errors import InputError
from manymetrics.learn import learn_metrics
from manymetrics.model import MetricModel
from manymetrics.values import TaskBank

Learn = Callable[[TaskBank, int], MetricModel]  # from a bank, with a seed


def show(results: Results) -> Iterator[str | Table]:
    """A row for each folder, then the clusters of all."""
    table = Table("targets of", "label names", numbers=["alone", "balanced", "together", "balanced", "cost"])
    for row in results["rows"]:
        cells = [cell for how in ("alone", "together")
                 for cell in (share(row[how]["accuracy"]), percent(row[how]["balanced_accuracy"]))]  # fmt: skip
        table.add_row(row["bank"], row["names"], *cells, points(row["cost"]))
    yield table
    yield from (f"{words}, {kind}: {mean:.2f}" for words, kind, mean in means_over_seeds(results["seeds"]))
    yield (f"{results['tasks']} tasks of {results['seeds'][0]['families']} families, clusters "
           f"{[one['clusters'] for one in results['seeds']]}")  # fmt: skip


@experiment("together", folders_option, recipe_option, family_option, seeds_option, file="together.json", show=show,
            short_help="Several folders learned from alone and in one bank.")  # fmt: skip
def together(*, folders: tuple[Path, ...], out: Path, recipe: str, by: str, seeds: int, **how: Any) -> Results:
    """Learn from every folder alone and from all of them, and answer the targets of each by both models."""
    banks = {folder: load_tasks(folder) for folder in folders}
    every = join(list(banks.values()))
    families = {name: family for folder, bank in banks.items() for name, family in families_of(folder, bank, by)}

    def learn(bank: TaskBank, seed: int) -> MetricModel:
        return learn_metrics(bank, choose_recipe(recipe, seed=seed), run=out / "run", **how)

    named = {folder.resolve().name: bank for folder, bank in banks.items()}
    return {"data": every.split_off()[0].fingerprint, **learn_and_score(named, every, families, learn, seeds)}


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
    gain = vars(gain_in_accuracy(alone, joined, groups))
    return {"alone": scores(alone, groups), "together": scores(joined, groups), "cost": gain}
