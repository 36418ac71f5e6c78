"""`compare`: a model and what three lines of scikit-learn give on the same encoder, with label names and without.

With `--steps`, the model also takes gradient steps on every target's shots. With `--with setfit`, SetFit fine-tunes the
same encoder on them, a minute or two for each target. Labels have the same weight in its last step, a logistic
regression; all else is as the library has it.

Every row is answered with the targets' test labels struck out. Intervals are 95 % bootstrap intervals over sources (or
whatever a manifest's entry, such as `family`, groups targets by) and texts, answers of several seeds averaged first.
The penalty of the logistic regressions is chosen on tasks of the bank, as everything of ours is.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from safetensors.numpy import load, save

from experiments.baselines.setfit import METHOD as SETFIT_ROW
from experiments.baselines.setfit import answer_with_setfit, require_setfit
from experiments.baselines.single_task import WORDS as TFIDF_WORDS
from experiments.baselines.single_task import tfidf_regression
from experiments.intervals import Seeds, balanced_accuracy, gain_in_accuracy, scores
from experiments.label_names import GERMAN, NUMBERED, SHUFFLED, can_be_german, rename
from experiments.markdown import percent, points, share, signed
from experiments.methods import adapted, answer_targets, by_metric, frozen_prototypes
from experiments.options import PATH, Results, data_option, experiment, recipe_option, seeds_option, steps_option
from experiments.problems import answer_problems, choose, tuning_problems
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method, frozen_regression, majority
from manymetrics.evaluation.scoring import Answered
from manymetrics.learn import SENTENCE, WORDS, learn_metrics, load_base
from manymetrics.model import MetricModel
from manymetrics.specialize.cluster_metrics import SHARED
from manymetrics.store import write_atomically
from manymetrics.values import Task, TaskBank

OURS, OURS_WITH_STEPS = "ours", "ours, gradient steps on the shots"
OFF, ON = "off", "on"  # what a row was told of label names
SETFIT = "setfit"
ANSWERS = "rows.safetensors"
PENALTIES = (1.0, 10.0, 100.0)  # scikit-learn's C, chosen on the bank for every row by itself

SetFit = Callable[..., list[list[Answered]]]  # encoder, targets, whether names are told -> (seeds, targets)


@dataclass(frozen=True, eq=False)
class Row:
    """One method: what it answered on every target, for each seed."""

    method: str
    names: str  # what it was told of label names: off, on, zero examples, or what they were turned into
    answered: Seeds


def show(results: Results) -> Iterator[str | Table]:
    """The rows, and how far ours is ahead of each."""
    table = Table("method", "label names", numbers=["accuracy", "balanced accuracy", "ours ahead by"])
    for row in results["rows"]:
        ahead = points(row["ahead"]) if (row["method"], row["names"]) != (OURS, OFF) else ""
        against = "against off: " if ahead and row["method"] == OURS else ""
        table.add_row(row["method"], row["names"], share(row["accuracy"]), percent(row["balanced_accuracy"]),
                      against + ahead)  # fmt: skip
    yield table
    for row in results["earlier"]:
        gains = f"{points(row['accuracy'])}, balanced accuracy {signed(row['balanced_accuracy'])}"
        yield f"{row['method']}, label names {row['names']}, against the earlier answers: {gains}"
    yield f"{results['targets']} targets, clusters {results['clusters']}"


@experiment(
    "compare",
    data_option,
    recipe_option,
    seeds_option,
    click.option("--by", default="source", show_default=True, help="Entry of manifest.json that groups targets."),
    steps_option,
    click.option("--with", "peer", type=click.Choice([SETFIT]), help="Also run SetFit on the same encoder."),
    click.option(
        "--peer-seeds", type=click.IntRange(min=1), help="How many seeds of SetFit.  [default: as many as --seeds]"
    ),
    click.option("--against", type=PATH, help="Folder that `compare` wrote with other code: paired differences."),
    file="comparison.json", show=show, short_help="A model against three lines of scikit-learn on the same encoder.",
)  # fmt: skip
def compare(*, data: Path, out: Path, recipe: str, seeds: int, by: str, peer: str | None, peer_seeds: int | None,
            steps: bool, against: Path | None, **how: Any) -> Results:  # fmt: skip
    """Learn from the tasks of --data once for each seed, and answer its targets with and without label names.

    Frozen rows use the encoder of the model. All that is finished is kept in --out.
    """
    earlier = {} if against is None else read_answers(against)
    past, new = load_tasks(data).split_off()
    setfit = None
    if peer:
        require_setfit(load_base(choose_recipe(recipe)))
        setfit = partial(answer_with_setfit, seeds=peer_seeds or seeds, out=out / "answers", report=how["report"])
    models = [learn_metrics(past, choose_recipe(recipe, seed=seed), run=out / "run", **how) for seed in range(seeds)]
    rows = answer_all(models, new, tuning_problems(past), setfit, steps=steps)
    groups = groups_of(data, new, by)
    write_atomically(out / ANSWERS, save(pack_answers(rows)))
    return {
        "data": past.fingerprint,
        "targets": len(new),
        "clusters": [[len(group) for group in model.clusters] for model in models],
        "rows": score(rows, groups),
        "earlier": score_against(rows, earlier, groups),
    }


def base_encoder(model: MetricModel) -> Encoder:
    """The frozen encoder of a model."""
    return next(metric.encoder for metric in model.metrics if metric.name in (SENTENCE, WORDS))


def answer_all(models: Sequence[MetricModel], targets: TaskBank, problems: TaskBank, setfit: SetFit | None = None, *,
               steps: bool = False) -> list[Row]:  # fmt: skip
    """Every method's answers; what a baseline leaves open is chosen on `problems`.

    Where tasks share their labels, names tell them apart no better than the labels do, and are left out; networks do
    not use them.
    """
    rows = [Row("majority", OFF, [answer_targets(majority, targets)])]
    use_names = not models[0].predictor.labels and models[0].predictor.gradient is None
    for names in (False, True) if use_names else (False,):
        rows += _answer(models, targets, problems, setfit, names=names, steps=steps)
    if use_names:
        rows.append(_ours("zero examples", [_from_names_alone(model) for model in models], targets))
        german = can_be_german(name for task in targets for name in task.label_names)
        for how in (NUMBERED, SHUFFLED, *((GERMAN,) if german else ())):
            renamed = TaskBank(tuple(rename(task, how) for task in targets), targets.roles)
            rows.append(_ours(how, [adapted(model) for model in models], renamed))
    return rows


def _answer(models: Sequence[MetricModel], targets: TaskBank, problems: TaskBank, setfit: SetFit | None, *,
            names: bool, steps: bool) -> list[Row]:  # fmt: skip
    """The rows with label names, or those without."""
    told, encoder = ON if names else OFF, base_encoder(models[0])
    rows = [
        Row(method, told, [answer_problems(made, targets)])
        for method, made in baselines(encoder, problems, names=names).items()
    ]
    if setfit is not None:
        rows.append(Row(SETFIT_ROW, told, setfit(encoder, targets, names=names)))
    shared = [metric for model in models for metric in model.metrics if metric.name == SHARED]
    if shared:
        prototypes = [by_metric(metric, names=names) for metric in shared]
        rows.append(Row("one metric for all", told, [answer_problems(method, targets) for method in prototypes]))
        regressions = [balanced_regression(metric.encoder, problems, names=names) for metric in shared]
        answered = [answer_problems(method, targets) for method in regressions]
        rows.append(Row("one metric for all, logistic regression, balanced", told, answered))
    rows.append(_ours(told, [adapted(model, names=names) for model in models], targets))
    if steps:
        with_steps = [adapted(model, names=names, steps="auto") for model in models]
        rows.append(Row(OURS_WITH_STEPS, told, [answer_problems(method, targets) for method in with_steps]))
    return rows


def _ours(told: str, methods: Sequence[Method], targets: TaskBank) -> Row:
    return Row(OURS, told, [answer_problems(method, targets) for method in methods])


def baselines(encoder: Encoder, problems: TaskBank, *, names: bool) -> dict[str, Method]:
    """What people would do in three lines, as well as it can be done."""
    plain = with_best_penalty(lambda C: frozen_regression(encoder, balanced=False, names=names, C=C), problems)
    found = {
        "frozen encoder, prototypes": frozen_prototypes(encoder, names=names),
        "frozen encoder, logistic regression": plain,
        "frozen encoder, logistic regression, balanced": balanced_regression(encoder, problems, names=names),
    }
    if not names:
        found["TF-IDF, logistic regression"] = with_best_penalty(lambda C: tfidf_regression(TFIDF_WORDS, C=C), problems)
    return found


def balanced_regression(encoder: Encoder, problems: TaskBank, *, names: bool) -> Method:
    """A balanced logistic regression on an encoder, its penalty chosen on the problems."""
    return with_best_penalty(lambda C: frozen_regression(encoder, balanced=True, names=names, C=C), problems)


def with_best_penalty(made: Callable[[float], Method], problems: TaskBank) -> Method:
    """A method with the penalty that answers the bank's problems best."""
    return made(choose(PENALTIES, made, problems))


