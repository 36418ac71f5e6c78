"""`page`: store results of experiments, and write docs/results.md and its figures from all that are stored.

Every number of the page is computed, none is typed. The text is in templates/; page_values.py and
at_a_glance.py compute what the templates show, figures.py draws the figures.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments import clusterings, markdown, page_values, published
from experiments import repeated as repeated_texts
from experiments import several as several_metrics
from experiments.at_a_glance import glance_table, verdicts
from experiments.figures import page_figures
from experiments.options import PATH
from experiments.plan import EXPERIMENTS
from manymetrics.errors import InputError
from manymetrics.store import write_atomically

STORED = Path(__file__).parent / "kept"
STORED_KINDS = ("held-out-", "several-", "compare-", "repeated-")  # how the names of files begin
PAGE = Path(__file__).parents[1] / "docs" / "results.md"

Results = Mapping[str, Any]


@click.command("page", short_help="Store results, and write docs/results.md.")
@click.option("--amazon", type=PATH, help="Folder that `reproduce amazon` wrote.")
@click.option("--intent", type=PATH, help="Folder that `reproduce intent` wrote.")
@click.option("--held-out", type=PATH, multiple=True, help="Folder that `held-out` wrote.")
@click.option("--several", type=PATH, multiple=True, help="Folder that `several` wrote.")
@click.option("--compared", type=PATH, multiple=True, help="Folder that `compare` wrote.")
@click.option("--repeated", type=PATH, multiple=True, help="File of `data repeated --json`.")
@click.option("-o", "--out", type=PATH, default=PAGE, help="File to write.")
def page(*, held_out: Sequence[Path], several: Sequence[Path], compared: Sequence[Path], repeated: Sequence[Path],
         out: Path, **reproduced: Path | None) -> None:  # fmt: skip
    """Store the results of experiments in experiments/kept, and write the page and the figures of all that are stored.

    Of an experiment that is not given, the stored results stay. Figures go to the folder images beside the page.
    """
    given: dict[str, dict[str, Any]] = {}  # all is read before anything is stored
    for name, folder in reproduced.items():
        if folder is not None:
            given[name] = read(folder / "results.json", f"reproduce {name}", "by_clusters")
    for command, paths in (
        ("held-out", [folder / "held-out.json" for folder in held_out]),
        ("compare", [folder / "comparison.json" for folder in compared]),
    ):
        for path in paths:
            results = read(path, command, "bank", "recipe_name")
            given[f"{command}-{Path(results['bank']).name}-{Path(results['recipe_name']).stem}"] = results
    for folder in several:
        for path in sorted(folder.glob("several-*.json")) or [folder / "several-*.json"]:
            given[path.stem] = read(path, "several")
    for path in repeated:
        results = read(path, "data repeated --json", "bank", "held_out")
        given[f"repeated-{Path(results['bank']).name}"] = results
    for name, results in given.items():
        write_atomically(STORED / f"{name}.json", json.dumps(results, indent=1, ensure_ascii=False).encode())
    experiments, *others = read_stored(STORED)
    for name, results in experiments.items():
        for place, figure in page_figures(name, results).items():
            write_atomically(out.parent / place, figure)
    write_atomically(out, write_page(experiments, *others).encode())
    click.echo(str(out))


def read(path: Path, command: str, *needed: str) -> dict[str, Any]:
    """The results that a command wrote, with the rows and whatever else they need to be shown."""
    if not path.is_file():
        raise InputError(f"There are no results in {path.parent}. Give the folder that `{command}` wrote.")
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{path} is damaged: {problem}. Give `{command}` again, which writes it anew.") from problem
    missing = [name for name in ("rows", *needed) if not isinstance(results, dict) or name not in results]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}. Give `{command}` again, which writes it anew.")
    return dict(results)


def read_stored(folder: Path) -> tuple[dict[str, Any], list[Any], list[Any], list[Any], list[Any]]:
    """Stored results: of each experiment by name, of held-out sources, of `several`, of `compare`, repeated texts."""
    stored = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    held_out, several, compared, repeated = (
        [results for name, results in stored.items() if name.startswith(kind)] for kind in STORED_KINDS
    )
    return {name: stored[name] for name in EXPERIMENTS if name in stored}, held_out, several, compared, repeated


def write_page(experiments: Mapping[str, Results], held_out: Sequence[Results] = (), several: Sequence[Results] = (),
               compared: Sequence[Results] = (), repeated: Sequence[Results] = ()) -> str:  # fmt: skip
    """The page, as Markdown."""
    written = _environment().get_template("results.md").render(
        experiments=experiments, held_out=held_out, several=several, compared=compared,
        repeated={results["bank"]: results for results in repeated},
        glance=glance_table(experiments, compared) if experiments else "",
        verdicts=list(verdicts(experiments, compared, held_out)),
    )  # fmt: skip
    return re.sub(r"\n{3,}", "\n\n", written)


def _environment() -> Environment:
    """The templates; functions of the modules below are filters in them, constants are variables."""
    environment = Environment(  # noqa: S701 - Markdown, of our own results
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    for module in (markdown, repeated_texts, page_values):
        environment.filters |= {name: value for name, value in vars(module).items() if callable(value)}
    for module in (clusterings, published, several_metrics, page_values):
        environment.globals |= {name: value for name, value in vars(module).items() if name.isupper()}
    environment.tests["older"] = page_values.is_older
    return environment
