"""`starter`: the model that comes with the package, learned from the tasks whose licences allow it.

Targets are never learned from. The model is saved without the weights of its sentence encoder, with a card that names
every source and its licence. The same data, seed and versions give the same bytes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.markdown import table
from experiments.options import Results, experiment, folders_option
from manymetrics.collect import load_tasks
from manymetrics.errors import InputError
from manymetrics.learn import learn_metrics
from manymetrics.recipe import Recipe
from manymetrics.values import TARGET, TaskBank

CLUSTERS = 8  # each has an encoder of 1 MB at most
PERMISSIVE = r"(MIT|Apache-2\.0|CC0 1\.0|CC BY [34]\.0)"
LICENCES = (  # of a manifest: of the repository, or of data in a repository without one
    re.compile(rf"{PERMISSIVE}( \(LICENSE[^()]*\))?"),
    re.compile(rf"no licence in repo; [^;()]* \({PERMISSIVE}\)"),
)


@experiment("starter", folders_option, file="starter.json", show=lambda results: [json.dumps(results)],
            short_help="Learn the model that comes with the package.")  # fmt: skip
def starter(*, folders: tuple[Path, ...], out: Path, **how: Any) -> Results:
    """Learn from the tasks of --data whose licence is MIT, Apache-2.0, CC0 or CC BY, and save the model in OUT/model.

    All that is finished is kept in --out: the same command resumes.
    """
    about = {entry["name"]: entry for folder in folders for entry in read_manifest(folder)}
    bank = join([load_tasks(folder) for folder in folders])
    names = [name for name in bank.names if bank.role(name) != TARGET and is_permissive(about[name]["licence"])]
    if not names:
        raise InputError("No task of these folders has a licence that allows to ship what is learned from it.")
    recipe = Recipe.tuned(clusters=CLUSTERS)
    model = learn_metrics(bank.only(names), recipe, run=out / "run", **how)
    model.save(out / "model", encoder_by_name=True, notes=describe_sources([about[name] for name in names]))
    return {
        "tasks": len(names),
        "data": model.origin.bank_fingerprint,
        "fingerprint": model.fingerprint,
        "clusters": [len(group) for group in model.clusters],
        "metrics": [metric.name for metric in model.metrics],
    }


def join(banks: Sequence[TaskBank]) -> TaskBank:
    """All tasks in one bank, with their roles."""
    tasks = tuple(task for bank in banks for task in bank)
    if len({task.name for task in tasks}) < len(tasks):
        raise InputError("Tasks of two folders have the same name. Rename them in one.")
    return TaskBank(tasks, {task.name: bank.role(task.name) for bank in banks for task in bank})


def read_manifest(folder: Path) -> list[dict[str, Any]]:
    """The entries of a manifest that names source and licence of every task."""
    path = folder / "manifest.json"
    try:
        entries = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path} cannot be read: {problem}. It has to name source and licence of every task."
        ) from None
    if not all({"name", "source", "licence"} <= set(entry) for entry in entries):
        raise InputError(f"{path} does not name source and licence of every task. Add them.")
    return list(entries)


def is_permissive(licence: str) -> bool:
    """Whether a model that was learned from such a task may be shipped."""
    return any(pattern.fullmatch(licence) for pattern in LICENCES)


def describe_sources(entries: Sequence[Mapping[str, Any]]) -> str:
    """The paragraph of the model card on the tasks' sources and licences."""
    rows = [[entry["name"], entry["source"], entry["licence"]] for entry in entries]
    return (
        "## Sources\n\nThe tasks are cut from these public repositories. The model holds none of their texts.\n\n"
        + table(["task", "source", "licence"], [], rows)
    )
