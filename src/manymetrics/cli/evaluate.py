"""`evaluate`: accuracy and rejections of a model on target tasks, or accuracy on held-out sources of a bank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.inputs import open_model
from manymetrics.cli.learn import choose_recipe, load_training_tasks
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, as_gain, say, with_interval, write_result
from manymetrics.cli.progress import Stages

SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
SCOPE_COLUMNS = {
    "AUROC": "auroc",
    "accepted": "in_scope_kept",
    "accuracy": "in_scope_accuracy",
    "without rejection": "accuracy_without_rejection",
    "out of scope rejected": "out_of_scope_recall",
    "out of scope at 0.9": "out_of_scope_answered_surely",
}
OF_SCOPE = ("reject", "reject_share")
OF_LEAVE_ONE_OUT = ("bank", "shots", "sources", "against", "run", "recipe", "encoder", "pooling", "workers")


@options.command(
    "manymetrics evaluate model --targets bank",
    "manymetrics evaluate model --targets bank --target books --target baby.t2 --json",
    "manymetrics evaluate model --targets bank --scope --reject-share 0.05",
    "manymetrics evaluate --leave-one-out --bank bank --run runs/held-out --sources 10",
    "manymetrics evaluate --leave-one-out --bank bank --against starter    # is the bank large enough?",
)
@options.optional_model
@options.group(
    "Target tasks",
    options.folder("--targets", "Folder of tasks on which MODEL is evaluated."),
    options.value("--target", "NAME", "Only this task, or all tasks with this prefix. Repeatable.", multiple=True),
    options.steps,
)
@options.group(
    "Scope",
    options.flag("--scope", "Evaluate the rejection of texts that are out of scope."),
    options.rejection,
)
@options.group(
    "Leave one out",
    options.flag("--leave-one-out", "Instead of MODEL: learn without each source of --bank in turn."),
    options.folder("--bank", "Folder of tasks for --leave-one-out."),
    options.count("--shots", "Examples per label of a held-out task.", default=5, show_default=True),
    options.count("--sources", "Number of sources to hold out, drawn at random.  [default: all]"),
    options.value("--against", "MODEL", "Also compare with this model: a folder, or starter."),
    options.run,
    options.recipe,
    options.encoder,
    options.workers,
)
@options.group(
    "Output",
    options.value("--seed", "N", "Random seed of --scope and --leave-one-out.  [default: 0, or from the recipe]",
                  type=click.IntRange(min=0)),
    options.quiet,
    options.json_option,
)  # fmt: skip
def evaluate(*, scope: bool, leave_one_out: bool, quiet: bool, as_json: bool, **settings: Any) -> None:
    """Evaluate a model on tasks with test texts.

    MODEL, by default the starter model, is adapted to the train examples of each target task and answers its test
    texts. Targets are the tasks marked so in manifest.json; without marks, all tasks with test texts. The first table
    has the number of labels, of train examples (shots) and of test texts; accuracy, balanced accuracy and macro-F1; and
    the accuracy of always answering the most frequent label (majority). The second table has two baselines: balanced
    logistic regression on the frozen encoder, and on the metric shared by all tasks. The lines below it compare the
    model with each baseline on the same texts. Intervals are 95 % bootstrap intervals over texts; those of comparisons
    are over tasks and texts.

    With --scope, texts of other tasks and gibberish are answered, too. The threshold of rejection is 0.5, unless
    --reject or --reject-share is given. The columns are:

    \b
      AUROC: probability that a text of the task has a higher scope than another text
      accepted: share of the task's texts that are not rejected
      accuracy: share of the task's texts that are answered correctly
      without rejection: the same, if no text were rejected
      out of scope rejected: share of the other texts that are rejected
      out of scope at 0.9: share of the other texts answered with at least 0.9

    With --leave-one-out, each source of --bank is held out in turn: a client or a product as named in manifest.json,
    otherwise a task. Metrics are learned from the other sources, and the held-out tasks are answered with --shots
    examples per label. This learns one model per source. Intervals are over sources and texts.
    """  # noqa: D301 - click keeps the lines behind \b
    if leave_one_out and scope:
        raise click.UsageError("Give --leave-one-out or --scope, not both.")
    prepare = _leave_one_out if leave_one_out else _scope if scope else _targets
    evaluation = prepare(**settings)
    with Stages(quiet=quiet) as stages:
        result = evaluation(report=stages)
    stages.sum_up()
    parts = describe_evaluation(result) if isinstance(result, mm.Evaluation) else _scope_text(result.as_dict())
    write_result(result.as_dict(), parts, as_json=as_json)


def _targets(*, model: str | None, targets: Path | None, target: tuple[str, ...], steps: int | str,
             **_: Any) -> Callable[..., Any]:  # fmt: skip
    _refuse(OF_SCOPE, "is an option of --scope")
    return partial(mm.evaluate, *_load(model, targets, target), steps=steps)


def _scope(*, model: str | None, targets: Path | None, target: tuple[str, ...], reject: float | None,
           reject_share: float | None, seed: int | None, **_: Any) -> Callable[..., Any]:  # fmt: skip
    _refuse(("steps",), "is not an option of --scope")
    learned, tasks = _load(model, targets, target)
    folder = targets or ""  # `_load` refuses None
    return partial(mm.evaluate_scope, learned, tasks, folder, reject=reject, reject_share=reject_share, seed=seed or 0)


def _leave_one_out(*, model: str | None, bank: Path | None, run: Path | None, recipe: str, encoder: str | None,
                   pooling: str | None, workers: int, seed: int | None, shots: int, sources: int | None,
                   against: str | None, **_: Any) -> Callable[..., Any]:  # fmt: skip
    if model is not None or bank is None:
        raise click.UsageError("--leave-one-out learns its own models. Give --bank FOLDER and no MODEL.")
    _refuse(("targets", "target", "steps", *OF_SCOPE), "needs a MODEL")
    remember_run(run)
    tasks = load_training_tasks(bank)
    _warn_of_similar_labels(tasks)
    chosen = choose_recipe(recipe, encoder=encoder, pooling=pooling, seed=seed)
    other = None if against is None else open_model(against)
    return partial(
        mm.evaluate_leave_one_out, tasks, chosen, shots=shots, sources=sources, run=run, workers=workers, against=other
    )


def _load(model: str | None, targets: Path | None, names: tuple[str, ...]) -> tuple[mm.MetricModel, mm.TaskBank]:
    """The model and the target tasks."""
    if targets is None:
        raise click.UsageError("Give --targets FOLDER, or --leave-one-out and --bank FOLDER.")
    _refuse(OF_LEAVE_ONE_OUT, "is an option of --leave-one-out")
    tasks = mm.choose_targets(targets, *names)
    learned = open_model(model or options.STARTER)
    if seen := sorted(set(tasks.names) & set(learned.clusters.names)):
        few = ", ".join(seen[:3]) + (", ..." if len(seen) > 3 else "")
        say(f"warning: the model was learned from tasks of the same name ({few}), so their scores are too high.")
    _warn_of_similar_labels(tasks)
    return learned, tasks


def _warn_of_similar_labels(tasks: mm.TaskBank) -> None:
    if message := mm.describe_similar_labels(tasks):
        say(f"warning: {message}")


def _refuse(names: tuple[str, ...], reason: str) -> None:
    """Refuse options that were given but have no effect here."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} {reason}. Leave it out.")


