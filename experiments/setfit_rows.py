"""SetFit on the encoder of a model: what it answers, kept target by target, since each takes a minute."""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.baselines import peers
from experiments.problems import answer_problems
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.engine import Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.scoring import Answered
from manymetrics.store import Run
from manymetrics.values import Job, Task, TaskBank

METHOD = "SetFit, balanced"
STAGE = "setfit"


def require_setfit(encoder: Encoder) -> None:
    """Say what SetFit lacks to fine-tune an encoder, before anything is learned."""
    peers.load_setfit()
    with tempfile.TemporaryDirectory() as folder:
        _write(encoder, Path(folder))


def _write(encoder: Encoder, folder: Path) -> None:
    if not isinstance(encoder, SentenceEncoder):
        raise InputError(
            "SetFit fine-tunes a sentence encoder, and this recipe uses word vectors. "
            "Leave --with setfit out, or choose another recipe."
        )
    peers.write_sentence_folder(encoder, folder)


@dataclass(frozen=True, eq=False)
class SetFitRows:
    """SetFit on an encoder, and the run that keeps its answers."""

    out: Path  # folder of the run
    seeds: int
    report: Callable[[Progress], None]

    def answers(self, encoder: Encoder, targets: TaskBank, *, names: bool) -> list[list[Answered]]:
        """What it answers after fine-tuning an encoder on each target's shots, with each seed: (seeds, targets)."""
        with tempfile.TemporaryDirectory() as place, Run.open(self.out) as run:
            folder = Path(place)
            _write(encoder, folder)
            told = _Told(f"{STAGE}, label names {'on' if names else 'off'}", self.seeds * len(targets), self.report)
            found = []
            for seed in range(self.seeds):
                method = peers.setfit(folder, names=names, seed=seed)
                spec = {"encoder": encoder.fingerprint, "names": names, "seed": seed}
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


def _kept(method: Method, run: Run, spec: Mapping[str, Any], told: _Told) -> Method:
    """The same method, asked only what the run does not know yet."""

    def answer(task: Task) -> list[str]:
        job = Job(task.name, {**spec, "task": task.fingerprint})
        key = Run.key(STAGE, job, code_fingerprint(peers.setfit))
        payload = run.get(STAGE, key, job)
        known = payload is not None
        if payload is None:
            payload = json.dumps(list(method(task))).encode()
            run.put(STAGE, key, job, payload)
        told.one(kept=known)
        found: list[str] = json.loads(payload)
        return found

    return answer
