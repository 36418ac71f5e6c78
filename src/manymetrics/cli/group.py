"""The group all commands stand in, and the one place where errors become a line on stderr and an exit code."""

from __future__ import annotations

import errno
import multiprocessing
import shlex
import signal
import threading
import warnings
from typing import Any, NoReturn

import click

import manymetrics as mm
from manymetrics.cli.output import examples_of_use, say

MACHINE_LACKS, INTERRUPTED = 4, 130
RUN, ASKED = "manymetrics.run", "manymetrics.asked"  # what the commands leave in the context for this module
EXIT_CODES = """

\b
Exit codes:
    0  done
    1  unexpected failure
    2  bad input or usage
    3  nothing came of the work: all of it failed, or with --strict a part of it
    4  the machine lacks something; the same command works once it is there
  130  interrupted
"""


class CommandGroup(click.Group):
    """A group of commands that never shows a traceback for what the package knows about."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are of use, not by the alphabet."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was asked for, to be able to say how to go on after an interruption."""
        ctx.meta[ASKED] = shlex.join(["manymetrics", *args])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn its errors and warnings into lines."""
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            for category in (mm.TaskLeftOut, mm.UnitLeftOut, mm.DidNotConverge):
                warnings.simplefilter("always", category)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is to be interrupted
            try:
                return super().invoke(ctx)
            except mm.ManyMetricsError as problem:
                _leave(ctx, str(problem), problem.exit_code)
            except KeyboardInterrupt:
                _leave(ctx, _how_to_go_on(ctx), INTERRUPTED)
            except MemoryError:
                _leave(
                    ctx, "The memory of this machine is full. Give it less at once, or fewer --workers.", MACHINE_LACKS
                )
            except OSError as problem:
                if problem.errno == errno.EPIPE:  # the reader of our output has left, as `head` does
                    raise
                _leave(ctx, _describe(problem), MACHINE_LACKS)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples_of_use(
        "manymetrics demo",
        "manymetrics learn bank --out model --run run",
        'manymetrics predict model --examples shots.tsv "where is my parcel"',
    )
    + EXIT_CODES,
)
@click.version_option(mm.__version__, package_name="manymetrics", prog_name="manymetrics")
def main() -> None:
    """Few-shot text classification for people who serve many different tasks.

    Learn several metrics from a bank of labelled tasks; give a new task with a handful of examples its own mix of them.
    """


def remember_run(run: object) -> None:
    """Let an interruption say how to go on: the finished work is kept in this folder."""
    click.get_current_context().meta[RUN] = run


def asked() -> str:
    """The command that was given, to be given again."""
    return str(click.get_current_context().meta[ASKED])


def _leave(ctx: click.Context, message: str, code: int) -> NoReturn:
    say(message)
    for worker in multiprocessing.active_children():  # or leaving would wait until each has finished what it is at
        worker.terminate()
    ctx.exit(code)


def _how_to_go_on(ctx: click.Context) -> str:
    if RUN not in ctx.meta:
        return "Interrupted."
    if ctx.meta[RUN] is None:
        return "Interrupted, and nothing is kept. With --run FOLDER the same command can go on where it was stopped."
    return f"Interrupted. What is finished is kept; go on with: {ctx.meta[ASKED]}"


def _describe(problem: OSError) -> str:
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}. Mend this and give the same command again."


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"warning: {message}")
