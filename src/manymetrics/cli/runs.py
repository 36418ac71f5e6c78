"""`runs`: the finished jobs that `learn --run` has saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import Table, as_size, count_of, say, write_result

run_argument = click.argument("run", type=options.PATH)


@click.group(cls=options.Group)
def runs() -> None:
    """List, show and clean up the jobs saved by `learn --run`."""


@runs.command("list", epilog=options.examples_of_use("manymetrics runs list runs"))
@click.argument("folder", type=options.PATH, required=False)
@options.json_option
def list_(*, folder: Path | None, as_json: bool) -> None:
    """List the runs in a folder.

    Without FOLDER, these are the runs in this folder and in its subfolder "runs".
    """
    summaries = mm.list_runs(folder) if folder is not None else _list_here()
    if not summaries:
        say(f"There are no runs in {folder or 'this folder and its subfolder runs'}. `learn --run FOLDER` makes one.")
    numbers = ["jobs done", "jobs", "failed", "size"]
    table = Table("run", "state", numbers=numbers, rows=[_row(run) for run in summaries])
    write_result({"runs": [_summary(run) for run in summaries]}, [table], as_json=as_json)


@runs.command(epilog=options.examples_of_use("manymetrics runs show runs/first"))
@run_argument
@options.json_option
def show(*, run: Path, as_json: bool) -> None:
    """Show the progress of RUN by stage, and the jobs that failed."""
    summary = mm.show_run(run)
    write_result(_summary(summary), _text(summary), as_json=as_json)


@runs.command(epilog=options.examples_of_use("manymetrics runs gc runs/first --newest --yes"))
@run_argument
@options.flag("--newest", "Keep only the jobs of the last recipe.")
@options.flag("--yes", "Remove the jobs; without --yes they are only counted.")
@options.json_option
def gc(*, run: Path, newest: bool, yes: bool, as_json: bool) -> None:
    """Remove unused jobs of RUN.

    A job is unused if tasks or settings have changed since.
    """
    unused = (mm.remove_unused if yes else mm.find_unused)(run, newest=newest)
    count = f"{count_of(len(unused.jobs), 'job')}, {as_size(unused.size)}"
    line = f"Removed {count}." if yes else f"Unused: {count}. Nothing was removed; add --yes to remove them."
    data = {"removed": yes, "jobs": len(unused.jobs), "bytes": unused.size}
    write_result(data, [line], as_json=as_json)


def _list_here() -> list[mm.RunSummary]:
    """The runs in this folder, or this folder if it is a run; and those in the subfolder runs."""
    here: list[mm.RunSummary] = mm.list_runs(Path())
    folders = {run.folder for run in here}
    below = mm.list_runs(Path("runs")) if Path("runs").is_dir() and Path() not in folders else []
    return here + [run for run in below if run.folder not in folders]


def _row(run: mm.RunSummary) -> tuple[object, ...]:
    done, total = sum(stage.done for stage in run.stages), sum(stage.asked for stage in run.stages)
    return run.folder, _state(run), done, total, len(run.failures), as_size(run.size)


def _text(run: mm.RunSummary) -> Iterator[str | Table]:
    yield f"{run.folder}: {_state(run)}"
    yield ""
    rows = [(stage.stage, stage.done, stage.asked, stage.others, as_size(stage.size)) for stage in run.stages]
    yield Table("stage", numbers=["jobs done", "jobs", "of other recipes", "size"], rows=rows)
    for failure in run.failures:
        yield f"failed {count_of(failure.attempts, 'time')}: {failure.stage} of {failure.job!r}: {failure.error}"


def _state(run: mm.RunSummary) -> str:
    if run.holder is not None:
        return f"in use by {run.holder}"
    return "finished" if run.finished else "not finished"


def _summary(run: mm.RunSummary) -> dict[str, Any]:
    return {
        "run": str(run.folder),
        "finished": run.finished,
        "holder": run.holder,
        "bytes": run.size,
        "stages": run.stages,
        "failures": run.failures,
    }