def describe_evaluation(result: mm.Evaluation) -> Iterator[str | Table]:
    """The results as tables and lines."""
    yield _target_table(result)
    yield ""
    baselines = result.baselines()
    rows = [(row.method, with_interval(row.accuracy), with_interval(row.balanced_accuracy)) for row in baselines]
    yield Table("baseline", numbers=["accuracy", "balanced accuracy"], rows=rows)
    yield ""
    for baseline in baselines:
        yield f"manymetrics over {baseline.method}: {as_gain(baseline.gain)}"
        yield f"  in balanced accuracy: {as_gain(baseline.balanced_gain)}"
    yield f"expected calibration error {with_interval(result.calibration_error())}"
    fallbacks = sum(target.fallback is not None for target in result.targets)
    if fallbacks:
        say(f"No cluster fits {fallbacks} of the {len(result.targets)} tasks; these were answered by the fallback.")


def _target_table(result: mm.Evaluation) -> Table:
    """The scores of each target and their means; sources are in the JSON."""
    rows: list[list[object]] = []
    for target in result.targets:
        scores = [getattr(target.answered, score) for score in SCORES]
        counts = [target.classes, target.shots, len(target.answered.labels)]
        shares = (f"{score:.1%}" for score in (*scores, target.majority.accuracy))
        rows.append([target.answered.task, *counts, *shares])
    rows.append([])
    for name, means in (("mean", result.mean()), ("majority", result.mean(of_majority=True))):
        rows.append([name, *[""] * 3, *(with_interval(means[score]) for score in SCORES)])
    numbers = ["labels", "shots", "texts", "accuracy", "balanced accuracy", "macro-F1", "majority"]
    return Table("task", numbers=numbers, rows=rows)


def _scope_text(data: dict[str, Any]) -> Iterator[str | Table]:
    def cells(name: str, row: dict[str, Any]) -> list[str]:
        return [name, *(f"{row[column]:.1%}" for column in SCOPE_COLUMNS.values()), f"{row['threshold']:.3f}"]

    rows = [cells(row["task"], row) for row in data["tasks"]]
    rows += [[], cells("all", data["targets"])]
    yield Table("task", numbers=[*SCOPE_COLUMNS, "rejected below"], rows=rows)
    error = mm.Estimate(**data["calibration_error_of_targets"])
    yield f"expected calibration error of the targets {with_interval(error)}"
    yield f"{data['out_of_scope']} texts out of scope, seed {data['seed']}, tasks {data['bank'][:16]}"