def _from_names_alone(model: MetricModel) -> Method:
    def method(task: Task) -> list[str]:
        described = dict(zip(task.labels, task.label_names, strict=True))
        return [str(label) for label in model.adapt([], [], descriptions=described).predict(task.test.texts)]

    return method


def groups_of(data: Path, targets: TaskBank, by: str) -> list[str]:
    """What each target is grouped by."""
    if by == "source":
        return [task.source for task in targets]
    entries = {entry["name"]: entry for entry in json.loads((data / "manifest.json").read_text(encoding="utf-8"))}
    return [str(entries[name].get(by, name)) for name in targets.names]


def score(rows: Sequence[Row], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Means with intervals, and how far the model is ahead of each row with the same names.

    Of the model told otherwise, `ahead` is its gain over the model without names.
    """
    ours = {row.names: row.answered for row in rows if row.method == OURS}
    found = []
    for row in rows:
        pair = (row.answered, ours[OFF]) if row.method == OURS else (ours[row.names], row.answered)
        ahead = vars(gain_in_accuracy(*pair, groups))
        found.append({"method": row.method, "names": row.names, **scores(row.answered, groups), "ahead": ahead})
    return found


def pack_answers(rows: Sequence[Row]) -> dict[str, Any]:
    """What every row answered, and the right answers, by method, label names, seed and task."""
    packed: dict[str, Any] = {}
    for row in rows:
        for seed, targets in enumerate(row.answered):
            for one in targets:
                packed[f"{row.method}|{row.names}|{seed}|{one.task}"] = np.stack([one.answers, one.labels])
    return packed


def read_answers(folder: Path) -> dict[tuple[str, str], Seeds]:
    """The answers that `pack_answers` packed, by method and label names."""
    if not (folder / ANSWERS).is_file():
        raise InputError(f"There are no answers in {folder}. Give the folder that `compare` wrote.")
    found: dict[tuple[str, str], dict[int, list[Answered]]] = {}
    for name, (answers, labels) in load((folder / ANSWERS).read_bytes()).items():
        method, names, seed, task = name.split("|", 3)
        found.setdefault((method, names), {}).setdefault(int(seed), []).append(Answered(task, answers, labels))
    return {key: [seeds[seed] for seed in sorted(seeds)] for key, seeds in found.items()}


def score_against(rows: Sequence[Row], earlier: Mapping[tuple[str, str], Seeds],
                  groups: Sequence[str]) -> list[dict[str, Any]]:  # fmt: skip
    """How far each row is ahead of the same row of an earlier comparison, text by text."""
    found = []
    for row in rows:
        if (row.method, row.names) not in earlier:
            continue
        by_task = [{one.task: one for one in seed} for seed in earlier[row.method, row.names]]
        theirs = [[seed[one.task] for one in row.answered[0]] for seed in by_task]
        found.append({
            "method": row.method,
            "names": row.names,
            "accuracy": vars(gain_in_accuracy(row.answered, theirs, groups)),
            "balanced_accuracy": balanced_accuracy(row.answered) - balanced_accuracy(theirs),
        })  # fmt: skip
    return found
