"""Answers -> results.json: every row with its intervals, the targets, the figure over K, the ablations."""

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions, version
from typing import Any

import numpy as np

from experiments import plan
from experiments.bench import Answers
from experiments.experiment import Outcome
from experiments.intervals import by_seed, gain_in_accuracy, over_seeds, over_targets
from experiments.options import FORMAT
from experiments.problems import source_of
from manymetrics.evaluation.scoring import SCORES
from manymetrics.model import MetricModel
from manymetrics.recipe import Recipe
from manymetrics.values import TaskBank

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "sentence-transformers", "setfit")


@dataclass(frozen=True, eq=False)
class About:
    """What was asked for, on which data."""

    experiment: str
    command: str
    bank: TaskBank
    size: plan.Size
    recipe: Recipe

    def origin(self) -> dict[str, Any]:
        """What every number came from."""
        return {
            "experiment": self.experiment,
            "command": self.command,
            "version": version("manymetrics"),
            "data": self.bank.fingerprint,
        }


def compile_results(about: About, outcome: Outcome, model: MetricModel, targets: TaskBank) -> dict[str, Any]:
    """Everything of an experiment as plain data; `seconds` is left to whoever held the clock."""
    first = about.size.seeds[0]
    installed = {one.name: one.version for one in distributions()}
    libraries = {name: installed[name] for name in LIBRARIES if name in installed}
    reference, sources = outcome.answers[plan.REFERENCE], [source_of(task) for task in targets]
    return {
        "format": FORMAT,
        **about.origin(),
        "versions": {"python": platform.python_version(), **libraries},
        "left_out": [{"name": left.name, "reason": left.reason} for left in about.bank.left_out],
        "notes": _notes(about),
        "seeds": list(about.size.seeds),
        "quick": about.size.quick,
        "seconds": 0.0,
        "recipe": about.recipe.as_dict(),
        "rows": [_row(row, about.experiment, outcome, reference, sources) for row in plan.ROWS],
        "targets": _targets(outcome, model, targets, about.bank.split_off()[0]),
        "fallback": outcome.fallback,
        "by_clusters": _figure(outcome, sources),
        "ablations": _ablations(outcome, first, sources),
        "clusters": [{"name": f"cluster-{k}", "tasks": list(group)} for k, group in enumerate(model.clusters)],
    }


def answer_files(about: About, outcome: Outcome, targets: TaskBank) -> dict[str, bytes]:
    """What each row answered for each seed, as files with what made them."""
    first = about.size.seeds[0]
    answered = [(row, seed, one, "") for row, by in outcome.answers.items() for seed, one in by.items()]
    answered += [(row, first, one, "ablation-") for row, one in outcome.ablations.items()]
    answered += [(f"{plan.RANDOM_ABLATION}, draw {draw}", first, one, "ablation-")
                 for draw, one in enumerate(outcome.random)]  # fmt: skip
    answered += [(f"{row}, {number} clusters", first, one, "") for (row, number), one in outcome.figure.items()]
    return {
        f"{kind}{_slug(row)}-seed-{seed}.json": _answer_file(about, row, seed, answers, targets)
        for row, seed, answers, kind in answered
    }


def _answer_file(about: About, method: str, seed: int, answers: Answers, targets: TaskBank) -> bytes:
    found = {
        task.name: {"labels": task.labels, "truth": one.labels.tolist(), "answers": one.answers.tolist()}
        for task, one in zip(targets, answers, strict=True)
    }
    content = {"format": FORMAT, **about.origin(), "method": method, "seed": seed, "targets": found}
    return json.dumps(content, ensure_ascii=False).encode()


def _row(row: plan.Row, experiment: str, outcome: Outcome, reference: Mapping[int, Answers],
         sources: Sequence[str]) -> dict[str, Any]:  # fmt: skip
    about = {"method": row.method, "group": row.group, "paper": row.paper(experiment)}
    answers = outcome.answers.get(row.method)
    if not answers:
        nothing: dict[str, Any] = {**dict.fromkeys((*SCORES, "over_seeds", "gain")), "per_seed": []}
        return {**about, "applies": False, "note": outcome.skipped[row.method], "chosen": {}, **nothing}
    scores = _scores(answers, reference if row.method != plan.REFERENCE else None, sources)
    return {**about, "applies": True, "note": row.note, "chosen": outcome.chosen.get(row.method, {}), **scores}


