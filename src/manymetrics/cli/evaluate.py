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
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, name_tasks, say, write_result
from manymetrics.cli.progress import Stages

OF_MODEL, SCOPE, LEAVE_ONE_OUT = "evaluate MODEL", "--scope", "--leave-one-out"
OPTIONS_OF = {  # what only some kinds of evaluation use
    OF_MODEL: {"targets", "target", "steps"},
    SCOPE: {"targets", "target", "reject", "reject_share", "seed"},
    LEAVE_ONE_OUT: {"bank", "shots", "sources", "against", "run", "recipe", "encoder", "pooling", "workers", "seed"},
}
SCOPE_COLUMNS = {
    "AUROC": "auroc",
    "similar tasks": "auroc_similar_tasks",
    "accepted": "in_scope_kept",
    "accuracy": "in_scope_accuracy",
    "without rejection": "accuracy_without_rejection",
    "out of scope rejected": "out_of_scope_recall",
    "out of scope at 0.9": "out_of_scope_answered_surely",
}


@options.command(
    "manymetrics evaluate model --targets bank",
    "manymetrics evaluate model --targets bank --target books --target baby.t2 --json",
    "manymetrics evaluate model --targets bank --scope --reject-share 0.05",
    "manymetrics evaluate --leave-one-out --bank bank --run runs/held-out --sources 10",
    "manymetrics evaluate --leave-one-out --bank bank --against starter    # is the bank large enough?",
)
@click.argument("model", required=False)
@options.group(
    "Target tasks",
    options.folder("--targets", help="Folder of the target tasks."),
    options.name("--target", multiple=True, help="Use only this task, or all tasks with this prefix. Can be repeated."),
    options.steps,
)
@options.group(
    "Scope",
    options.flag("--scope", help="Evaluate the rejection of texts that are out of scope."),
    options.rejection,
)
@options.group(
    "Leave one out",
    options.flag("--leave-one-out", help="Instead of MODEL, evaluate models learned without each source of --bank."),
    options.folder("--bank", help="Folder of tasks for --leave-one-out."),
    options.count("--shots", help="Number of examples per label of a held-out task.", default=5, show_default=True),
    options.count("--sources", help="Number of sources to hold out, drawn at random.  [default: all]"),
    options.option("--against", metavar="MODEL", help="Compare with this model too: a folder, or starter."),
    options.run,
    options.recipe,
    options.encoder,
    options.workers,
)
@options.group("Output", options.seed, options.quiet, options.json_option)
def evaluate(*, scope: bool, leave_one_out: bool, quiet: bool, as_json: bool, **settings: Any) -> None:
    """Evaluate a model on tasks with test texts.

    MODEL, by default the starter model, is adapted to the train examples of each target task and classifies its test
    texts. Target tasks are those marked as targets in manifest.json or, if no task is marked, all tasks with test
    texts. The first table shows the number of labels, of train examples (shots) and of test texts; accuracy, balanced
    accuracy and macro-F1; and the accuracy of always answering with the most frequent label (majority). The second
    table shows the baselines: balanced logistic regression on the embeddings of the frozen encoder, and on those of the
    encoder shared by all tasks. The lines below it compare the model with each baseline on the same texts. Intervals
    are 95 % bootstrap intervals over texts; those of comparisons are over tasks and texts.

    With --scope, texts of other tasks and gibberish are classified too. A text is rejected if its probability of being
    in scope is below 0.5, unless --reject or --reject-share sets another threshold. The columns are:

    \b
      AUROC: probability that a text of the task is rated more in scope than a text out of scope
      similar tasks: AUROC against texts of the three most similar tasks of the folder only
      accepted: share of the task's texts that are not rejected
      accuracy: share of the task's texts that are answered correctly
      without rejection: accuracy if no text were rejected
      out of scope rejected: share of the texts out of scope that are rejected
      out of scope at 0.9: share of the texts out of scope that get a label with probability 0.9 or more

    With --leave-one-out, each source of --bank is held out in turn. A source is a client or a product, as named in
    manifest.json; otherwise each task is one. A model is learned from the other sources, and evaluated on the held-out
    tasks with --shots examples per label. This learns one model per source. Intervals are over sources and texts.
    """  # noqa: D301 - click keeps the lines behind \b
    if leave_one_out and scope:
        raise click.UsageError("Give --leave-one-out or --scope, not both.")
    _refuse_options_of_others(LEAVE_ONE_OUT if leave_one_out else SCOPE if scope else OF_MODEL)
    evaluation = _leave_one_out(**settings) if leave_one_out else _of_model(scope=scope, **settings)
    with Stages(quiet=quiet) as stages:
        data = evaluation(report=stages).as_dict()
    stages.sum_up()
    write_result(data, _describe_scope(data) if scope else describe_evaluation(data), as_json=as_json)


