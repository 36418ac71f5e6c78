"""`compare`: a model and what three lines of scikit-learn give on the same encoder, with label names and without.

With `--steps`, the model also takes gradient steps on every target's shots. With `--with setfit`, SetFit fine-tunes the
same encoder on them, a minute or two for each target. Labels have the same weight in its last step, a logistic
regression; all else is as the library has it.

Every row is answered with the targets' test labels struck out. Intervals are 95 % bootstrap intervals over sources (or
whatever a manifest's entry, such as `family`, groups targets by) and texts, answers of several seeds averaged first.
The penalty of the logistic regressions is chosen on tasks of the bank, as everything of ours is.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from safetensors.numpy import load, save

from experiments import german
from experiments.baselines.single_task import WORDS as TFIDF_WORDS
from experiments.baselines.single_task import tfidf_regression
from experiments.methods import adapted, answer_targets, by_metric, frozen_prototypes
from experiments.options import data_option, run_options, seeds_option
from experiments.plan import SETFIT
from experiments.problems import answer_problems, choose
from experiments.provenance import FORMAT
from experiments.setfit_rows import METHOD as SETFIT_ROW
from experiments.setfit_rows import SetFitRows, require_setfit
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.main import remember_run
from manymetrics.cli.output import Table, say, write_json
from manymetrics.cli.progress import Stages
from manymetrics.collect import load_tasks
from manymetrics.encode.encoder import Encoder
from manymetrics.episodes import draw_episodes
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method, frozen_regression, majority
from manymetrics.evaluation.scoring import Answered, mean_gain
from manymetrics.learn import SENTENCE, WORDS, learn_metrics, load_base
from manymetrics.model import MetricModel
from manymetrics.specialize.metric import TUNED
from manymetrics.store import write_atomically
from manymetrics.values import Episode, Examples, Floats, Task, TaskBank

OURS, OURS_MOVED = "ours", "ours, gradient steps on the shots"
RESULTS, ANSWERS = "comparison.json", "rows.safetensors"
PENALTIES = (1.0, 10.0, 100.0)  # scikit-learn's C, chosen on the bank for every row by itself
TUNING_TASKS, MOST_SHOTS = 20, 200  # of the bank, and in each of their problems
NUMBERED, SHUFFLED, GERMAN = "numbered", "shuffled", "in German"  # label names that say nothing, or say it strangely


@dataclass(frozen=True, eq=False)
class Row:
    """One method: what it answered on every target, for each seed."""

    method: str
    names: str  # what it was told of label names: off, on, zero examples, or what they were turned into
    answered: list[list[Answered]]  # (seeds, targets)


@click.command(short_help="A model against three lines of scikit-learn on the same encoder.")
@data_option
@seeds_option
@click.option("--by", default="source", show_default=True, help="Entry of manifest.json that groups targets.")
@click.option("--with", "peer", type=click.Choice([SETFIT]), help="Also run SetFit on the same encoder.")
@click.option(
    "--peer-seeds", type=click.IntRange(min=1), help="How many seeds of SetFit.  [default: as many as --seeds]"
)
@click.option("--steps", is_flag=True, help="Also take gradient steps on every target's shots.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Folder that `compare` wrote with other code: paired differences.",
)
@run_options
def compare(*, data: Path, out: Path, recipe: str, seeds: int, by: str, peer: str | None, peer_seeds: int | None,
            steps: bool, against: Path | None, workers: int | None, quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Learn from the tasks of --data once for each seed, and answer its targets with and without label names.

    Frozen rows use the encoder of the model. All that is finished is kept in --out.
    """
    remember_run(out)
    earlier = None if against is None else read_answers(against)
    past, new = load_tasks(data).split_off()
    models = []
    asked = f"python -m experiments compare --data {data.name} --recipe {recipe} --seeds {seeds} --by {by}"
    asked += " --steps" if steps else ""
    if peer:
        asked += f" --with {peer} --peer-seeds {peer_seeds or seeds}"
    with Stages(quiet=quiet) as stages:
        setfit = SetFitRows(out / "answers", peer_seeds or seeds, stages) if peer else None
        if setfit is not None:
            require_setfit(load_base(choose_recipe(recipe)))
        for seed in range(seeds):
            settings = choose_recipe(recipe, seed=seed)
            models.append(
                learn_metrics(past, settings, run=out / "run", workers=workers or os.cpu_count() or 1, report=stages)
            )
        rows = answer_all(models, new, few_shot_problems(past), setfit, steps=steps)
    results = {
        "format": FORMAT,
        "command": asked,
        "bank": data.name,
        "recipe_name": recipe,
        "data": past.fingerprint,
        "targets": len(new),
        "clusters": [[len(group) for group in model.clusters] for model in models],
        "rows": score(rows, groups_of(data, new, by)),
        "earlier": [] if earlier is None else score_against(rows, earlier, groups_of(data, new, by)),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / ANSWERS, save(pack_answers(rows)))
    write_atomically(out / RESULTS, json.dumps(results, indent=1).encode())
    write_json(results) if as_json else _show(results)
    if not quiet:
        say(f"Everything is in {out}.")


