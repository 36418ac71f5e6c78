"""`runs`: what is kept of long computations, how far they came, and what can go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.output import (
    as_size,
    examples_of_use,
    json_option,
    make_table,
    on_one_line,
    say,
    without_breaks,
    write_json,
    write_lines,
    write_table,
)

FORMAT = 1


@click.group(short_help="Finished work kept by learn --run: list, show, clean up.")
def runs() -> None:
    """Finished work that `learn --run` keeps: list it, show how far it came, and clean up."""


@runs.command("list", epilog=examples_of_use("manymetrics runs list runs"))
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@json_option
def list_(*, folder: Path | None, as_json: bool) -> None:
    """List the runs in FOLDER or, if none is given, in this folder and in its folder "runs".

    `learn` puts a run where its option --run says, and keeps nothing without it.
    """
    found = mm.list_runs(folder) if folder is not None else _list_here()
    if not found:
        say(f"There are no runs in {folder or 'this folder and its folder runs'}. `learn --run FOLDER` makes one.")
    if as_json:
        write_json({"format": FORMAT, "runs": [_describe(run) for run in found]})
        return
    table = make_table("run", "state", numbers=["units", "asked for", "failed", "size"])
    for run in found:
        done, asked = (sum(getattr(stage, name) for stage in run.stages) for name in ("done", "asked"))
        numbers = [str(number) for number in (done, asked, len(run.failures))]
        table.add_row(str(run.folder), _state(run), *numbers, as_size(run.size))
    write_table(table)


@runs.command(epilog=examples_of_use("manymetrics runs show runs/first"))
@click.argument("run", type=click.Path(path_type=Path))
@json_option
def show(*, run: Path, as_json: bool) -> None:
    """Show how far RUN has come, stage by stage, and which units failed and why."""
    found = mm.show_run(run)
    if as_json:
        write_json(_describe(found))
        return
    write_lines(f"{without_breaks(str(found.folder))}: {without_breaks(_state(found))}\n")
    table = make_table("stage", numbers=["units", "asked for", "of other recipes", "size"])
    for stage in found.stages:
        numbers = [str(number) for number in (stage.done, stage.asked, stage.others)]
        table.add_row(stage.stage, *numbers, as_size(stage.size))
    write_table(table)
    for failure in found.failures:
        times = f"{failure.attempts} time{'s' * (failure.attempts != 1)}"
        click.echo(on_one_line(f"failed {times}: {failure.stage} of {failure.unit!r}: {failure.error}"))


@runs.command(
    epilog=examples_of_use("manymetrics runs gc runs/first", "manymetrics runs gc runs/first --newest --yes"),
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--newest", is_flag=True, help="Keep only what the last recipe asked for.")
@click.option("--yes", is_flag=True, help="Remove it; without this nothing is removed.")
@json_option
def gc(*, run: Path, newest: bool, yes: bool, as_json: bool) -> None:
    """Remove units of RUN that no recipe carried out there asks for any more, as tasks or knobs have changed since."""
    found = (mm.remove_unused if yes else mm.find_unused)(run, newest=newest)
    if as_json:
        write_json({"format": FORMAT, "removed": yes, "units": len(found.units), "bytes": found.size})
        return
    what = f"{len(found.units)} unit{'s' * (len(found.units) != 1)}, {as_size(found.size)}"
    click.echo(f"Removed {what}." if yes else f"Could be removed: {what}. Nothing was; add --yes to do it.")


def _list_here() -> list[mm.RunSummary]:
    """The runs of this folder, or this folder if it is one; and those of its folder runs, where examples put them."""
    here: list[mm.RunSummary] = mm.list_runs(Path())
    known = {run.folder for run in here}
    below = mm.list_runs(Path("runs")) if Path("runs").is_dir() and Path() not in known else []
    return here + [run for run in below if run.folder not in known]


def _state(run: mm.RunSummary) -> str:
    if run.holder is not None:
        return f"in use by {run.holder}"
    return "finished" if run.finished else "not finished"


def _describe(run: mm.RunSummary) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "run": str(run.folder),
        "finished": run.finished,
        "holder": run.holder,
        "bytes": run.size,
        "stages": [vars(stage) for stage in run.stages],
        "failures": [vars(failure) for failure in run.failures],
    }
