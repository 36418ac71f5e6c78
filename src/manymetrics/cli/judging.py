"""`evaluate`: a model and target tasks -> a table of how well it answers them, and what it takes to be in scope.

With --leave-one-out no model is needed: models are learned without each source of a bank in turn.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli.adapting import mix_options, threshold_options
from manymetrics.cli.group import remember_run
from manymetrics.cli.learning import choose_recipe
from manymetrics.cli.output import (
    examples_of_use,
    json_option,
    make_table,
    say,
    with_interval,
    write_json,
    write_table,
)
from manymetrics.cli.progress import Stages

SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
SCOPE_COLUMNS = {
    "AUROC": "auroc",
    "kept": "in_scope_kept",
    "accuracy": "in_scope_accuracy",
    "without rejection": "accuracy_without_rejection",
    "out of scope rejected": "out_of_scope_recall",
    "out of scope at 0.9": "out_of_scope_answered_surely",
}


@click.command(
    short_help="Score a model on tasks with test texts.",
    epilog=examples_of_use(
        "manymetrics evaluate model --targets bank",
        "manymetrics evaluate model --targets bank --target books --target baby.t2 --json",
        "manymetrics evaluate model --targets bank --scope --reject-share 0.05",
        "manymetrics evaluate --leave-one-out --bank bank --run runs/held-out --sources 10",
    ),
)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--targets", type=click.Path(path_type=Path), help="Folder of tasks to try MODEL on.")
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
@threshold_options
@click.option("--leave-one-out", is_flag=True, help="Without MODEL: learn without each source of --bank in turn.")
@click.option("--bank", type=click.Path(path_type=Path), help="Folder of tasks for --leave-one-out.")
@click.option("--shots", type=click.IntRange(min=1), help="Examples of each label of a task held out.  [default: 5]")
@click.option("--sources", type=click.IntRange(min=1), help="Hold out so many sources, drawn.  [default: all]")
@click.option("--run", type=click.Path(path_type=Path), help="Folder to keep the work of --leave-one-out in.")
@click.option("--recipe", "recipe_name", metavar="NAME|FILE", help="Of the learning: default, fast, paper, or a file.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to learn in.  [default: one for each core]")
@click.option("--seed", type=click.IntRange(min=0), help="Of what --scope draws, or of the learning.  [default: 0]")
@mix_options
@click.option("-q", "--quiet", is_flag=True, help="No progress, no times.")
@json_option
def evaluate(*, model: Path | None, leave_one_out: bool, scope: bool, as_json: bool, **asked: Any) -> None:
    """Adapt MODEL to each target task's train examples and score it on the task's test texts.

    Without --target these are the tasks the folder marks as targets or, if it marks none as anything, all that have
    test texts. Intervals are 95 % bootstrap intervals over the texts of these tasks. Columns: shots are the train
    examples, texts the test texts; macro-F1 is the F1 of each label, averaged; majority is the accuracy of always
    answering the commonest label.

    --scope has other columns. AUROC: the probability that a text of the task is held to be in scope rather than one
    that is not. kept: the share of the task's texts that are not rejected. accuracy: the share that is answered, and
    rightly. without rejection: the share whose likeliest label is right, rejected or not. out of scope rejected: the
    share of the other texts that is rejected. out of scope at 0.9: the share of them whose likeliest label has a
    probability of 0.9 or more. --reject and --reject-share say what is rejected; else it is what is in scope with less
    than 0.5.

    --leave-one-out --bank BANK estimates what a model learned from BANK would do on a source it has not seen: each
    source (a client, a product; manifest.json names them, else each task is one) is held out in turn, metrics are
    learned from the others, and its tasks are tried with --shots examples of each label. It takes a learning for each
    source; with --run the same command goes on where it was stopped. Intervals are over sources and texts.
    """
    if leave_one_out and scope:
        raise click.UsageError("Give --leave-one-out or --scope, not both.")
    find = _hold_out_in_turn if leave_one_out else _try_scope if scope else _try_model
    found = find(model, **asked)
    if as_json:
        write_json(found.as_dict())
    elif isinstance(found, mm.ScopeEvaluation):
        _show_scope(found.as_dict())
    else:
        _show(found)


def _try_model(model: Path | None, *, targets: Path | None, names: tuple[str, ...], mix: str | None, no_fallback: bool,
               no_label_names: bool, seed: int | None, **others: Any) -> mm.Evaluation:  # fmt: skip
    _refuse(others, "reject", "reject_share", why="is for --scope")
    learned, chosen, _ = _open(model, targets, names, others)
    return mm.evaluate(learned, chosen, mix=mix or "default", adaptive=not no_fallback, label_names=not no_label_names)


def _try_scope(model: Path | None, *, targets: Path | None, names: tuple[str, ...], reject: float | None,
               reject_share: float | None, seed: int | None, **others: Any) -> mm.ScopeEvaluation:  # fmt: skip
    _refuse(others, "mix", "no_fallback", "no_label_names", why="is not for --scope")
    learned, chosen, bank = _open(model, targets, names, others)
    return mm.evaluate_scope(learned, chosen, bank, reject=reject, reject_share=reject_share, seed=seed or 0)


def _open(
    model: Path | None, targets: Path | None, names: tuple[str, ...], others: dict[str, Any]
) -> tuple[mm.MetricModel, mm.TaskBank, Path]:
    """The model, the tasks to try it on, and the folder they are in."""
    if model is None or targets is None:
        raise click.UsageError("Give a MODEL and the tasks to try it on: --targets FOLDER. Or --leave-one-out.")
    _refuse(others, "bank", "shots", "sources", "run", "recipe_name", "workers", why="is for --leave-one-out")
    chosen = mm.choose_targets(targets, *names)
    learned = mm.load_model(model)
    if seen := set(chosen.names) & set(learned.clusters.names):
        few = ", ".join(sorted(seen)[:3]) + (", ..." if len(seen) > 3 else "")
        say(f"warning: the model was learned from tasks of the same name ({few}), so their scores flatter it.")
    return learned, chosen, targets


def _hold_out_in_turn(
    model: Path | None,
    *,
    bank: Path | None,
    shots: int | None,
    sources: int | None,
    run: Path | None,
    recipe_name: str | None,
    workers: int | None,
    seed: int | None,
    mix: str | None,
    no_fallback: bool,
    no_label_names: bool,
    quiet: bool,
    **others: Any,
) -> mm.Evaluation:
    if model is not None or bank is None:
        raise click.UsageError("--leave-one-out learns models itself. Give no MODEL, and the tasks as --bank FOLDER.")
    _refuse(others, "targets", "names", "reject", "reject_share", why="is for a MODEL")
    remember_run(run)
    with Stages(quiet=quiet) as stages:
        found: mm.Evaluation = mm.evaluate_leave_one_out(
            bank,
            choose_recipe(recipe_name or "default", seed=seed),
            shots=shots or 5,
            sources=sources,
            mix=mix or "default",
            adaptive=not no_fallback,
            label_names=not no_label_names,
            run=run,
            workers=workers or os.cpu_count() or 1,
            report=stages,
        )
    stages.sum_up()
    return found


def _refuse(options: dict[str, Any], *names: str, why: str) -> None:
    """Refuse options that the rest of the command has no use for."""
    spelled = {"names": "target", "recipe_name": "recipe"}
    for name in names:
        if options[name]:
            raise click.UsageError(f"--{spelled.get(name, name.replace('_', '-'))} {why}. Leave it out.")


def _show(found: mm.Evaluation) -> None:
    """A table; with a column of sources where some are other than the task."""
    apart = any(target.source not in ("", target.answered.task) for target in found.targets)
    numbers = ["labels", "shots", "texts", "accuracy", "balanced accuracy", "macro-F1", "majority"]
    table = make_table("task", *(["source"] if apart else []), numbers=numbers)
    for target in found.targets:
        answered = target.answered
        scores = [f"{getattr(answered, score):.1%}" for score in SCORES]
        sizes = [str(size) for size in (target.classes, target.shots, len(answered.labels))]
        names = [answered.task, *([target.source] if apart else [])]
        table.add_row(*names, *sizes, *scores, f"{target.majority.accuracy:.1%}")
    table.add_section()
    for name, means in (("mean", found.mean()), ("majority", found.mean(of_majority=True))):
        blank = [""] * (4 if apart else 3)
        table.add_row(name, *blank, *(with_interval(means[score]) for score in SCORES))
    write_table(table)
    click.echo(f"expected calibration error {with_interval(found.calibration_error())}")
    fallen = sum(target.fallback is not None for target in found.targets)
    if fallen:
        say(f"No cluster fits {fallen} of the {len(found.targets)} tasks; models trained on their examples answered.")


def _show_scope(about: dict[str, Any]) -> None:
    table = make_table("task", numbers=[*SCOPE_COLUMNS, "rejected below"])
    rows = [(row["task"], row) for row in about["tasks"]]
    for place, (name, row) in enumerate([*rows, ("targets", about["targets"]), ("all", about["all"])]):
        if place == len(rows):
            table.add_section()
        figures = [f"{row[figure]:.1%}" for figure in SCOPE_COLUMNS.values()]
        table.add_row(name, *figures, f"{row['threshold']:.3f}")
    write_table(table)
    error = mm.Estimate(**about["calibration_error_of_targets"])
    click.echo(f"expected calibration error of the targets {with_interval(error)}")
    click.echo(f"{about['out_of_scope']} texts out of scope, seed {about['seed']}, tasks {about['bank'][:16]}")
