"""The group of all commands. Errors and warnings become one line on stderr each; errors also set the exit code."""

import errno
import multiprocessing
import shlex
import signal
import threading
import warnings
from typing import Any, NoReturn

import click

import manymetrics as mm
from manymetrics.cli.options import examples_of_use
from manymetrics.cli.output import say

REQUIREMENT_MISSING, INTERRUPTED = 4, 130
RUN, COMMAND_LINE = "manymetrics.run", "manymetrics.command_line"  # keys of `Context.meta`
EXIT_CODES = """

\b
Exit codes:
    0  done
    1  unexpected failure
    2  bad input or usage
    3  no result: all jobs of a stage failed, or any job with --strict
    4  a requirement is missing, such as an extra, an encoder, memory or disk space
  130  interrupted
"""


class CommandGroup(click.Group):
    """A group of commands that shows no traceback for errors of the package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List commands in the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the command line, which messages repeat."""
        ctx.meta[COMMAND_LINE] = f"{self.name} {shlex.join(args)}"
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print its errors and warnings as lines."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
            for category in (mm.TaskSkipped, mm.JobSkipped, mm.TrainingWarning, mm.DidNotConverge):
                warnings.simplefilter("always", category)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                return super().invoke(ctx)
            except mm.ManyMetricsError as error:
                _exit(ctx, str(error), error.exit_code)
            except KeyboardInterrupt:
                _exit(ctx, _describe_interruption(ctx), INTERRUPTED)
            except MemoryError:
                _exit(ctx, "Out of memory. Use less data at once, or fewer --workers.", REQUIREMENT_MISSING)
            except OSError as error:
                if error.errno == errno.EPIPE:  # the reader of stdout has closed it, as `head` does
                    raise
                path = f"{error.filename}: " if error.filename else ""
                message = f"{path}{error.strerror or error}. Fix this and run the same command again."
                _exit(ctx, message, REQUIREMENT_MISSING)


@click.group(
    "manymetrics",
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
    """Few-shot text classification for teams that run many classification tasks.

    `learn` finds clusters in a bank of labelled tasks and learns one metric per cluster. `adapt` and `predict` combine
    these metrics for a new task with a few examples.
    """


def remember_run(run: object) -> None:
    """Name the run folder, so that the message of an interruption can say how to resume."""
    click.get_current_context().meta[RUN] = run


def _exit(ctx: click.Context, message: str, code: int) -> NoReturn:
    say(message)
    for worker in multiprocessing.active_children():  # otherwise Python waits until their jobs are finished
        worker.terminate()
    ctx.exit(code)


def _describe_interruption(ctx: click.Context) -> str:
    if RUN not in ctx.meta:
        return "Interrupted."
    if ctx.meta[RUN] is None:
        return "Interrupted. Nothing was saved. With --run FOLDER, the same command resumes."
    return f"Interrupted. Finished jobs are saved; resume with: {ctx.meta[COMMAND_LINE]}"
