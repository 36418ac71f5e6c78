"""`report`: a model or a run -> an HTML page, and figures."""

from __future__ import annotations

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import say, write_path


@options.command(
    "manymetrics report model",
    "manymetrics report runs/first -o first.html --figures figures",
    "manymetrics report model --families bank --evaluation results.json",
)
@click.argument("source", type=options.PATH)
@options.group(
    "Content",
    options.folder("--families", "Bank whose manifest.json names the family of each task."),
    options.file("--evaluation", "Output of `evaluate --json`: show its targets."),
)
@options.group(
    "Output",
    options.option("-o", "--out", type=options.PATH, metavar="FILE", default="report.html", show_default=True,
                   help="File of the page."),
    options.folder("--figures", "Also write each figure to this folder."),
)  # fmt: skip
def report(*, source: Path, out: Path, families: Path | None, evaluation: Path | None, figures: Path | None) -> None:
    """Write an HTML page about a model or a run.

    SOURCE is a model, or a run of `learn`. The page begins with a map of the tasks, coloured by cluster; with
    --families, coloured by family and marked with the number of the cluster. With --evaluation it shows which cluster
    each target was assigned to, and why. The page needs no network.

    With --figures each figure is also written as SVG, and heat maps as PNG, without text.
    """
    mm.write_report(source, out, families=families, evaluation=evaluation)
    if figures is not None:
        files = mm.write_figures(source, figures, families=families, evaluation=evaluation)
        say(f"{len(files)} figures are in {figures}.")
    write_path(out)
