"""`python -m experiments`: the commands of the experiments."""

import shlex

import click

from experiments.comparison import compare
from experiments.data_commands import data
from experiments.families import families
from experiments.from_starter import from_starter
from experiments.grid import grid
from experiments.held_out import held_out
from experiments.page import page
from experiments.reproduction import reproduce_command
from experiments.several_rows import several
from experiments.starter import starter
from experiments.steps import steps
from manymetrics.cli.main import COMMAND_LINE, CommandGroup
from manymetrics.cli.options import examples_of_use


class Experiments(CommandGroup):
    """The commands of the experiments, with errors shown as those of `manymetrics` are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was asked for, to be able to say how to go on after an interruption."""
        asked = shlex.join(["python", "-m", "experiments", *args])
        rest = super().parse_args(ctx, args)
        ctx.meta[COMMAND_LINE] = asked
        return rest


@click.group(
    cls=Experiments,
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
