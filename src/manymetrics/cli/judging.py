"""`evaluate`: a model and target tasks -> a table of how well it answers them, and what it takes for its business."""

from __future__ import annotations

from pathlib import Path

import click

import manymetrics as mm
from manymetrics.cli.answering import mix_options
from manymetrics.cli.output import (
    examples_of_use,
    json_option,
    make_table,
    on_one_line,
    say,
    with_interval,
    write_json,
    write_table,
)

SCORES = ("accuracy", "balanced_accuracy", "macro_f1")


@click.command(
    short_help="Score a model on tasks with test texts.",
    epilog=examples_of_use(
        "manymetrics evaluate model --targets bank",
        "manymetrics evaluate model --targets bank --target books --target baby.t2 --json",
        "manymetrics evaluate model --targets bank --scope --json > scope.json",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--targets", "bank", required=True, type=click.Path(path_type=Path), help="Folder of tasks to try it on.")
@click.option(
    "--target",
    "names",
    metavar="NAME",
    multiple=True,
    help="Only this task, or the tasks whose names begin so; repeatable.",
)
@click.option(
    "--scope",
    is_flag=True,
    help="Ask texts of other tasks and gibberish too, with rejection switched on, and score what is rejected.",
)
@click.option("--seed", default=0, show_default=True, help="Of the texts that --scope draws.")
@mix_options
@json_option
def evaluate(*, model: Path, bank: Path, names: tuple[str, ...], scope: bool, seed: int, mix: str, no_fallback: bool,
             as_json: bool) -> None:  # fmt: skip
    """Adapt MODEL to each target task's train examples and score it on the task's test texts.

    Without --target these are the tasks the folder marks as targets or, if it marks none as anything, all that have
    test texts. Intervals are 95 % bootstrap intervals over the texts of these tasks.
    """
    targets = choose_targets(bank, names)
    learned = mm.load_model(model)
    if seen := set(targets.names) & set(learned.clusters.names):
        few = ", ".join(sorted(seen)[:3]) + (", ..." if len(seen) > 3 else "")
        say(f"warning: the model was learned from tasks of the same name ({few}), so their scores flatter it.")
    if scope:
        return _show_scope(mm.evaluate_scope(learned, targets, mm.load_tasks(bank), seed=seed), as_json=as_json)
    found = mm.evaluate(learned, targets, mix=mix, adaptive=not no_fallback)
    if as_json:
        write_json(found.as_dict())
    else:
        _show(found)
    return None


def choose_targets(folder: Path, names: tuple[str, ...]) -> mm.TaskBank:
    """The named tasks of a folder; else those with the role of a target; else, without any roles, those with tests."""
    bank = mm.load_tasks(folder)
    if names or bank.roles:
        return bank.split_off(*names)[1]
    tested = bank.only([task.name for task in bank if len(task.test)])
    if not len(tested):
        raise mm.InputError(f"{folder}: none of its {len(bank)} tasks has test texts. Add files <task>.test.tsv.")
    return tested


def _show(found: mm.Evaluation) -> None:
    table = make_table(
        "task", numbers=["labels", "shots", "texts", "accuracy", "balanced accuracy", "macro-F1", "majority"]
    )
    for target in found.targets:
        answered = target.answered
        scores = [f"{getattr(answered, score):.1%}" for score in SCORES]
        sizes = [str(size) for size in (target.classes, target.shots, len(answered.labels))]
        table.add_row(on_one_line(answered.task), *sizes, *scores, f"{target.majority.accuracy:.1%}")
    table.add_section()
    for name, means in (("mean", found.mean()), ("majority", found.mean(of_majority=True))):
        table.add_row(name, "", "", "", *(with_interval(means[score]) for score in SCORES))
    write_table(table)
    click.echo(f"expected calibration error {with_interval(found.calibration_error())}")
    fallen = sum(target.fallback is not None for target in found.targets)
    if fallen:
        say(f"No cluster fits {fallen} of the {len(found.targets)} tasks; models trained on their examples answered.")


def _show_scope(found: mm.ScopeEvaluation, *, as_json: bool) -> None:
    about = found.as_dict()
    if as_json:
        return write_json(about)
    figures = ("auroc", "in_scope_kept", "in_scope_accuracy", "out_of_scope_recall", "out_of_scope_answered_surely")
    names = ["AUROC", "kept", "accuracy", "out of scope rejected", "out of scope at 0.9"]
    table = make_table("task", numbers=names)
    for row in about["tasks"]:
        table.add_row(on_one_line(row["task"]), *(f"{row[figure]:.1%}" for figure in figures))
    table.add_section()
    for name in ("targets", "all"):
        table.add_row(name, *(f"{about[name][figure]:.1%}" for figure in figures))
    write_table(table)
    error = mm.Estimate(**about["calibration_error_of_targets"])
    click.echo(f"expected calibration error of the targets {with_interval(error)}")
    return click.echo(f"{about['out_of_scope']} texts out of scope, seed {about['seed']}, tasks {about['bank'][:16]}")
