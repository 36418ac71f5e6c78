"""What the commands of the experiments have in common: their options, and how results are stored and printed."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from manymetrics.cli.main import remember_run
from manymetrics.cli.options import group, json_option
from manymetrics.cli.output import Table, say, write_result
from manymetrics.cli.progress import Stages
from manymetrics.store import write_atomically

Option = Callable[[Any], Any]
Results = Mapping[str, Any]

FORMAT = 2  # of results; 1: several kinds of metrics answered, and the answers were mixed
PATH = click.Path(path_type=Path)

data_option = click.option("--data", required=True, type=PATH, help="Folder of tasks, its targets marked.")
folders_option = click.option(
    "--data", "folders", required=True, multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Folder of tasks, its targets marked; several make one bank.",
)  # fmt: skip
recipe_option = click.option(
    "--recipe", default="default", show_default=True, help="A name or a TOML file; see `manymetrics recipe`."
)
family_option = click.option(
    "--by", default="family", show_default=True, help="Entry of manifest.json that names the family."
)
out_options = group(
    None,
    click.option("--out", required=True, type=PATH, help="Folder for results and finished work."),
    click.option(
        "--workers", type=click.IntRange(min=1), default=lambda: os.cpu_count() or 1,
        help="Processes to work in.  [default: one for each core]",
    ),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no times."),
    json_option,
)  # fmt: skip


def count_option(name: str, default: int, help: str, *, least: int = 1) -> Option:
    """An option whose value is a number of things."""
    return click.option(name, type=click.IntRange(min=least), default=default, show_default=True, help=help)


def folds_option(default: int) -> Option:
    """`--folds`."""
    return count_option("--folds", default, "Parts to assign sources to.", least=2)


seeds_option = count_option("--seeds", 3, "How many seeds.")
steps_option = click.option("--steps", is_flag=True, help="Also take gradient steps on the shots of every problem.")


def experiment(name: str, *options: Option, file: str, show: Callable[[Results], Iterable[str | Table]],
               short_help: str) -> Callable[[Callable[..., Results]], click.Command]:  # fmt: skip
    """A command whose results are stored in OUT/`file` and printed as `show` says.

    The function that is decorated gets the options, `out`, `workers` and `report`, and gives the results. The command
    adds to them what was asked for.
    """

    def decorate(run: Callable[..., Results]) -> click.Command:
        def command(*, out: Path, quiet: bool, as_json: bool, **settings: Any) -> None:
            remember_run(out)
            with Stages(quiet=quiet) as stages:
                found = run(out=out, report=stages, **settings)
            results = {"format": FORMAT, **_asked(name, settings), **found}
            path = out / file.format("-".join(results.get("banks", ())))
            write_atomically(path, json.dumps(results, indent=1).encode())
            write_result(results, (*show(results), "", results["command"], f"data {results['data'][:12]}"),
                         as_json=as_json)  # fmt: skip
            if not quiet:
                say(f"Everything is in {path.parent}.")

        return click.command(name, short_help=short_help, help=run.__doc__)(group(None, *options, out_options)(command))

    return decorate


def _asked(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The command, with the names of folders instead of their paths; the names of banks and recipe."""
    words = ["python", "-m", "experiments", name]
    for parameter in click.get_current_context().command.params:
        value = settings.get(str(parameter.name))
        if parameter.name != "workers" and value is not None and value is not False:
            for one in value if isinstance(value, tuple) else (value,):
                words += [parameter.opts[0], *([] if one is True else [_name(one)])]
    asked: dict[str, Any] = {"command": " ".join(words), "recipe_name": settings.get("recipe")}
    if "folders" in settings:
        return asked | {"banks": [_name(folder) for folder in settings["folders"]]}
    return asked | {"bank": _name(settings["data"])}


def _name(value: object) -> str:
    return value.resolve().name if isinstance(value, Path) else str(value)
