"""The options that experiments have in common."""

from pathlib import Path

import click

from manymetrics.cli.options import group, json_option

data_option = click.option(
    "--data", required=True, type=click.Path(path_type=Path), help="Folder of tasks, its targets marked."
)
folders_option = click.option(
    "--data", "folders", required=True, multiple=True, type=click.Path(path_type=Path, exists=True),
    help="Folder of tasks, its targets marked; several make one bank.",
)  # fmt: skip
seeds_option = click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="How many seeds.")
run_options = group(
    None,
    click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results and finished work."),
    click.option(
        "--recipe", default="default", show_default=True, help="A name or a TOML file; see `manymetrics recipe`."
    ),
    click.option("--workers", type=click.IntRange(min=1), help="Processes to work in.  [default: one for each core]"),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no times."),
    json_option,
)
