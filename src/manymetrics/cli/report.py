"""`report`: a model or a run -> an HTML page."""

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.output import write_tsv


@options.command(
    "manymetrics report model",
    "manymetrics report runs/first -o first.html",
    "manymetrics report model --evaluation results.json",
)
@click.argument("source", metavar="[SOURCE]", default=options.STARTER)
@options.group(
    "Options",
    options.file("--evaluation", help="Output of `evaluate --json`: show its targets."),
    options.option("-o", "--out", type=options.PATH, metavar="FILE", default="report.html", show_default=True,
                   help="File of the page."),
)  # fmt: skip
def report(*, source: str, out: Path, evaluation: Path | None) -> None:
    """Write an HTML page about a model or a run.

    SOURCE is a model, by default the starter model, or a run of `learn`. The page begins with a map of the tasks,
    coloured by cluster. With --evaluation it shows which cluster each target was assigned to, and why. The page needs
    no network.
    """
    mm.write_report(source, out, evaluation=evaluation)
    write_tsv(str(out))
