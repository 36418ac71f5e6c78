"""`reproduce`: the paper's experiments again, on data in a folder, against every baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.door import remember_run
from manymetrics.cli.learning import choose_recipe
from manymetrics.cli.output import (
    as_time,
    examples_of_use,
    json_option,
    make_table,
    say,
    write_json,
    write_table,
)
from manymetrics.cli.progress import Stages

GROUPS = {"ours": "RobustTC-FSL", "paper": "the paper's baselines", "today": "what else there is"}
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")


@click.command(
    short_help="Run the paper's experiments again.",
    epilog=examples_of_use(
        "manymetrics reproduce amazon --data amazon --out amazon-results",
        "manymetrics reproduce intent --data intent --quick --out quick    # minutes instead of hours",
    ),
)
@click.argument("experiment", type=click.Choice(["amazon", "intent"]))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of tasks, its targets marked.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results and finished work.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds.  [default: 3, or 1 with --quick]")
@click.option("--quick", is_flag=True, help="One seed, smaller tasks, shorter training: the same table in minutes.")
@click.option("--with", "extras", metavar="NAMES", default="", help="Also run peers: sentence, setfit, or both.")
@click.option("--recipe", "recipe_file", type=click.Path(path_type=Path), help="TOML file of knobs; see `recipe`.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to work in.  [default: one for each core]")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@json_option
def reproduce(*, experiment: str, data: Path, out: Path, seeds: int | None, quick: bool, extras: str,
              recipe_file: Path | None, workers: int | None, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Run every method of the paper's main table and today's on the targets of the folder --data.

    The table shows means over targets and seeds with 95 % bootstrap intervals over targets and texts. All that is
    finished is kept in --out: the same command goes on where it was stopped.
    """
    remember_run(out)
    recipe = choose_recipe(recipe_file)
    wanted = tuple(name.strip() for name in extras.split(",") if name.strip())
    with Stages(quiet=quiet) as stages:
        results = mm.reproduce(
            experiment, data, out, seeds=seeds, quick=quick, extras=wanted, recipe=recipe,
            workers=workers or os.cpu_count() or 1, report=stages,
        )  # fmt: skip
    if as_json:
        write_json(results)
    else:
        _show(results)
    stages.sum_up()
    if not quiet:
        say(f"Everything is in {out}.")


def _show(results: dict[str, Any]) -> None:
    table = make_table("method", numbers=["paper", "accuracy", "balanced accuracy", "macro-F1", "RobustTC-FSL gains"])
    for group, title in GROUPS.items():
        table.add_row(f"- {title} -")
        for row in (row for row in results["rows"] if row["group"] == group):
            table.add_row(f"  {row['method']}", *_cells(row))
        table.add_section()
    table.add_row("- RobustTC-FSL otherwise, first seed -")
    for row in results["ablations"]:
        table.add_row(f"  {row['method']}", *_cells(row))
    write_table(table)
    figure = make_table("clusters", numbers=["clusters", "accuracy", "balanced accuracy"])
    for point in results["by_clusters"]:
        scores = (_share(point[score]) for score in SCORES[:2])
        figure.add_row(point["method"], str(point["clusters"]), *scores)
    click.echo()
    write_table(figure)
    click.echo(
        f"\n{results['command']}\nseeds {', '.join(map(str, results['seeds']))}, data {results['data'][:12]}, "
        f"manymetrics {results['version']}, {as_time(results['seconds'])}"
    )
    skipped = [row for row in [*results["rows"], *results["ablations"]] if not row["applies"]]
    for row in skipped:
        click.echo(f"{row['method']}: {row['note']}")


def _cells(row: dict[str, Any]) -> list[str]:
    paper = "" if row["paper"] is None else f"{row['paper']:.1%}"
    if not row["applies"]:
        return [paper, "-", "-", "-", ""]
    gain = "" if row["gain"] is None else _points(row["gain"])
    return [paper, *(_share(row[score]) for score in SCORES), gain]


def _share(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.1%} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _points(gain: dict[str, float]) -> str:
    return f"{100 * gain['value']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"
