"""`report`: a model or a run -> a page to look at, and figures for a paper."""

from __future__ import annotations

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli.output import examples_of_use, say, write_path


@click.command(
    short_help="Write a page about a model or a run.",
    epilog=examples_of_use(
        "manymetrics report model",
        "manymetrics report runs/first -o first.html --figures figures",
        "manymetrics report model --families bank --evaluation results.json",
    ),
)
@click.argument("place", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default="report.html", show_default=True, help="File to write."
)
@click.option("--families", type=click.Path(path_type=Path), help="Bank whose manifest.json names families to show.")
@click.option("--evaluation", type=click.Path(path_type=Path), help="What `evaluate --json` wrote: show its targets.")
@click.option("--figures", type=click.Path(path_type=Path), help="Folder to write the figures to as well.")
def report(*, place: Path, out: Path, families: Path | None, evaluation: Path | None, figures: Path | None) -> None:
    """Write one HTML page about PLACE: a model, or a run of `learn`.

    It begins with a map of the tasks, coloured by cluster; with --families by family, each mark with the number of its
    cluster. With --evaluation it shows where each target was routed and why.

    The page needs no network and opens from the disk. With --figures each figure is an SVG file too; heat maps are also
    PNG files, which hold the cells and the borders of the clusters and no words.
    """
    mm.write_report(place, out, families=families, evaluation=evaluation)
    if figures is not None:
        written = mm.write_figures(place, figures, families=families, evaluation=evaluation)
        say(f"{len(written)} figures are in {figures}.")
    write_path(out)