def few_shot_problems(bank: TaskBank) -> TaskBank:
    """Problems drawn from tasks of the bank, to choose a baseline's penalty on."""
    every = [bank.names[place] for place in np.random.default_rng(0).permutation(len(bank))]
    episodes = draw_episodes(bank, every[:TUNING_TASKS], shots=5, seed=0)
    return TaskBank(
        tuple(as_task(f"{place}", one) for place, one in enumerate(episodes) if len(one.support) <= MOST_SHOTS)
    )


def as_task(name: str, episode: Episode) -> Task:
    """A few-shot problem as a task: its support to learn from, its queries as test."""
    return Task(name, episode.support, test=episode.query)


def with_best_penalty(made: Callable[[float], Method], problems: TaskBank) -> Method:
    """A method with the penalty that answers the bank's problems best."""
    return made(choose(PENALTIES, made, problems))


def answer_all(models: Sequence[MetricModel], targets: TaskBank, problems: TaskBank,
               setfit: SetFitRows | None = None, *, steps: bool = False) -> list[Row]:  # fmt: skip
    """Every method's answers; what a baseline leaves open is chosen on `problems`.

    Where tasks share their labels, names tell them apart no better than the labels do, and are left out; networks do
    not use them.
    """
    encoder = next(metric.encoder for metric in models[0].metrics if metric.name in (SENTENCE, WORDS))
    rows = [Row("majority", "off", [answer_targets(majority, targets)])]
    speak = not models[0].predictor.labels and models[0].predictor.gradient is None
    for named in (False, True) if speak else (False,):
        told = "on" if named else "off"
        for method, made in baselines(encoder, problems, names=named).items():
            rows.append(Row(method, told, [answer_problems(made, targets)]))
        if setfit is not None:
            rows.append(Row(SETFIT_ROW, told, setfit.answers(encoder, targets, names=named)))
        one = [by_metric(metric, names=named) for model in models for metric in model.metrics if metric.kind == TUNED]
        if one:
            rows.append(Row("one metric for all", told, [answer_problems(method, targets) for method in one]))
        rows.append(Row(OURS, told, [answer_problems(adapted(model, names=named), targets) for model in models]))
        if steps:
            moved = [adapted(model, names=named, steps="auto") for model in models]
            rows.append(Row(OURS_MOVED, told, [answer_problems(method, targets) for method in moved]))
    if speak:
        rows += [Row(OURS, "zero examples", [answer_problems(_from_names_alone(model), targets) for model in models])]
    known = german.speaks(name for task in targets for name in task.label_names)
    for how in ([NUMBERED, SHUFFLED] + [GERMAN] * known) if speak else ():
        renamed = TaskBank(tuple(rename(task, how) for task in targets), targets.roles)
        rows.append(Row(OURS, how, [answer_problems(adapted(model), renamed) for model in models]))
    return rows


def baselines(encoder: Encoder, problems: TaskBank, *, names: bool) -> dict[str, Method]:
    """What people would do in three lines, as well as it can be done."""

    def regression(balanced: bool) -> Method:
        return with_best_penalty(lambda C: frozen_regression(encoder, balanced=balanced, names=names, C=C), problems)

    found = {
        "frozen encoder, prototypes": frozen_prototypes(encoder, names=names),
        "frozen encoder, logistic regression": regression(balanced=False),
        "frozen encoder, logistic regression, balanced": regression(balanced=True),
    }
    if not names:
        found["TF-IDF, logistic regression"] = with_best_penalty(lambda C: tfidf_regression(TFIDF_WORDS, C=C), problems)
    return found


def _from_names_alone(model: MetricModel) -> Method:
    def method(task: Task) -> list[str]:
        described = dict(zip(task.labels, task.label_names, strict=True))
        return [str(label) for label in model.adapt([], [], descriptions=described).predict(task.test.texts)]

    return method


def rename(task: Task, how: str) -> Task:
    """The same task under label names that say nothing, the wrong thing, or the right one in another language."""
    if how == NUMBERED:
        new = {label: f"label_{place}" for place, label in enumerate(task.labels)}
    elif how == GERMAN:
        told = [german.in_german(name) for name in task.label_names]
        new = {label: name if told.count(name) == 1 else label for label, name in zip(task.labels, told, strict=True)}
    else:
        rng = np.random.default_rng(len(task.labels))
        new = dict(zip(task.labels, rng.permutation(task.labels).tolist(), strict=True))

    def renamed(examples: Examples) -> Examples:
        return Examples(examples.texts, tuple(new[label] for label in examples.labels))

    return replace(task, train=renamed(task.train), valid=renamed(task.valid), test=renamed(task.test))


