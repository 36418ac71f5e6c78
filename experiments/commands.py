"""`python -m experiments`: the commands of the experiments."""

import click

from experiments.comparison import compare
from experiments.families import families
from experiments.from_starter import from_starter
from experiments.grid import grid
from experiments.held_out import held_out
from experiments.page import page
from experiments.repeated import data
from experiments.reproduction import reproduce_command
from experiments.several import several
from experiments.starter import starter
from experiments.steps import steps
from manymetrics.cli.main import CommandGroup
from manymetrics.cli.options import examples_of_use


@click.group(
    "python -m experiments",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples_of_use(
        "python -m experiments reproduce amazon --data amazon --out amazon-results",
        "python -m experiments reproduce intent --data intent --quick --out quick    # minutes instead of hours",
        "python -m experiments page --amazon amazon-results --intent intent-results",
    ),
)
def main() -> None:
    """The paper's experiments again, against every baseline of its main table and today's."""


for command in (data, compare, families, from_starter, grid, held_out, page, reproduce_command, several,
                starter, steps):  # fmt: skip
    main.add_command(command)
