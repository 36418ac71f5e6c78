"""`steps`: what gradient steps on the shots are worth on tasks of a bank, by what is trained and how it is used.

A fold of the sources is held out, a model learns from the others, and few-shot problems of the fold's tasks are
answered without steps and with them: factors of the upper half of the layers or of all, with several weights in the
task's metric, used always or only where cross-fitting gains more than a margin. No target is involved. The settings of
`classifier.own_steps` are chosen by this table.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from safetensors.numpy import load, save
from scipy.special import softmax

from experiments.markdown import percent, points
from experiments.methods import blind
from experiments.options import Results, data_option, experiment, folds_option, recipe_option
from experiments.problems import as_task, assign_to_folds, source_of
from manymetrics.classifier.classifier import adapt
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.own_steps import (
    AUTO_STEPS,
    CROSS_FITTING,
    MIN_GAIN,
    OWN_WEIGHT,
    TRAINING,
    add_own_metric,
    cross_fit,
    fit_some,
    train_on_some,
)
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.engine.code import code_fingerprint
from manymetrics.episodes import draw_episode
from manymetrics.evaluation.scoring import calibration_error, mean_gain
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import learn_metrics, past_tasks
from manymetrics.model import MetricModel
from manymetrics.store import Run
from manymetrics.values import Floats, Job, Task, TaskBank, rng_for

STAGE = "steps"
FOLDS, QUERIES = 5, 200
UPPER, ALL = "upper half of the layers", "all layers"
TRAININGS = {UPPER: CROSS_FITTING, ALL: TRAINING}
WEIGHTS = (0.5, 0.7, 1.0)  # of the moved encoder in the task's metric
MARGINS = (-np.inf, -0.05, 0.0, 0.05)  # that the gain of cross-fitting exceeds where steps are used
Answers = Mapping[str, Floats]  # of one problem


def show(results: Results) -> Iterator[str | Table]:
    """A row for each setting."""
    numbers = ["used", "accuracy", "over none", "calibration error"]
    table = Table("trained", "weight", "used if gain above", numbers=numbers)
    for row in results["rows"]:
        chosen = (row["layers"], row["weight"], row["margin"]) == (ALL, OWN_WEIGHT, MIN_GAIN)
        name = "no steps" if row["layers"] is None else row["layers"] + (" (in use)" if chosen else "")
        margin = "always" if row["margin"] is None else f"{row['margin']:+.2f}"
        scores = [percent(row["accuracy"]), points(row["gain"]), percent(row["calibration_error"])]
        table.add_row(name, f"{row['weight']:.1f}", margin, row["used"], *scores)
    yield table
    yield f"{results['problems']} problems"


@experiment(
    "steps",
    data_option,
    recipe_option,
    folds_option(FOLDS),
    click.option("--shots", default="1+20", show_default=True, help="Examples of each label, and further ones."),
    file="steps.json", show=show, short_help="Gradient steps on the shots of bank tasks, by setting.",
)  # fmt: skip
def steps(*, data: Path, out: Path, recipe: str, folds: int, shots: str, **how: Any) -> Results:
    """Learn from all sources but a fold's, and take steps on few-shot problems of the fold's tasks.

    Intervals are 95 % bootstrap intervals over sources and texts. All that is finished is kept in --out.
    """
    bank = past_tasks(data)
    bank = bank.only(sorted(bank.names)).without_tests()
    asked, settings = assign_to_folds(bank, folds, seed=0)[0], choose_recipe(recipe)
    past = bank.only([name for name in bank.names if name not in asked])
    model = learn_metrics(past, settings, run=out / "run", **how)
    problems = draw_step_problems(bank, asked, shots)
    with Run.open(out / "answers", settings.as_toml()) as run:
        answers = [stored_answers(run, model, problem) for problem in problems]
    rows = score(answers, [source_of(problem) for problem in problems])
    return {"data": bank.fingerprint, "problems": len(problems), "rows": rows}


def draw_step_problems(bank: TaskBank, names: Sequence[str], shots: str) -> list[Task]:
    """One problem of each task; `shots` are the examples of each label and the further ones, as in 1+20."""
    each, _, further = shots.partition("+")
    drawn = []
    for task in (bank[name] for name in names):
        episode = draw_episode(task, int(each), int(further or 0), rng_for(0, task.content), queries=QUERIES)
        drawn.append(as_task(task.name, episode, source=task.source))
    return [problem for problem in drawn if len(problem.test)]


def stored_answers(run: Run, model: MetricModel, problem: Task) -> Answers:
    """The answers to a problem, and the right ones; computed once."""
    job = Job(problem.name, {"problem": problem.fingerprint, "model": model.fingerprint})
    key = Run.key(STAGE, job, code_fingerprint(answer_problem))
    payload = run.get(STAGE, key, job)
    if payload is None:
        payload = save(answer_problem(model, next(iter(blind(TaskBank((problem,)))))))
        run.put(STAGE, key, job, payload)
    return {**load(payload), "labels": label_numbers(problem, problem.test.labels)}


def answer_problem(model: MetricModel, problem: Task) -> dict[str, Floats]:
    """Logits of the test texts without steps and with each setting, and what cross-fitting says."""
    support = support_set(problem.train.texts, problem.train.labels)
    classifier, texts = adapt(model.predictor, support), EmbeddedTexts(problem.test.texts)
    shots, fitted = np.arange(len(support)), cross_fit(classifier, AUTO_STEPS, lambda step, total: None)
    answers = {
        "unmoved": classifier.head.logits(texts),
        "temperatures": np.array([classifier.temperature, fitted.temperature]),
        "gain": np.array([fitted.gain]),
    }
    for name, training in TRAININGS.items():
        tensors = train_on_some(classifier, shots, training, lambda step, total: None)
        for weight in WEIGHTS:
            moved = add_own_metric(classifier, tensors, weight)
            answers[f"{name}|{weight}"] = fit_some(moved, shots).logits(texts)
    return answers


def score(answers: Sequence[Answers], sources: Sequence[str]) -> list[dict[str, Any]]:
    """Each setting: its gain over no steps, how often steps are used, and the calibration error."""
    settings = [(name, weight, margin) for name in TRAININGS for weight in WEIGHTS for margin in MARGINS]
    return [_row(answers, sources, None, 0.0, np.inf), *(_row(answers, sources, *setting) for setting in settings)]


def _row(answers: Sequence[Answers], sources: Sequence[str], name: str | None, weight: float,
         margin: float) -> dict[str, Any]:  # fmt: skip
    used = [float(one["gain"][0]) > margin for one in answers]
    logits = [one[f"{name}|{weight}"] if steps else one["unmoved"] for one, steps in zip(answers, used, strict=True)]
    correct = [_correct(values, one) for values, one in zip(logits, answers, strict=True)]
    gains = [mine - _correct(one["unmoved"], one) for mine, one in zip(correct, answers, strict=True)]
    probabilities = [
        softmax(values / one["temperatures"][int(steps)], axis=1)
        for values, one, steps in zip(logits, answers, used, strict=True)
    ]
    confidences = np.concatenate([values.max(axis=1) for values in probabilities])
    error = calibration_error(confidences, np.concatenate(correct) > 0).value
    return {
        "layers": name, "weight": weight, "margin": None if np.isinf(margin) else margin, "used": sum(used),
        "accuracy": float(np.mean([values.mean() for values in correct])),
        "gain": vars(mean_gain(gains, sources=sources)), "calibration_error": error,
    }  # fmt: skip


def _correct(logits: Floats, one: Answers) -> Floats:
    correct: Floats = (logits.argmax(axis=1) == one["labels"]).astype(np.float64)
    return correct
