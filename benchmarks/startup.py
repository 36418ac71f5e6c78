"""How long a new process takes until it is of use: the import, the help, an answer from a saved model.

New processes, but files the operating system has read before: what the second call of the day takes. Libraries that
came with the peers, and that others load when they find them, are hidden.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import manymetrics as mm
from benchmarks.harness import Options, Row, Target, in_fresh_process, seconds
from benchmarks.material import few_shot_task, needs_encoder, random_model

IMPORT = "import time; start = time.perf_counter(); import manymetrics; print(time.perf_counter() - start)"
ALONE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "pyarrow", "torch"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
"""
SOURCES = ("",)  # all of the package
ONE_SECOND = Target(1, "s", at_least=False)
FIFTY_MB = Target(50, "MB", at_least=False)
MEGABYTE = 1_000_000
MAIN = f"{ALONE}from manymetrics.cli import main; sys.exit(main())"


@needs_encoder
def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    rounds = options.size(max(5, options.rounds), 1)
    with tempfile.TemporaryDirectory() as folder:
        model, shots = Path(folder) / "model", Path(folder) / "shots.tsv"
        random_model(options.size(10, 2), options.seed).save(model)
        support, _ = few_shot_task(10, 5, options.seed)
        lines = (f"{text}\t{label}\n" for text, label in zip(support.texts, support.labels, strict=True))
        shots.write_text("".join(lines), encoding="utf-8")
        predict = ["predict", str(model), "--examples", str(shots), "where is my parcel"]
        return [
            _row("import manymetrics", ["-c", IMPORT], 0.3, rounds, inside=True),
            _row("manymetrics --help", ["-c", MAIN, "--help"], 0.5, rounds),
            _row("manymetrics predict, a saved model of 10 clusters", ["-c", MAIN, *predict], 1.5, rounds),
            *_serve(model, rounds),
        ]


def _serve(folder: Path, rounds: int) -> list[Row]:
    """What it takes to have a model in memory, and its size on disk."""
    usages = [in_fresh_process(_load, str(folder)) for _ in range(rounds)]
    times, memory = [usage.seconds for usage in usages], max(usage.peak - usage.before for usage in usages)
    megabytes = sum(file.stat().st_size for file in folder.iterdir()) / MEGABYTE
    title = "serve from memory: {}, 10 clusters"
    return [
        Row(title.format("load_model"), seconds(times), target=ONE_SECOND, value=statistics.median(times),
            note=f"processor seconds in a new process that has imported the package, {memory:,.0f} MiB more"),
        Row(title.format("files of the model"), f"{megabytes:.1f} MB", target=FIFTY_MB, value=megabytes),
    ]  # fmt: skip


def _load(folder: str) -> Callable[[], int]:
    return lambda: len(mm.load_model(folder).metrics)


def _row(what: str, arguments: list[str], bound: float, rounds: int, *, inside: bool = False) -> Row:
    if rounds > 1:
        _start(arguments)  # whatever is to be compiled or cached
    runs = [_start(arguments) for _ in range(rounds)]
    wall = [float(printed) if inside else whole for whole, _, printed in runs]
    busy = [processor for _, processor, _ in runs]
    return Row(
        what,
        seconds(wall),
        target=Target(bound, "s", at_least=False),
        value=statistics.median(wall),
        note=f"wall clock{' of the import alone' if inside else ' of the process'}; "
        f"{seconds(statistics.median(busy))} of the processor for the whole process",
    )


def _start(arguments: list[str]) -> tuple[float, float, str]:
    """Seconds of the wall clock, seconds of the processor, and the last line written."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # byte code is there after the first use, too
    done = subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=300, env=kept
    )
    whole, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return whole, busy, done.stdout.strip().splitlines()[-1]
