"""Options that several commands share, and the layout of a help page: options under headings, then examples."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
SHARE = click.FloatRange(0, 1)
RECIPES = ("default", "tuned", "fast", "paper")
option = click.option
STARTER = "starter"  # the model that comes with the package
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


def flag(name: str, help: str) -> Callable[[Function], Function]:
    """An option without a value."""
    return option(name, is_flag=True, help=help)


def value(name: str, metavar: str, help: str, **settings: Any) -> Callable[[Function], Function]:
    """An option with a value."""
    return option(name, metavar=metavar, help=help, **settings)


def read_steps(ctx: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """A number of steps, or auto."""
    if value != "auto" and not (value.isascii() and value.isdigit()):
        message = f"{value!r} is not a number of steps. Give a number such as 20, or auto."
        raise click.BadParameter(message, ctx, parameter)
    return value if value == "auto" else int(value)


def kind_of_value(metavar: str, type: Any) -> Callable[..., Callable[[Function], Function]]:
    """A function like `value` for options of one kind."""
    return lambda name, help, **settings: value(name, metavar, help, type=type, **settings)


folder, file = kind_of_value("FOLDER", PATH), kind_of_value("FILE", PATH)
count = kind_of_value("N", click.IntRange(min=1))

model = click.argument("model", metavar="[MODEL]", default=STARTER)
optional_model = click.argument("model", required=False)
bank = click.argument("bank", type=PATH)
json_option = option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
quiet = option("-q", "--quiet", is_flag=True, help="Do not print progress and times.")
run = folder("--run", "Save finished jobs here, so that the same command resumes. To clean up, delete the folder.")
workers = count("--workers", "Worker processes.  [default: one per core]", default=lambda: os.cpu_count() or 1)
recipe = value("--recipe", "NAME|FILE", f"{', '.join(RECIPES)}, or a TOML file (see `manymetrics recipe`).",
               default=RECIPES[0], show_default=True)  # fmt: skip
encoder = group(
    None,
    value("--encoder", "NAME|FOLDER",
          "Sentence encoder: a name of `encoders list`, or a folder.  [default: from the recipe]"),
    option("--pooling", type=click.Choice(["cls", "mean"]),
           help="How the encoder in a folder pools token embeddings.  [default: from its files]"),
)  # fmt: skip
steps = value("--steps", "N|auto",
              "Gradient steps on the examples: some seconds, more accurate, needs torch. auto takes as many as pay.",
              default="0", show_default=True, callback=read_steps)  # fmt: skip
new_task = group(
    "New task",
    file("--examples", "Labelled examples: .tsv (text<TAB>label), .csv, .jsonl or .parquet."),
    folder("--classifier", "Instead of --examples: a folder saved by `adapt --save`."),
    file("--counter-examples", "Texts that are out of scope, one per line."),
    file("--descriptions", "Descriptions of labels, in a format of --examples. Such a label needs no example."),
    flag("--no-fallback", "Use the learned metrics even if no cluster fits the task."),
    flag("--no-label-names", "Do not use label names as examples."),
    steps,
)
text_column = value(
    "--text-column", "NAME", "Column of texts, or its number without a header.  [default: text, sentence or utterance]"
)
texts = group(
    None,
    click.argument("texts", nargs=-1, metavar="[TEXT]..."),
    group(
        "Texts",
        value("--input", "FILE",
              "Read texts from a table (.csv, .tsv, .json, .jsonl, .parquet), or from any other file, one per line. "
              "- is stdin.  [default: stdin, if there is no TEXT]"),
        text_column,
    ),
)  # fmt: skip
rejection = group(
    None,
    value("--reject", "P", "Reject texts whose probability of being in scope is below P; 0 rejects none.", type=SHARE),
    value("--reject-share", "S",
          "Instead of --reject: choose P so that about the share S of in-scope texts is rejected.",
          type=click.FloatRange(0, 1, min_open=True, max_open=True)),
)  # fmt: skip
answers = group(
    "Answers",
    rejection,
    value("--margin", "M", "Reject texts whose two most probable labels differ by less than M.", type=SHARE),
    value("--rejected-label", "WORD", f"Label of rejected texts.  [default: {REJECTED}]"),
    value("--class-prior", "LABEL=SHARE", "Expected share of a label among new texts. Repeat for every label.",
          multiple=True),
)  # fmt: skip
