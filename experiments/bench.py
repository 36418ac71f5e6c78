"""A bench for methods: a bank to learn from, targets to answer, and a run in which every finished answer is kept.

Methods get the targets with their test labels struck out, so no answer can depend on them; the labels come back only
when answers are scored. A method's answers on all targets are one job of the run: its key is the hash of the bank, the
blinded targets, the word vectors, the settings of the method and the code that answers, so that what is there can be
believed, and what was changed is done again. What a method chooses on tasks of the bank is a job, too.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.methods import answer_targets, blind
from manymetrics.engine import Progress
from manymetrics.evaluation.baselines import Method, majority
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.store import Run
from manymetrics.values import Job, RunJobs, SharedData, TaskBank

STAGE, CHOICE = "answer", "choose"

Answers = list[Answered]  # what one method answered, target by target


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything a method may learn from, and what it is asked."""

    past: TaskBank
    shared_data: SharedData  # the same tasks, as learning sees them
    targets: TaskBank  # with their test labels, for scoring alone
    run_jobs: RunJobs
    run: Run
    code: str  # fingerprint of all code that learns or answers
    report: Callable[[Progress], None]

    @cached_property
    def blinded(self) -> TaskBank:
        """The targets as methods see them."""
        return blind(self.targets)

    def answer(self, title: str, asked: Mapping[str, Mapping[str, Any]],
               make: Callable[[], Mapping[str, Method]]) -> dict[str, Answers]:  # fmt: skip
        """The answers of several methods that are made together, by name; `asked` gives the settings of each.

        `make` is called only where an answer is missing.
        """
        known = {"bank": self.past.fingerprint, "targets": self.blinded.fingerprint}
        known |= {"words": self.shared_data.base.fingerprint}
        jobs = {name: Job(name, {**known, **settings}) for name, settings in asked.items()}
        keys = {name: Run.key(STAGE, job, self.code) for name, job in jobs.items()}
        found = {name: self.run.get(STAGE, keys[name], job) for name, job in jobs.items()}
        payloads = {name: payload for name, payload in found.items() if payload is not None}
        kept = len(payloads)
        methods = make() if kept < len(jobs) else {}
        self.report(Progress(title, kept, len(jobs), 0.0, kept))
        started = time.perf_counter()
        for name, job in jobs.items():
            if name not in payloads:
                answered = answer_targets(methods[name], self.blinded)
                payloads[name] = json.dumps({one.task: one.answers.tolist() for one in answered}).encode()
                self.run.put(STAGE, keys[name], job, payloads[name])
                self.report(Progress(title, len(payloads), len(jobs), time.perf_counter() - started, kept))
        return {name: self._open(payloads[name]) for name in jobs}

    def choose(self, row: str, settings: Mapping[str, Any], find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What a row chose on tasks of the bank; `find` is called only where that is not known yet."""
        job = Job(row, {"bank": self.past.fingerprint, "words": self.shared_data.base.fingerprint, **settings})
        key = Run.key(CHOICE, job, self.code)
        payload = self.run.get(CHOICE, key, job)
        if payload is None:
            self.report(Progress(f"{row}: tuning", 0, 1, 0.0))
            started = time.perf_counter()
            payload = json.dumps(find()).encode()
            self.run.put(CHOICE, key, job, payload)
            self.report(Progress(f"{row}: tuning", 1, 1, time.perf_counter() - started))
        found: dict[str, Any] = json.loads(payload)
        return found

    def majority(self) -> Answers:
        """The commonest test label of each target, always: the only row that looks at the test labels."""
        return answer_targets(majority, self.targets)

    def _open(self, payload: bytes) -> Answers:
        answers = json.loads(payload)
        return [
            Answered(task.name, np.array(answers[task.name]), label_numbers(task, task.test.labels))
            for task in self.targets
        ]