def _refuse_options_of_others(kind: str) -> None:
    """Refuse options that were given but have no effect in this kind of evaluation."""
    context = click.get_current_context()
    for parameter in context.command.params:
        kinds = [other for other, names in OPTIONS_OF.items() if parameter.name in names]
        given = context.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.COMMANDLINE
        if given and kinds and kind not in kinds:
            raise click.UsageError(f"{parameter.opts[0]} is an option of {' and '.join(kinds)}. Leave it out.")


def _of_model(*, scope: bool, model: str | None, targets: Path | None, target: tuple[str, ...], steps: int | str,
              reject: float | None, reject_share: float | None, seed: int | None,
              **_: Any) -> Callable[..., Any]:  # fmt: skip
    if targets is None:
        raise click.UsageError("Give --targets FOLDER, or --leave-one-out and --bank FOLDER.")
    tasks = mm.evaluation.choose_targets(targets, *target)
    learned = open_model(model or options.STARTER)
    if seen := sorted(set(tasks.names) & set(learned.clusters.names)):
        names = name_tasks(seen)
        say(f"warning: the model was learned from tasks of the same name ({names}), so their scores are too high.")
    if not scope:
        return partial(mm.evaluate, learned, tasks, steps=steps)
    return partial(mm.evaluate_scope, learned, tasks, targets, reject=reject, reject_share=reject_share, seed=seed or 0)


def _leave_one_out(*, model: str | None, bank: Path | None, run: Path | None, recipe: str, against: str | None,
                   **settings: Any) -> Callable[..., Any]:  # fmt: skip
    if model is not None or bank is None:
        raise click.UsageError("--leave-one-out learns its own models. Give --bank FOLDER and no MODEL.")
    remember_run(run)
    chosen = choose_recipe(recipe, **{name: settings[name] for name in ("encoder", "pooling", "seed")})
    other = None if against is None else open_model(against)
    numbers = {name: settings[name] for name in ("shots", "sources", "workers")}
    return partial(mm.evaluate_leave_one_out, bank, chosen, run=run, against=other, **numbers)


def describe_evaluation(data: dict[str, Any]) -> Iterator[str | Table]:
    """An evaluation, as it is written as JSON, in tables and lines."""
    counts, scores = ("labels", "shots", "texts"), ("accuracy", "balanced_accuracy", "macro_f1")
    rows = [
        [row["task"], *(row[count] for count in counts), *(f"{row[score]:.1%}" for score in (*scores, "majority"))]
        for row in data["targets"]
    ]
    rows.append([])
    for name in ("mean", "majority"):
        rows.append([name, "", "", "", *(_share(data[name][score]) for score in scores)])
    yield Table("task", numbers=[*counts, "accuracy", "balanced accuracy", "macro-F1", "majority"], rows=rows)
    yield ""
    rows = [[row["method"], _share(row["accuracy"]), _share(row["balanced_accuracy"])] for row in data["baselines"]]
    yield Table("baseline", numbers=["accuracy", "balanced accuracy"], rows=rows)
    yield ""
    for row in data["baselines"]:
        yield f"manymetrics over {row['method']}: {_gain(row['gain'])}"
        yield f"  in balanced accuracy: {_gain(row['balanced_gain'])}"
    yield f"Expected calibration error: {_share(data['calibration_error'])}"
    if fallbacks := sum(row["fallback"] is not None for row in data["targets"]):
        say(f"No cluster fits {fallbacks} of the {len(data['targets'])} tasks; these were answered by the fallback.")


def _describe_scope(data: dict[str, Any]) -> Iterator[str | Table]:
    rows = [
        [name, *(f"{row[column]:.1%}" for column in SCOPE_COLUMNS.values()), f"{row['threshold']:.3f}"]
        for name, row in (*((row["task"], row) for row in data["tasks"]), ("all", data["targets"]))
    ]
    yield Table("task", numbers=[*SCOPE_COLUMNS, "rejected below"], rows=[*rows[:-1], [], rows[-1]])
    yield f"Expected calibration error on the texts in scope: {_share(data['calibration_error_of_targets'])}"
    yield f"{data['out_of_scope']:,} texts out of scope, seed {data['seed']}, bank fingerprint {data['bank'][:16]}"


def _share(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.1%} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _gain(gain: dict[str, Any]) -> str:
    value, low, high = (100 * gain[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]: {gain['verdict']}"
