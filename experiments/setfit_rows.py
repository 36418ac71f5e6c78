"""SetFit on the encoder that a model stands on: what it answers, kept target by target, since each takes a minute."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.baselines import peers
from experiments.problems import answer_problems
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.engine import Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import Method
from manymetrics.learn import load_base
from manymetrics.recipe import Recipe
from manymetrics.store import Run
from manymetrics.values import Task, TaskBank, Unit

METHOD = "SetFit"
STAGE = "setfit"


@dataclass(frozen=True, eq=False)
class SetFitRows:
    """SetFit with its own defaults, an encoder that it fine-tunes, and the run that keeps its answers."""

    encoder: SentenceEncoder
    out: Path  # folder of the run
    seeds: int
    report: Callable[[Progress], None] = lambda progress: None

    @classmethod
    def of(cls, recipe: Recipe, out: Path, *, seeds: int, report: Callable[[Progress], None]) -> "SetFitRows":
        """On what a recipe stands on; whatever is missing is said here, before anything is learned."""
        peers.load_setfit()
        encoder = load_base(recipe)
        if not isinstance(encoder, SentenceEncoder):
            raise InputError(
                "SetFit fine-tunes a sentence encoder, and this recipe stands on word vectors. "
                "Leave --with setfit out, or choose another recipe."
            )
        with tempfile.TemporaryDirectory() as folder:
            peers.write_sentence_folder(encoder, Path(folder))
        return cls(encoder, out, seeds, report)

    def answers(self, targets: TaskBank, *, names: bool) -> list[list[Answered]]:
        """What it answers with each seed: (seeds, targets)."""
        with tempfile.TemporaryDirectory() as folder, Run.open(self.out) as run:
            peers.write_sentence_folder(self.encoder, Path(folder))
            told = _Told(f"{STAGE}, label names {'on' if names else 'off'}", self.seeds * len(targets), self.report)
            found = []
            for seed in range(self.seeds):
                method = peers.setfit(Path(folder), names=names, seed=seed)
                spec = {"encoder": self.encoder.fingerprint, "names": names, "seed": seed}
                found.append(answer_problems(_kept(method, run, spec, told), targets))
        return found


class _Told:
    """Counts targets that were answered, and says so."""

    def __init__(self, stage: str, total: int, report: Callable[[Progress], None]) -> None:
        self.stage, self.total, self.report = stage, total, report
        self.done = self.kept = 0
        self.started = time.perf_counter()
        report(Progress(stage, 0, total, 0.0))

    def one(self, *, kept: bool) -> None:
        """One more target, which may have been there already."""
        self.done, self.kept = self.done + 1, self.kept + kept
        self.report(Progress(self.stage, self.done, self.total, time.perf_counter() - self.started, self.kept))


def _kept(method: Method, run: Run, spec: dict[str, str | int], told: _Told) -> Method:
    """The same method, asked only what the run does not know yet."""

    def answer(task: Task) -> list[str]:
        unit = Unit(task.name, {**spec, "task": task.fingerprint})
        key = Run.key(STAGE, unit, code_fingerprint(peers.setfit))
        payload = run.get(STAGE, key, unit)
        known = payload is not None
        if payload is None:
            payload = json.dumps(list(method(task))).encode()
            run.put(STAGE, key, unit, payload)
        told.one(kept=known)
        found: list[str] = json.loads(payload)
        return found

    return answer
