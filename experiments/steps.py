"""`steps`: what gradient steps on the shots are worth on tasks of a bank, by what is trained and how it is used.

Few-shot problems of tasks that a model was not learned from are answered without steps and with them: by how factors
are trained, by how the shots are cross-fitted, used always or only where cross-fitting gains more than a margin.
No target is involved. The settings of `classifier.own_steps` are chosen by this table.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from safetensors.numpy import load, save
from scipy.special import softmax

from experiments.markdown import percent, points
from experiments.methods import blind
from experiments.options import Results, data_option, experiment, folds_option
from experiments.problems import as_task, assign_to_folds, source_of
from manymetrics.classifier.classifier import Classifier, adapt
from manymetrics.classifier.examples import support_set
from manymetrics.classifier.own_steps import (
    add_own_metric,
    cross_fit,
    fit_some,
    train_on_some,
)
from manymetrics.cli.output import Table
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.encode.settings import LowRankTraining
from manymetrics.engine import Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.episodes import draw_episode
from manymetrics.evaluation.scoring import calibration_error, mean_gain
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import past_tasks
from manymetrics.model import MetricModel, load_model
from manymetrics.store import Run
from manymetrics.values import Floats, Job, Task, TaskBank, rng_for

STAGE = "steps"
FOLDS, QUERIES = 4, 200
TRAININGS = {
    "10 steps, all layers": LowRankTraining(steps=10, frozen_share=0.0),
    "8 steps, all layers": LowRankTraining(steps=8, frozen_share=0.0),
    "10 steps, upper nine": LowRankTraining(steps=10, frozen_share=0.25),
}
CROSS_FITTINGS = {
    "10 steps, upper three": LowRankTraining(steps=10, frozen_share=0.75),
    "6 steps, upper three": LowRankTraining(steps=6, frozen_share=0.75),
}
WEIGHTS = (0.5, 0.7, 0.85)  # of the moved encoder in the task's metric
MARGINS = (-np.inf, -0.2, 0.0, 0.05)  # that the gain of cross-fitting exceeds where steps are used
Answers = Mapping[str, Floats]  # of one problem


class Setting(NamedTuple):
    """How steps are taken and used; as it is by default, none are."""

    training: str = "no steps"
    cross_fitting: str = ""
    weight: float = 0.0  # of the moved encoder
    margin: float = np.inf

    @property
    def moved(self) -> str:
        """The name of the logits with steps."""
        return f"{self.training}|{self.weight}"


def show(results: Results) -> Iterator[str | Table]:
    """A row for each setting."""
    numbers = ["weight", "used", "accuracy", "over none", "ECE", "seconds"]
    table = Table("trained", "cross-fitted", "margin", numbers=numbers)
    for row in results["rows"]:
        margin = "always" if row["margin"] is None else f"{row['margin']:+.2f}"
        scores = [percent(row["accuracy"]), points(row["gain"]), percent(row["calibration_error"])]
        table.add_row(row["training"], row["cross_fitting"], margin, f"{row['weight']:.2f}", row["used"], *scores,
                      f"{row['seconds']:.1f}")  # fmt: skip
    yield table
    yield f"{results['problems']} problems, model {results['model'][:12]}"


@experiment(
    "steps",
    data_option,
    click.option("--model", default="starter", show_default=True, help="A saved model. Its tasks give no problems."),
    folds_option(FOLDS),
    click.option("--shots", default="1+20", show_default=True, help="Examples of each label, and further ones."),
    file="steps.json", show=show, short_help="Gradient steps on the shots of bank tasks, by setting.",
)  # fmt: skip
def steps(*, data: Path, model: str, out: Path, folds: int, shots: str, report: Callable[[Progress], None],
          **_: Any) -> Results:  # fmt: skip
    """Take steps on few-shot problems of a fold of the tasks that the model was not learned from.

    Intervals are 95 % bootstrap intervals over sources and texts. Seconds are of the processor, a mean over problems.
    All that is finished is kept in --out.
    """
    loaded, bank = load_model(model), past_tasks(data)
    bank = bank.only(sorted(set(bank.names) - set(loaded.clusters.names))).without_tests()
    problems = draw_step_problems(bank, assign_to_folds(bank, folds, seed=0)[0], shots)
    answers, started = [], time.process_time()
    report(Progress(STAGE, 0, len(problems), 0.0))
    with Run.open(out / "answers", loaded.fingerprint) as run:
        for number, problem in enumerate(problems):
            answers.append(stored_answers(run, loaded, problem))
            report(Progress(STAGE, number + 1, len(problems), time.process_time() - started))
    rows = score(answers, [source_of(problem) for problem in problems])
    return {"data": bank.fingerprint, "problems": len(problems), "model": loaded.fingerprint, "rows": rows}


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
    """Logits of the test texts without steps and with each training, and what each cross-fitting says."""
    classifier = adapt(model.predictor, support_set(problem.train.texts, problem.train.labels))
    shots, texts = np.arange(len(classifier.support)), EmbeddedTexts(problem.test.texts)
    answers = {"unmoved": classifier.head.logits(texts), "temperature": np.array(classifier.temperature)}
    for name, training in CROSS_FITTINGS.items():
        started = time.process_time()
        fitted = cross_fit(classifier, training)
        spent = time.process_time() - started
        answers[f"cross-fitted|{name}"] = np.array([fitted.gain, fitted.temperature, spent])
    for name, training in TRAININGS.items():
        started = time.process_time()
        tensors = train_on_some(classifier, shots, training)
        answers |= _answer_moved(classifier, texts, name, tensors, time.process_time() - started)
    return answers


def _answer_moved(classifier: Classifier, texts: EmbeddedTexts, name: str, tensors: Mapping[str, Floats],
                  seconds: float) -> dict[str, Floats]:  # fmt: skip
    answers: dict[str, Floats] = {f"seconds|{name}": np.array(seconds)}
    for weight in WEIGHTS:
        head = fit_some(add_own_metric(classifier, tensors, weight), np.arange(len(classifier.support)))
        answers[Setting(name, weight=weight).moved] = head.logits(texts)
    return answers


def score(answers: Sequence[Answers], sources: Sequence[str]) -> list[dict[str, Any]]:
    """Each setting: its gain over no steps, how often steps are used, the calibration error and the time."""
    settings = itertools.starmap(Setting, itertools.product(TRAININGS, CROSS_FITTINGS, WEIGHTS, MARGINS))
    return [_row(answers, sources, setting) for setting in (Setting(), *settings)]


def _row(answers: Sequence[Answers], sources: Sequence[str], setting: Setting) -> dict[str, Any]:
    none = np.array([-np.inf, 1.0, 0.0])  # gain, temperature, seconds
    fitted = [one.get(f"cross-fitted|{setting.cross_fitting}", none) for one in answers]
    used = [bool(gain > setting.margin) for gain, _, _ in fitted]
    pairs = list(zip(answers, used, strict=True))
    logits = [one[setting.moved] if steps else one["unmoved"] for one, steps in pairs]
    correct = [_correct(values, one) for values, one in zip(logits, answers, strict=True)]
    gains = [moved - _correct(one["unmoved"], one) for moved, one in zip(correct, answers, strict=True)]
    temperatures = [
        found[1] if steps else one["temperature"] for found, (one, steps) in zip(fitted, pairs, strict=True)
    ]
    probabilities = [softmax(values / scale, axis=1) for values, scale in zip(logits, temperatures, strict=True)]
    confidences = np.concatenate([values.max(axis=1) for values in probabilities])
    training_seconds = [steps * float(one.get(f"seconds|{setting.training}", 0.0)) for one, steps in pairs]
    seconds = np.array([found[2] for found in fitted]) + training_seconds
    return {
        **setting._asdict(),
        "margin": None if np.isinf(setting.margin) else setting.margin,
        "used": sum(used),
        "accuracy": float(np.mean([values.mean() for values in correct])),
        "gain": vars(mean_gain(gains, sources=sources)),
        "calibration_error": calibration_error(confidences, np.concatenate(correct) > 0).value,
        "seconds": float(np.mean(seconds)),
    }


def _correct(logits: Floats, one: Answers) -> Floats:
    correct: Floats = (logits.argmax(axis=1) == one["labels"]).astype(np.float64)
    return correct
