"""What learning costs as the bank grows, from a sample bank end to end, and the page `docs/scale.md`.

    python -m benchmarks.scale 50 100 200 500 1000     # sizes that were measured before are kept
    python -m benchmarks.scale 100 --again             # measures this size once more
    python -m benchmarks.scale                         # the page alone, from what was measured

One process does everything, so that processor seconds can be told apart by stage: the times do not depend on who else
uses the machine, and units divide among as many workers as there are. Every size runs in a process of its own, so that
its memory is its own. Results are kept in benchmarks/kept/scale.json, each as soon as it is there. The page is made
from them alone: every figure of it is a result, the package's own rule for pairs, or arithmetic on the number of tasks.
"""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

import manymetrics as mm
from benchmarks.completion import complete
from benchmarks.harness import in_fresh_process
from benchmarks.page import is_stale, machine, sources_digest, table
from manymetrics.cli.demo import planted_agreement
from manymetrics.engine import Progress
from manymetrics.measure import pairs_needed, pairs_to_measure
from manymetrics.measure.transfer import NEEDED

STAGES = ("read", "measure-models", "measure-transfer", "partition", "specialize", "weigh")
JOB_STAGES = ("measure-models", "measure-transfer", "specialize")  # stages that divide among workers
FAR = 100_000  # tasks, to which the page extrapolates
MACHINE_GIB = 64  # of the machine that is asked how many tasks it holds
DENSE = 7  # n x n arrays in double precision that a learning holds at once: S, X, and the solver's, some of them single
SMALL = 0.5  # seconds: less says nothing about growth

Row = Mapping[str, Any]

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
        when = datetime.now(UTC).isoformat(timespec="minutes")
        row = {**usage.result, "peak_mib": round(usage.peak), "seed": seed, "when": when}
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


def write_page(found: Mapping[str, Any]) -> str:
    """The page, from the results alone."""
    rows = sorted((row for size, row in found.items() if size.isdigit()), key=lambda row: int(row["tasks"]))
    heads = ["tasks", "pairs measured", "share", *STAGES, "all", "two cores, min", "peak MiB", "clusters", "Rand"]
    machines = sorted({f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows})
    text = Path(__file__).with_name("scale.md").read_text(encoding="utf-8")
    return text.format(
        table=table(heads, [_cells(row) for row in rows]),
        machines="; ".join(machines),
        stale=_stale(rows),
        day=rows[-1]["when"][:10],
        jobs=", ".join(JOB_STAGES),
        growth=_growth(rows),
        completion=_completion(found.get("completion", [])),
        needed=NEEDED,
        **_far(rows[-1]),
    )


def _stale(rows: Sequence[Row]) -> str:
    sizes = [f"{row['tasks']:,}" for row in rows if is_stale(row)]
    return f" **Stale**, because the code has changed since: the rows of {', '.join(sizes)} tasks." if sizes else ""


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float | None:
    """The slope of a line through the logarithms; None where there are not two sizes."""
    points = [(math.log(n), math.log(cost)) for n, cost in zip(sizes, costs, strict=True) if cost >= SMALL]
    if len({x for x, _ in points}) < 2:
        return None
    return float(np.polyfit(*zip(*points, strict=True), 1)[0])


def _growth(rows: Sequence[Row]) -> str:
    sizes = [row["tasks"] for row in rows]
    costs = {stage: [row["seconds"][stage] for row in rows] for stage in STAGES}
    costs["peak MiB"] = [row["peak_mib"] for row in rows]
    costs["run on disk, MiB"] = [row["run_mib"] for row in rows]
    lines = []
    for what, cost in costs.items():
        slope = exponent(sizes, cost)
        lines.append([what, "too little to tell" if slope is None else f"n^{slope:.1f}", f"{cost[-1]:,.1f}"])
    cells = exponent([row["pairs"] for row in rows], costs["measure-transfer"])
    if cells is not None:
        lines.insert(3, ["measure-transfer, by pairs", f"pairs^{cells:.1f}", ""])
    return table(["", "grows as", f"at {sizes[-1]:,} tasks"], lines)


def _completion(rows: Sequence[Row]) -> str:
    if not rows:
        return "The completion by itself, on planted pairs, was not measured.\n"
    heads = ["tasks", "known entries", "seconds", "peak MiB", "Rand"]
    lines = [
        [f"{row['tasks']:,}", f"{row['observed']:,}", f"{row['complete_seconds']:,}", f"{row['peak_mib']:,}",
         f"{row['adjusted_rand']:.2f}"]
        for row in rows
    ]  # fmt: skip
    return "The completion by itself, on planted pairs (`python -m benchmarks completion`):\n\n" + table(heads, lines)


def _far(row: Row) -> dict[str, str]:
    """What the largest row says about the far size."""
    n, spent = row["tasks"], row["seconds"]
    model, cell = spent["measure-models"] / n, spent["measure-transfer"] / (2 * row["pairs"])
    every = FAR * (FAR - 1) // 2
    pairs = pairs_needed(FAR, row["alike"] * 2 * pairs_to_measure(FAR) / FAR)
    known = 2 * pairs * row["kept"]
    gib = 2**30
    return {
        "far": f"{FAR:,}",
        "largest": f"{n:,}",
        "kept": f"{row['kept']:.0%}",
        "alike": f"{row['alike']:.0%}",
        "model": f"{model:.2f}",
        "model_hours": f"{model * FAR / 3600:,.0f}",
        "cell": f"{1000 * cell:.1f}",
        "pairs": f"{pairs:,}",
        "pair_share": f"{pairs / every:.2%}",
        "cell_hours": f"{2 * cell * pairs / 3600:,.0f}",
        "on_hundred": f"{(model * FAR + 2 * cell * pairs) / 3600 / 100:,.1f}",
        "metric": f"{spent['specialize'] / row['clusters']:.0f}",
        "weigh_hours": f"{spent['weigh'] / n * FAR / 3600:,.0f}",
        "files": f"{row['run_files'] / n * FAR:,.0f}",
        "run_gib": f"{row['run_mib'] / n * FAR / 1024:,.0f}",
        "models_gib": f"{row['model_mib'] / n * FAR / 1024:,.0f}",
        "known": f"{known:,.0f}",
        "doubles_gib": f"{8 * FAR**2 / gib:,.0f}",
        "dense": str(DENSE),
        "machine_gib": str(MACHINE_GIB),
        "most": f"{math.floor(math.sqrt(MACHINE_GIB * gib / (8 * DENSE)) / 1000) * 1000:,}",
    }


def _cells(row: Row) -> list[str]:
    spent = row["seconds"]
    jobs = sum(spent[stage] for stage in JOB_STAGES)
    every = sum(spent.values())
    sizes = [f"{row['tasks']:,}", f"{row['pairs']:,}", f"{row['share']:.1%}"]
    ends = [f"{every:,.0f}", f"{(every - jobs / 2) / 60:,.0f}", f"{row['peak_mib']:,}", str(row["clusters"])]
    return [*sizes, *(f"{spent[stage]:,.0f}" for stage in STAGES), *ends, f"{row['rand']:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
