"""What the commands of the experiments have in common: their options, and how a command ends."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from manymetrics.cli.options import group, json_option
from manymetrics.cli.output import say, write_json
from manymetrics.store import write_atomically

Function = TypeVar("Function", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
FORMAT = 2  # of results; 1: several kinds of metrics answered, and the answers were mixed

data_option = click.option("--data", required=True, type=PATH, help="Folder of tasks, its targets marked.")
folders_option = click.option(
    "--data", "folders", required=True, multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Folder of tasks, its targets marked; several make one bank.",
)  # fmt: skip
family_option = click.option(
    "--by", default="family", show_default=True, help="Entry of manifest.json that names the family."
)
seeds_option = click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="How many seeds.")
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
run_options = group(
    None,
    out_options,
    click.option(
        "--recipe", default="default", show_default=True, help="A name or a TOML file; see `manymetrics recipe`."
    ),
)


def folds_option(folds: int) -> Callable[[Function], Function]:
    """`--folds` with a default of its own."""
    return click.option("--folds", type=click.IntRange(min=2), default=folds, show_default=True,
                        help="Parts to assign sources to.")  # fmt: skip


def finish(results: Mapping[str, Any], path: Path, show: Callable[[Mapping[str, Any]], None], *, quiet: bool,
           as_json: bool) -> None:  # fmt: skip
    """Store the results of a command, and print them."""
    write_atomically(path, json.dumps(results, indent=1).encode())
    write_json(results) if as_json else show(results)
    if not quiet:
        say(f"Everything is in {path.parent}.")
