"""`page`: store results of experiments, and write docs/results.md and its figures from all that are stored."""

import json
from pathlib import Path
from typing import Any

import click

from experiments.comparison import RESULTS as COMPARISON
from experiments.figures import page_figures
from experiments.held_out import RESULTS as HELD_OUT
from experiments.options import PATH
from experiments.page import keep_parts, write_page
from experiments.plan import EXPERIMENTS
from experiments.reproduction import RESULTS
from experiments.several_rows import RESULTS as SEVERAL
from manymetrics.errors import InputError
from manymetrics.store import write_atomically

STORED = Path(__file__).parent / "kept"
STORED_KINDS = ("held-out-", "several-", "compare-", "repeated-")  # how the names of files begin
PAGE = Path(__file__).parents[1] / "docs" / "results.md"


@click.command("page", short_help="Store results, and write docs/results.md.")
@click.option("--amazon", type=PATH, help="Folder that `reproduce amazon` wrote.")
@click.option("--intent", type=PATH, help="Folder that `reproduce intent` wrote.")
@click.option("--held-out", type=PATH, multiple=True, help="Folder that `held-out` wrote.")
@click.option("--several", type=PATH, multiple=True, help="Folder that `several` wrote.")
@click.option("--compared", type=PATH, multiple=True, help="Folder that `compare` wrote.")
@click.option("--repeated", type=PATH, multiple=True, help="File of `data repeated --json`.")
@click.option("-o", "--out", type=PATH, default=PAGE, help="File to write.")
def page(*, amazon: Path | None, intent: Path | None, held_out: tuple[Path, ...], several: tuple[Path, ...],
         compared: tuple[Path, ...], repeated: tuple[Path, ...], out: Path) -> None:  # fmt: skip
    """Store the results of experiments in experiments/kept, and write the page and the figures of all that are stored.

    Of an experiment that is not given, the stored results stay; beside a table alone, the stored figure and ablations.
    Figures go to the folder images beside the page.
    """
    found: dict[str, dict[str, Any]] = {}  # all is read before anything is stored
    for name, folder in zip(EXPERIMENTS, (amazon, intent), strict=True):
        if folder is not None:
            stored = STORED / f"{name}.json"
            before = [_read(stored, "page")] if stored.is_file() else []
            found[name] = keep_parts(_read(folder / RESULTS, f"reproduce {name}", "by_clusters"), *before)
    for path in (folder / HELD_OUT for folder in held_out):
        found |= _of_recipe("held-out", path)
    for path in (folder / COMPARISON for folder in compared):
        found |= _of_recipe("compare", path)
    for folder in several:
        for path in sorted(folder.glob(SEVERAL.format("*"))) or [folder / SEVERAL.format("*")]:
            found[path.stem] = _read(path, "several")
    for path in repeated:
        one = _read(path, "data repeated --json", "bank", "held_out")
        found[f"repeated-{Path(str(one['bank'])).name}"] = one
    for name, one in found.items():
        write_atomically(STORED / f"{name}.json", json.dumps(one, indent=1, ensure_ascii=False).encode())
    results, *others = read_stored(STORED)
    for name, one in results.items():
        for place, figure in page_figures(name, one).items():
            write_atomically(out.parent / place, figure)
    write_atomically(out, write_page(results, *others).encode())
    click.echo(str(out))


def _of_recipe(command: str, path: Path) -> dict[str, dict[str, Any]]:
    """Results by the name they are stored under: the command, bank and recipe, which may be a file."""
    one = _read(path, command, "bank", "recipe_name")
    return {f"{command}-{Path(str(one['bank'])).name}-{Path(str(one['recipe_name'])).stem}": one}


def read_stored(folder: Path) -> tuple[dict[str, Any], list[Any], list[Any], list[Any], list[Any]]:
    """Stored results: of each experiment by name, of held-out sources, of `several`, of `compare`, repeated texts."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    held_out, several, compared, repeated = (
        [results for name, results in found.items() if name.startswith(kind)] for kind in STORED_KINDS
    )
    return {name: found[name] for name in EXPERIMENTS if name in found}, held_out, several, compared, repeated


def _read(path: Path, command: str, *needed: str) -> dict[str, Any]:
    """The results that a command wrote, with the rows and whatever else they need to be shown."""
    if not path.is_file():
        raise InputError(f"There are no results in {path.parent}. Give the folder that `{command}` wrote.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{path} is damaged: {problem}. Give `{command}` again, which writes it anew.") from problem
    missing = [name for name in ("rows", *needed) if not isinstance(found, dict) or name not in found]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}. Give `{command}` again, which writes it anew.")
    return dict(found)
