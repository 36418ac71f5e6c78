"""Results of `benchmarks.scale` -> the page `docs/scale.md`: the table, how it grows, and what a far larger bank needs.

Every figure comes from the results, from the package's own rule for pairs, or is arithmetic on the number of tasks.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.fingerprint import is_stale
from benchmarks.page import table
from manymetrics.measure import pairs_needed, pairs_to_measure
from manymetrics.measure.pairs import NEEDED

STAGES = ("read", "measure-models", "measure-transfer", "partition", "specialize", "weigh")
JOB_STAGES = ("measure-models", "measure-transfer", "specialize")  # stages that divide among workers
FAR = 100_000  # tasks, to which the page extrapolates
MACHINE_GIB = 64  # of the machine that is asked how many tasks it holds
DENSE = 7  # n x n arrays in double precision that a learning holds at once: S, X, and the solver's, some of them single
SMALL = 0.5  # seconds: less says nothing about growth

Row = Mapping[str, Any]

TEXT = """# Scale

What learning costs as the bank grows, from a sample bank end to end. Made by `python -m benchmarks.scale`; do not edit.

Processor seconds of one process on one core. The stages made of jobs ({jobs}) divide among
the workers there are, so two cores take half of these and all of the rest. Rand is the adjusted Rand index of the
clusters found and the families planted. Up to 500 tasks every pair is measured.

{table}
Measured on {machines}; {day}.{stale}

## How it grows

{growth}
The exponent is the slope of a line through the logarithms of the rows above; a stage of less than half a second tells
nothing. measure-transfer grows with the pairs, and above 500 tasks these are sampled. The sample begins with n log² n
entries and grows until a task has {needed:.2f} log n others known to be like it, because these hold a cluster together
([decision 10](decisions/0010-sampled-pairs.md)). At {largest} tasks {kept} of the pairs measured became known, {alike}
as alike.

{completion}
## {far} tasks

Nobody ran this. It is what the row of {largest} tasks, the largest measured, says about {far}:

- **measure-models** is one job for each task, {model} s: {model_hours} core hours.
- **measure-transfer** takes {cell} ms for each cell, encoding included. For as many clusters the rule asks for
  {pairs} pairs, both directions of each: {pair_share} of all, {cell_hours} core hours. On a hundred cores the two
  stages take {on_hundred} hours together.
- **specialize** is one job for each cluster, {metric} s, and does not grow with the cluster: an episode is as large as
  its settings say.
- **weigh** is done in one process and grows with the tasks held out: {weigh_hours} hours, if as n. It would have to
  draw its problems from a sample of them.
- **The run** is about {files} files and {run_gib} GiB on disk.
- **The driver** holds the model of every task until *S* is measured: {models_gib} GiB. It would have to read them from
  the run as they are needed.
- **partition**: {known} entries would be observed, but the completion works on n × n arrays, {doubles_gib} GiB each,
  and so does the sampling of pairs. With {dense} of them at a time a machine of {machine_gib} GiB holds {most} tasks. A
  step of the solver takes n² times the rank of *X*, so the time becomes hours before that.

So what breaks first is the memory of one process, at about {most} tasks: the n × n arrays, then the models. Jobs scale
with the machines there are. Beyond, pairs would have to be drawn task by task, and Omega stored as a sparse matrix and
*X* as factors from end to end.
"""


def write_page(found: Mapping[str, Any]) -> str:
    """The page, from the results alone."""
    rows = sorted((row for size, row in found.items() if size.isdigit()), key=lambda row: int(row["tasks"]))
    heads = ["tasks", "pairs measured", "share", *STAGES, "all", "two cores, min", "peak MiB", "clusters", "Rand"]
    machines = sorted({f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows})
    return TEXT.format(
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
    middle = [sum(values) / len(points) for values in zip(*points, strict=True)]
    along = sum((x - middle[0]) ** 2 for x, _ in points)
    return float(sum((x - middle[0]) * (y - middle[1]) for x, y in points) / along)


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
