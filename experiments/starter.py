"""`starter`: the model that comes with the package, learned from the tasks whose licences allow it.

Targets are never learned from. The model is saved without the weights of its sentence encoder, with a card that names
every source and its licence. The same data, seed and versions give the same bytes.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.markdown import table
from experiments.options import Results, experiment, folders_option
from manymetrics.collect import load_tasks
from manymetrics.collect.bank.folder import MANIFEST, read_manifest
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
    about = {name: entry for folder in folders for name, entry in read_manifest(folder / MANIFEST).items()}
    if unnamed := [name for name, entry in about.items() if not {"source", "licence"} <= set(entry)]:
        raise InputError(f"No {MANIFEST} names source and licence of {unnamed[0]}. Add them.")
    banks = [load_tasks(folder) for folder in folders]
    roles = {task.name: bank.role(task.name) for bank in banks for task in bank}
    bank = TaskBank(tuple(task for bank in banks for task in bank), roles)
    names = [name for name in bank.names if bank.role(name) != TARGET and is_permissive(about[name]["licence"])]
    if not names:
        raise InputError("No task of these folders has a licence that allows to ship what is learned from it.")
    recipe = Recipe.tuned(clusters=CLUSTERS)
    model = learn_metrics(bank.only(names), recipe, run=out / "run", **how)
    model.save(out / "model", encoder_by_name=True, notes=describe_sources({name: about[name] for name in names}))
    return {
        "tasks": len(names),
        "data": model.origin.bank_fingerprint,
        "fingerprint": model.fingerprint,
        "clusters": [len(group) for group in model.clusters],
        "metrics": [metric.name for metric in model.metrics],
    }


def is_permissive(licence: str) -> bool:
    """Whether a model that was learned from such a task may be shipped."""
    return any(pattern.fullmatch(licence) for pattern in LICENCES)


def describe_sources(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The paragraph of the model card on the tasks' sources and licences."""
    rows = [[name, entry["source"], entry["licence"]] for name, entry in entries.items()]
    return (
        "## Sources\n\nThe tasks are cut from these public repositories. The model holds none of their texts.\n\n"
        + table(["task", "source", "licence"], [], rows)
    )
