"""What learning costs as the bank grows, from a sample bank end to end, and the page `docs/scale.md`.

    python -m benchmarks.scale 50 100 200      # these sizes; others keep their results
    python -m benchmarks.scale 500 1000        # hours on one core

One process does everything, so that processor seconds can be told apart by stage: the times do not depend on who else
uses the machine, and units divide among as many workers as there are. Every size runs in a process of its own, so that
its memory is its own. Results are kept in build/scale.json; the page is made from them alone.
"""

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import click

import manymetrics as mm
from benchmarks.harness import in_fresh_process
from benchmarks.page import machine, now
from manymetrics.engine import Progress
from manymetrics.evaluation.demo import planted_agreement

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "scale.md", ROOT / "build" / "scale.json"
STAGES = ("read", "measure-models", "measure-transfer", "partition", "specialize", "weigh")
AFTER = {"measure-models": "measure-models", "measure-transfer": "partition", "specialize": "weigh"}
FAR = 100_000  # tasks, to which the page extrapolates

TEXT = """# Scale

What learning costs as the bank grows, from a sample bank end to end. Made by `python -m benchmarks.scale`; do not edit.

Processor seconds of one core. Stages made of units (measure-models, measure-transfer, specialize) divide among the
workers there are. Rand is the adjusted Rand index of the clusters found and the families planted.

{table}

Measured on {machines}; {day}.

## {far} tasks

What the row of {largest} tasks, the largest measured, says about {far}:

- **measure-models** is one unit for each task, {model} s: {model_hours} core hours.
- **measure-transfer** takes {cell} ms for each cell, encoding included. n log² n is {cells} cells, {cell_share} of all:
  {cell_hours} core hours. On a hundred cores the two stages take {on_hundred} hours together.
- **specialize** is one unit for each cluster, {metric} s, and does not grow with the cluster.
- **partition** holds n × n arrays: {bytes_gib} GiB for each array of bytes, {doubles_gib} GiB for one in double
  precision. One machine does not hold them; of 10,000 tasks it does, as `benchmarks/completion_at_scale.py` measures.
  Beyond, the filter and the completion would have to keep Omega and X sparse and factored from end to end, which they
  do not.
- **The driver** holds every task's model until *S* is measured, about a MiB each: {models_gib} GiB. It would have to
  read them from the run as they are needed.
- **The run** is {files} files and about {models_gib} GiB.

So the units scale with the machines there are; partition and the driver's memory are what stands between this version
and {far} tasks.
"""


class Clock:
    """Processor seconds by stage, from the events of a learning."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._stage, self._since = "read", time.process_time()

    def __call__(self, progress: Progress) -> None:
        """An event: the time since the last one belongs to what was going on."""
        self.turn_to(progress.stage)
        if progress.done + len(progress.failures) == progress.total:
            self.turn_to(AFTER[progress.stage])

    def turn_to(self, stage: str) -> None:
        """From here on the time is this stage's."""
        moment = time.process_time()
        self.spent[self._stage] += moment - self._since
        self._stage, self._since = stage, moment


def learn(tasks: int, seed: int) -> Any:
    """One size, from the bank to the model, to be done in a process of its own."""

    def work() -> dict[str, Any]:
        past, _ = mm.sample_bank(seed, tasks=tasks).split_off()
        clock = Clock()
        model = mm.learn_metrics(past, mm.Recipe(seed=seed), report=clock)
        clock.turn_to("weigh")
        scores, n = model.transfer.scores, len(past)
        return {
            "tasks": n,
            "texts": sum(len(task.train) + len(task.valid) for task in past),
            "pairs": int((scores == scores).sum()) // 2,  # noqa: PLR0124 - only NaN differs from itself
            "share": float((scores == scores).sum()) / (n * (n - 1)),  # noqa: PLR0124
            "clusters": len(model.clusters),
            "rand": planted_agreement(model.clusters),
            "seconds": {stage: round(seconds, 1) for stage, seconds in clock.spent.items()},
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }

    return work


def write_page(found: dict[str, Any]) -> str:
    """The page, from the results alone."""
    rows = [found[size] for size in sorted(found, key=int)]
    heads = ["tasks", "pairs measured", "share", *STAGES, "all", "peak MiB", "clusters", "Rand"]
    table = [heads, ["---"] * len(heads), *(_cells(row) for row in rows)]
    machines = sorted({f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows})
    largest = rows[-1]
    cell = largest["seconds"]["measure-transfer"] / (2 * largest["pairs"])
    model, cells = largest["seconds"]["measure-models"] / largest["tasks"], FAR * math.log(FAR) ** 2
    return TEXT.format(
        table="\n".join("| " + " | ".join(line) + " |" for line in table),
        machines="; ".join(machines),
        day=largest["when"][:10],
        far=f"{FAR:,}",
        largest=f"{largest['tasks']:,}",
        model=f"{model:.2f}",
        model_hours=f"{model * FAR / 3600:,.0f}",
        cell=f"{1000 * cell:.1f}",
        cells=f"{cells:,.0f}",
        cell_share=f"{cells / FAR**2:.2%}",
        cell_hours=f"{cell * cells / 3600:,.0f}",
        on_hundred=f"{(model * FAR + cell * cells) / 3600 / 100:,.1f}",
        metric=f"{largest['seconds']['specialize'] / largest['clusters']:.0f}",
        bytes_gib=f"{FAR**2 / 2**30:,.0f}",
        doubles_gib=f"{8 * FAR**2 / 2**30:,.0f}",
        files=f"{2 * FAR:,}",
        models_gib=f"{FAR / 1024:,.0f}",
    )


def _cells(row: dict[str, Any]) -> list[str]:
    spent = row["seconds"]
    sizes = [f"{row['tasks']:,}", f"{row['pairs']:,}", f"{row['share']:.0%}"]
    ends = [f"{sum(spent.values()):,.0f}", f"{row['peak_mib']:,}", str(row["clusters"]), f"{row['rand']:.2f}"]
    return [*sizes, *(f"{spent[stage]:,.0f}" for stage in STAGES), *ends]


@click.command()
@click.argument("tasks", nargs=-1, type=click.IntRange(16))
@click.option("--seed", default=0, show_default=True)
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, help="Where the page goes.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Where the results go, as JSON.")
def main(*, tasks: tuple[int, ...], seed: int, page: Path, out: Path) -> None:
    """Learn from sample banks of so many TASKS and write the page."""
    found = json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}
    for size in tasks:
        row = in_fresh_process(learn, size, seed).result
        found[str(size)] = {**row, "when": now().isoformat(timespec="minutes"), "machine": machine(), "seed": seed}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1), encoding="utf-8")
        click.echo(json.dumps(row))
    page.write_text(write_page(found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
