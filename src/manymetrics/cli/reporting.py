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
    ),
)
@click.argument("place", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default="report.html", show_default=True, help="File to write."
)
@click.option("--figures", type=click.Path(path_type=Path), help="Folder to write the figures to as well.")
def report(*, place: Path, out: Path, figures: Path | None) -> None:
    """Write one HTML page about PLACE: a model, or a run of `learn`.

    The page needs no network and opens from the disk. With --figures each figure is an SVG file too; heat maps are also
    PNG files, which hold the cells and the borders of the clusters and no words.
    """
    mm.write_report(place, out)
    if figures is not None:
        say(f"{len(mm.write_figures(place, figures))} figures are in {figures}.")
    write_path(out)
