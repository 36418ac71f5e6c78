"""`export-onnx`: a model's encoders for programs that have no Python."""

from __future__ import annotations

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli.output import examples_of_use, json_option, say, write_json

FORMAT = 1


@click.command(
    "export-onnx",
    short_help="Write a model's encoders as an ONNX graph.",
    epilog=examples_of_use("manymetrics export-onnx model onnx"),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@json_option
def export_onnx(*, model: Path, out: Path, as_json: bool) -> None:
    """Write the encoders of MODEL as an ONNX graph into the folder OUT, with the tokenizer beside it.

    The graph turns rows of token numbers into a vector for each metric. It is run once and compared with the model
    before it is written.
    """
    done = mm.export_onnx(mm.load_model(model), out)
    if as_json:
        about = {"metrics": list(done.metrics), "left_out": list(done.left_out), "difference": done.difference}
        write_json({"format": FORMAT, "folder": str(done.folder), **about})
    else:
        click.echo(f"{len(done.metrics)} outputs: {', '.join(done.metrics)}")
    say(f"The graph and the model differ by {done.difference:.1e} at most.")
    if done.left_out:
        say(f"Not in the graph, because ONNX cannot hold it: {', '.join(done.left_out)}.")
