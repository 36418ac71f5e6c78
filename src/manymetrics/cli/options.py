"""Options that several commands share, and the layout of a help page: options under headings, then examples."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
SHARE = click.FloatRange(0, 1)
RECIPES = ("default", "tuned", "fast", "paper")
STARTER = "starter"  # the model that comes with the package
EXAMPLES = {"--class-prior": "refund=0.2", "--limit": "rate=50"}
REJECTED = "rejected"  # the label of a rejected text, unless --rejected-label is given


class Command(click.Command):
    """A command whose help page has a section for each heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each under its heading, and --help under the last one."""
        sections: dict[str, list[tuple[str, str]]] = {}
        heading = "Options"
        for parameter in self.get_params(ctx):
            heading = getattr(parameter, "heading", heading)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                sections.setdefault(heading, []).append(record)
        width = max(len(name) for records in sections.values() for name, _ in records)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in records])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, not indented."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write_text(self.epilog)


class Group(click.Group):
    """A group of commands with such help pages."""

    command_class = Command


def command(*examples: str, name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """A command with these examples of its use; without `name` it is called like the function."""
    return click.command(name, cls=Command, epilog=examples_of_use(*examples))


def examples_of_use(*lines: str) -> str:
    """Commands to copy, for the end of a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def group(heading: str | None, *options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Several options as one decorator, under a heading of the help page if there is one."""

    def decorate(function: Function) -> Function:
        parameters: list[Any] = vars(function).setdefault("__click_params__", [])
        first = len(parameters)
        for option in reversed(options):
            option(function)
        for parameter in parameters[first:] if heading else ():
            parameter.heading = heading
        return function

    return decorate


def read_steps(ctx: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """A number of steps, or auto."""
    if value != "auto" and not (value.isascii() and value.isdigit()):
        message = f"{value!r} is not a number of steps. Give a number such as 20, or auto."
        raise click.BadParameter(message, ctx, parameter)
    return value if value == "auto" else int(value)


def read_pairs(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    """Pairs of a name and a number. The last equals sign separates them, because a label may contain others."""
    pairs, called = {}, parameter.opts[0]
    for pair in value:
        name, _, number = pair.rpartition("=")
        if name in pairs:
            raise click.UsageError(f"Found {called} twice for {name!r}. Give each once.")
        try:
            pairs[name] = float(number)
        except ValueError:
            message = f"Found {called} {pair}. Give a name and a number, such as {EXAMPLES[called]}."
            raise click.UsageError(message) from None
    return pairs


option, flag = click.option, partial(click.option, is_flag=True)
folder = partial(option, metavar="FOLDER", type=PATH)
file = partial(option, metavar="FILE", type=PATH)
count = partial(option, metavar="N", type=click.IntRange(min=1))
name = partial(option, metavar="NAME")

model = click.argument("model", metavar="[MODEL]", default=STARTER)
bank = click.argument("bank", type=PATH)
json_option = flag("--json", "as_json", help="Print JSON instead of text.")
quiet = flag("-q", "--quiet", help="Print neither progress nor times.")
seed = option("--seed", metavar="N", type=click.IntRange(min=0), help="Random seed.  [default: 0, or from the recipe]")
run = folder("--run", help="Save finished jobs here, so that the same command resumes. Delete the folder afterwards.")
workers = count("--workers", help="Worker processes.  [default: one per core]", default=lambda: os.cpu_count() or 1)
database = option("--database", metavar="URL", envvar="MANYMETRICS_DATABASE", default="sqlite:///service.db",
                  show_default=True, help="URL of the SQLite or PostgreSQL database.")  # fmt: skip
recipe = option("--recipe", metavar="NAME|FILE", default=RECIPES[0], show_default=True,
                help=f"Recipe: {', '.join(RECIPES)}, or a TOML file as `manymetrics recipe` prints.")  # fmt: skip
encoder = group(
    None,
    option("--encoder", metavar="NAME|FOLDER",
           help="Sentence encoder: a name from `encoders list`, or a folder.  [default: from the recipe]"),
    option("--pooling", type=click.Choice(["cls", "mean"]),
           help="How the encoder in a folder pools token embeddings.  [default: from its files]"),
)  # fmt: skip
steps = option("--steps", metavar="N|auto", default="0", show_default=True, callback=read_steps,
               help="Gradient steps on the examples: a number, or auto for 10 where they are likely to help. More "
                    "accurate, but takes seconds to a minute and needs torch.")  # fmt: skip
new_task = group(
    "New task",
    file("--examples", help="Labelled examples in a table: .tsv (text<TAB>label), .csv, .jsonl or .parquet."),
    folder("--classifier", help="Instead of --examples: a classifier saved with `adapt --save`."),
    file("--counter-examples", help="Texts that are out of scope, one per line."),
    file("--descriptions", help="Descriptions of labels, in such a table. A label with one needs no example."),
    flag("--no-fallback", help="Use the learned metrics even if no cluster fits the task."),
    flag("--no-label-names", help="Do not use label names as examples."),
    steps,
)
text_column = name(
    "--text-column", help="Column of texts, or its number without a header.  [default: text, sentence or utterance]"
)
texts = group(
    "Texts",
    click.argument("texts", nargs=-1, metavar="[TEXT]..."),
    option("--input", metavar="FILE",
           help="Read texts from a table (.csv, .tsv, .json, .jsonl, .parquet), or from any other file, one per line; "
                "- is stdin.  [default: stdin, if there is no TEXT]"),
    text_column,
)  # fmt: skip
rejection = group(
    None,
    option("--reject", metavar="P", type=SHARE,
           help="Reject texts whose probability of being in scope is below P; 0 rejects none."),
    option("--reject-share", metavar="S", type=click.FloatRange(0, 1, min_open=True, max_open=True),
           help="Instead of --reject: choose P so that about a share S of the in-scope texts is rejected."),
)  # fmt: skip
answers = group(
    "Answers",
    rejection,
    option("--margin", metavar="M", type=SHARE,
           help="Reject texts whose two most probable labels differ by less than M in probability."),
    option("--rejected-label", metavar="WORD", help=f"Label of rejected texts.  [default: {REJECTED}]"),
    option("--class-prior", metavar="LABEL=SHARE", multiple=True, callback=read_pairs,
           help="Expected share of a label among new texts. Give one for every label."),
)  # fmt: skip