def groups_of(data: Path, targets: TaskBank, by: str) -> list[str]:
    """What each target is grouped by."""
    if by == "source":
        return [task.source for task in targets]
    entries = {entry["name"]: entry for entry in json.loads((data / "manifest.json").read_text(encoding="utf-8"))}
    return [str(entries[name].get(by, name)) for name in targets.names]


def score(rows: Sequence[Row], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Means with intervals, and how far the model is ahead of each row with the same names."""
    ours = {row.names: share_right(row.answered) for row in rows if row.method == OURS}
    off = ours["off"]
    found = []
    for row in rows:
        right = share_right(row.answered)
        against = off if row.method == OURS else ours[row.names]
        gains = [one - other for one, other in zip(against, right, strict=True)]
        balanced = np.mean([[one.balanced_accuracy for one in seed] for seed in row.answered])
        found.append(
            {
                "method": row.method,
                "names": row.names,
                "accuracy": asdict(mean_gain(right, sources=groups)),
                "balanced_accuracy": float(balanced),
                "ahead": asdict(mean_gain(gains if row.method != OURS else [-g for g in gains], sources=groups)),
            }
        )
    return found


def pack_answers(rows: Sequence[Row]) -> dict[str, Any]:
    """What every row answered, and the right answers, by method, label names, seed and task."""
    packed: dict[str, Any] = {}
    for row in rows:
        for seed, targets in enumerate(row.answered):
            for one in targets:
                packed[f"{row.method}|{row.names}|{seed}|{one.task}"] = np.stack([one.answers, one.labels])
    return packed


def read_answers(folder: Path) -> dict[tuple[str, str], list[list[Answered]]]:
    """The answers that `pack_answers` packed: by method and label names, (seeds, targets)."""
    if not (folder / ANSWERS).is_file():
        raise InputError(f"There are no answers in {folder}. Give the folder that `compare` wrote.")
    found: dict[tuple[str, str], dict[int, list[Answered]]] = {}
    for name, (answers, labels) in load((folder / ANSWERS).read_bytes()).items():
        method, names, seed, task = name.split("|", 3)
        found.setdefault((method, names), {}).setdefault(int(seed), []).append(Answered(task, answers, labels))
    return {key: [seeds[seed] for seed in sorted(seeds)] for key, seeds in found.items()}


def score_against(rows: Sequence[Row], earlier: Mapping[tuple[str, str], list[list[Answered]]],
                  groups: Sequence[str]) -> list[dict[str, Any]]:  # fmt: skip
    """How far each row is ahead of the same row of an earlier comparison, text by text."""
    found = []
    for row in rows:
        if (row.method, row.names) not in earlier:
            continue
        by_task = [{one.task: one for one in seed} for seed in earlier[row.method, row.names]]
        theirs = [[seed[one.task] for one in row.answered[0]] for seed in by_task]
        pairs = zip(share_right(row.answered), share_right(theirs), strict=True)
        balanced = [
            np.mean([[one.balanced_accuracy for one in seed] for seed in side]) for side in (row.answered, theirs)
        ]
        found.append(
            {
                "method": row.method,
                "names": row.names,
                "accuracy": asdict(mean_gain([ours - other for ours, other in pairs], sources=groups)),
                "balanced_accuracy": float(balanced[0] - balanced[1]),
            }
        )
    return found


def share_right(answered: Sequence[Sequence[Answered]]) -> list[Floats]:
    """Of each target, the share of seeds that answered each text rightly: (texts,)."""
    return [np.mean([one.answers == one.labels for one in target], axis=0) for target in zip(*answered, strict=True)]


def _show(results: Mapping[str, Any]) -> None:
    table = Table("method", "label names", numbers=["accuracy", "balanced accuracy", "ours ahead by"])
    for row in results["rows"]:
        ours = row["method"] == OURS
        ahead = "" if ours and row["names"] == "off" else points(row["ahead"], "against off: " if ours else "")
        cells = [points(row["accuracy"], plus=False), f"{100 * row['balanced_accuracy']:.1f}", ahead]
        table.add_row(row["method"], row["names"], *cells)
    table.write()
    for row in results["earlier"]:
        said = f"{row['method']}, label names {row['names']}, against the earlier answers"
        click.echo(f"{said}: {points(row['accuracy'])}, balanced accuracy {100 * row['balanced_accuracy']:+.1f}")
    click.echo(f"\n{results['command']}\ndata {results['data'][:12]}, {results['targets']} targets, clusters "
               f"{results['clusters']}")  # fmt: skip


def points(one: Mapping[str, float], said: str = "", *, plus: bool = True) -> str:
    """A number and its interval, in points."""
    sign = "+" if plus else ""
    return f"{said}{100 * one['value']:{sign}.1f} [{100 * one['low']:{sign}.1f}, {100 * one['high']:{sign}.1f}]"
