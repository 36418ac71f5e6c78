"""The transfer matrix of the default recipe: a projection of every task, scored on every other task."""

import time

import manymetrics as mm
from benchmarks.harness import Options, Row, Target, seconds, timed
from benchmarks.material import load_base, needs_encoder, sample
from manymetrics.encode.sentence import encode_bank
from manymetrics.measure import fit_single_tasks, measure_transfer

SOURCES = ("encode", "measure", "engine", "episodes.py")
TEN_MS, MINUTES = Target(10, "ms", at_least=False), Target(5, "min", at_least=False)


@needs_encoder
def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    past, _ = sample(options.seed, options.size(57, 16)).split_off()
    bank = past.only(past.names[: options.size(57, 4)])
    shared_data, workers = mm.SharedData(bank.without_tests(), load_base()), options.size(2, 1)
    with mm.engine.Engine(shared_data, workers=workers) as run_jobs:
        shared_data = encode_bank(shared_data, run_jobs)
    representation = mm.Recipe(own_steps=options.size(30, 2)).phases(shared_data).single
    alone = mm.engine.Engine(shared_data)
    fitting, models = timed(lambda: fit_single_tasks(representation, shared_data, alone, seed=options.seed))
    spent, _ = timed(lambda: measure_transfer(representation, models, shared_data, alone))
    start = time.perf_counter()
    with mm.engine.Engine(shared_data, workers=workers) as run_jobs:
        measure_transfer(representation, models, shared_data, run_jobs)
    wall = time.perf_counter() - start
    n, cell = len(bank), spent / (len(bank) * (len(bank) - 1))
    texts = sum(len(task.train) + len(task.valid) for task in bank)
    return [
        Row(f"sample bank of {n} tasks: a projection of each task", seconds(fitting),
            note=f"{texts:,} texts, encoded before; processor seconds, once"),
        Row(f"{n} × {n} transfer matrix, each cell", seconds(cell), target=TEN_MS, value=1e3 * cell,
            note=f"{seconds(spent)} in all; processor seconds, once"),
        Row(f"{n} × {n} transfer matrix, {workers} workers", seconds(wall), target=MINUTES, value=wall / 60,
            note="wall clock, once, start of the workers included"),
    ]  # fmt: skip