def _scores(found: Mapping[int, Answers], reference: Mapping[int, Answers] | None,
            sources: Sequence[str]) -> dict[str, Any]:  # fmt: skip
    seeds = sorted(found)
    answered = [found[seed] for seed in seeds]
    values = {score: by_seed(answered, score) for score in SCORES}
    gain = reference and vars(gain_in_accuracy([reference[seed] for seed in seeds], answered, sources))
    return {
        **{score: vars(estimate) for score, estimate in over_targets(answered, sources).items()},
        "over_seeds": {score: vars(over_seeds(values[score])) for score in SCORES},
        "per_seed": [
            {"seed": seed, **{score: values[score][place] for score in SCORES}} for place, seed in enumerate(seeds)
        ],
        "gain": gain,
    }


def _ablations(outcome: Outcome, first: int, sources: Sequence[str]) -> list[dict[str, Any]]:
    """Each beside the whole; random clusters as the mean of their draws."""
    whole = outcome.ablations[plan.WHOLE]
    about = {"group": plan.OURS, "paper": None, "applies": True, "note": "the first seed"}
    rows = [
        {"method": method, **about, **_scores({first: answers}, {first: whole}, sources)}
        for method, answers in outcome.ablations.items()
    ]
    draws = dict(enumerate(outcome.random))
    scores = _scores(draws, dict.fromkeys(draws, whole), sources)
    return [*rows, {"method": plan.RANDOM_ABLATION, **about, **scores, "note": f"{len(draws)} draws"}]


def _figure(outcome: Outcome, sources: Sequence[str]) -> list[dict[str, Any]]:
    """A point for each method and K; `over_one` is the gain over one cluster, on the same texts."""
    ones = {method: [answers] for (method, number), answers in outcome.figure.items() if number == 1}
    points = []
    for (method, number), answers in outcome.figure.items():
        scores = over_targets([answers], sources)
        points.append({
            "method": "ASAP-style" if method == plan.ASAP else method,
            "clusters": number,
            **{score: vars(scores[score]) for score in SCORES[:2]},
            "over_one": vars(gain_in_accuracy([answers], ones[method], sources)),
        })  # fmt: skip
    return sorted(points, key=lambda point: (point["method"] != plan.REFERENCE, point["method"], point["clusters"]))


def _targets(outcome: Outcome, model: MetricModel, targets: TaskBank, past: TaskBank) -> list[dict[str, Any]]:
    majority = next(iter(outcome.answers["Majority class"].values()))
    found = []
    for place, task in enumerate(targets):
        classifier = model.adapt(task.train.texts, task.train.labels)
        found.append({
            "task": task.name,
            "source": source_of(task),
            "same_source": [one.name for one in past if source_of(one) == source_of(task)],
            "labels": len(task.labels),
            "shots": len(task.train),
            "texts": len(task.test),
            "majority": majority[place].accuracy,
            "accuracy": {
                method: float(np.mean([answers[place].accuracy for answers in by.values()]))
                for method, by in outcome.answers.items()
            },
            "weights": classifier.weights_,
            "fallback": classifier.fallback_,
        })  # fmt: skip
    return found


def _notes(about: About) -> list[str]:
    count = len(about.size.seeds)
    notes = [
        "Intervals of a row are 95 % bootstrap intervals over sources and texts, all seeds averaged; `over_seeds` has "
        "Student's 95 % interval over seeds" + (", which one seed cannot give." if count == 1 else "."),
        "`gain` is the accuracy of RobustTC-FSL less that of the row, on the same targets, texts and seeds.",
        f"The figure over K and the ablations were run with seed {about.size.seeds[0]} alone.",
        f"In a bank of more than {plan.LARGE_BANK} tasks, the scores of S in the paper's rows are of a sample of the "
        "pairs.",
        "Rows without chance in them count alike for every seed.",
        "What rows chose (`chosen`) was chosen by accuracy on few-shot problems of past tasks, with the first seed.",
    ]
    if about.size.quick:
        notes.append(
            f"Quick: at most {plan.QUICK_TASKS} past tasks, {plan.QUICK_TRAIN} train and {plan.QUICK_VALID} valid "
            f"texts of each, {plan.QUICK_TEST} test texts of a target, a sample of the pairs of tasks, and shorter "
            "training. These numbers show that everything runs, not how good it is."
        )
    return notes


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
