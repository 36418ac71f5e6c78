"""What learning costs as the bank grows, from a sample bank end to end, and the page `docs/scale.md`.

    python -m benchmarks.scale 50 100 200 500 1000     # sizes that were measured before are kept
    python -m benchmarks.scale 100 --again             # measures this size once more
    python -m benchmarks.scale                         # the page alone, from what was measured

One process does everything, so that processor seconds can be told apart by stage: the times do not depend on who else
uses the machine, and units divide among as many workers as there are. Every size runs in a process of its own, so that
its memory is its own. Results are kept in benchmarks/kept/scale.json, each as soon as it is there; the page is made
from them alone.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

import manymetrics as mm
from benchmarks.completion import complete
from benchmarks.fingerprint import sources_digest
from benchmarks.harness import in_fresh_process
from benchmarks.page import machine, now
from benchmarks.scale_page import STAGES, write_page
from manymetrics.engine import Progress
from manymetrics.evaluation.demo import planted_agreement

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "scale.md", ROOT / "benchmarks" / "kept" / "scale.json"
SOURCES = ["collect", "encode", "measure", "partition", "specialize", "weigh", "classifier", "engine", "learn.py",
           "episodes.py", "recipe.py"]  # fmt: skip
COMPLETED = (1000, 3000)  # tasks of the completion by itself
MODELS = "measure-models"  # the stage that trains a model of each task


class Clock:
    """Processor seconds by stage, from the events of a learning."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._stage, self._since = "read", time.process_time()

    def __call__(self, progress: Progress) -> None:
        """An event: the time since the last one belongs to what was going on."""
        name = progress.stage
        self.turn_to("read" if name == "encode" else next(stage for stage in STAGES if name.startswith(stage)))

    def turn_to(self, stage: str) -> None:
        """From here on the time is this stage's."""
        moment = time.process_time()
        self.spent[self._stage] += moment - self._since
        self._stage, self._since = stage, moment


def learn(tasks: int, seed: int) -> Any:
    """One size, from the bank to the model, to be done in a process of its own."""

    def run_jobs() -> dict[str, Any]:
        past, _ = mm.sample_bank(seed, tasks=tasks).split_off()
        recipe, clock, started = mm.Recipe(seed=seed), Clock(), time.monotonic()
        with TemporaryDirectory() as run:
            model = mm.learn_metrics(past, recipe, run=run, report=clock)
            clock.turn_to("weigh")
            files = {path: path.stat().st_size for path in Path(run).rglob("*") if path.is_file()}
        wall = time.monotonic() - started
        measured, n = ~np.isnan(model.transfer.scores), len(past)
        pairs = model.origin.pairs
        return {
            "tasks": n,
            "texts": sum(len(task.train) + len(task.valid) for task in past),
            "pairs": int(measured.sum()) // 2,
            "share": float(measured.sum()) / (n * (n - 1)),
            "kept": pairs.share * n * (n - 1) / float(measured.sum()),
            "alike": float(pairs.similar.sum() - n) / float(measured.sum()),
            "clusters": len(model.clusters),
            "rand": planted_agreement(model.clusters),
            "seconds": {stage: round(seconds, 1) for stage, seconds in clock.spent.items()},
            "wall": round(wall, 1),
            "run_files": len(files),
            "run_mib": round(sum(files.values()) / 2**20, 1),
            "model_mib": round(sum(size for path, size in files.items() if MODELS in path.parts) / 2**20, 1),
        }

    return run_jobs


@click.command()
@click.argument("tasks", nargs=-1, type=click.IntRange(16))
@click.option("--seed", default=0, show_default=True)
@click.option("--again", is_flag=True, help="Measure sizes that were measured before, too.")
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, help="Where the page goes.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Where the results go, as JSON.")
def main(*, tasks: tuple[int, ...], seed: int, again: bool, page: Path, out: Path) -> None:
    """Learn from sample banks of so many TASKS and write the page."""
    found = json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}
    for size in tasks:
        if found.get(str(size), {}).get("seed") == seed and not again:
            continue
        digest = sources_digest(SOURCES)
        usage = in_fresh_process(learn, size, seed)
        row = {**usage.result, "peak_mib": round(usage.peak), "seed": seed, "when": now().isoformat(timespec="minutes")}
        found[str(size)] = {**row, "machine": machine(), "sources": SOURCES, "digest": digest}
        _keep(found, out)
        click.echo(json.dumps(row))
    if not found:
        raise click.UsageError(f"Nothing was measured yet: {out} is not there. Name some sizes.")
    if "completion" not in found:
        usages = [in_fresh_process(complete, size) for size in COMPLETED]
        found["completion"] = [{**usage.result, "peak_mib": round(usage.peak)} for usage in usages]
        _keep(found, out)
    page.write_text(write_page(found), encoding="utf-8")


def _keep(found: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
