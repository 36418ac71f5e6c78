"""Many damaged files, whose checksums fit: each is refused in a sentence, or gives finite answers.

    python tests/faults/mutate.py --count 2000

Models, classifiers, runs, recipes, and banks of each format. They are tried in child processes that may take 2 GiB
beyond what is loaded; a file that takes longer than 30 seconds, or ends its process, is found out too.
"""

import argparse
import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import damage
import numpy as np
from operations import Learn, worlds
from threadpoolctl import threadpool_limits

import manymetrics as mm
from manymetrics.learn import learn_metrics
from manymetrics.model import load_classifier, load_model, load_origin
from manymetrics.store import runs
from manymetrics.store.files import DIGEST, with_checksum

MEMORY, SECONDS = 2 * 2**30, 30
BATCH = 50  # files that one child tries
NEW = ["lamp on", "any music", "", "é \x00 😀"]
RASA_YML = """version: "3.1"
nlu:
- intent: lamp
  examples: |
    - turn on the [lamp](thing)
    - lamp on please
    - light in here
- intent: music
  examples: |
    - play some jazz
    - put on [music]{"entity": "thing"}
    - play that song
"""


@dataclass(frozen=True)
class Target:
    """A kind of file: where it is, how it is damaged, and what reads it."""

    name: str
    share: int  # of a thousand
    files: object  # folder -> the files it may be
    way: object  # (bytes, generator) -> bytes
    use: object  # folder -> None
    write_checksum: object = None  # (folder, path) -> None, after the file is written


def finite(classifier) -> None:
    """Ask a classifier everything."""
    with np.errstate(all="ignore"):
        assert np.isfinite(classifier.predict_proba(NEW)).all(), "an answer is not finite"
        assert np.isfinite(classifier.scope_proba(NEW)).all(), "a scope is not finite"
        assert np.isfinite(classifier.explain("lamp").probability), "an explanation is not finite"
    assert len(classifier.predict(NEW)) == len(NEW)


def use_model(folder: Path) -> None:
    """Load, adapt, predict."""
    finite(load_model(folder / "model").adapt(worlds.SHOTS.texts, worlds.SHOTS.labels))


def use_origin(folder: Path) -> None:
    """Read where a model comes from, and a run's too."""
    for place in ("model", "run/learned"):
        origin = load_origin(folder / place)
        assert np.isfinite(origin.similarity.low_rank).all(), "X is not finite"
    model = load_model(folder / "model")
    assert model.origin.recipe.as_toml()
    assert len(list(model.clusters)) <= len(model.clusters.names)


class Bases:
    """What is damaged, whole."""

    def __init__(self, folder: Path) -> None:
        self.learn = Learn()
        self.model = worlds.handmade_model(shared_labels=("lamp", "meeting", "music"), letter_buckets=64)
        learn_metrics(self.learn.bank, self.learn.recipe, vectors=self.learn.vectors, run=folder / "run")
        self.model.save(folder / "model")
        shots = worlds.SHOTS
        self.model.adapt(shots.texts[3:9], shots.labels[3:9], ["go away"], reject=0.1).save(folder / "classifier")
        (folder / "recipe.toml").write_text(self.learn.recipe.as_toml(explained=True), encoding="utf-8")
        self.write_banks(folder / "banks")

    def write_banks(self, folder: Path) -> None:
        """A bank in each format, with a sound task beside the one that is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pairs = zip(worlds.SHOTS.texts, worlds.SHOTS.labels, strict=True)
        rows = [{"text": text, "label": label} for text, label in pairs]
        contents = {
            "tsv": "".join(f"{row['text']}\t{row['label']}\n" for row in rows),
            "csv": "text,label\n" + "".join(f'"{row["text"]}",{row["label"]}\n' for row in rows),
            "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            "yml": RASA_YML,
        }
        for ending, content in contents.items():
            mm.write_bank(worlds.planted_bank(1), folder / ending)
            part = "" if ending == "yml" else ".train"
            (folder / ending / f"odd{part}.{ending}").write_text(content, encoding="utf-8")
        mm.write_bank(worlds.planted_bank(1), folder / "parquet")
        pq.write_table(pa.Table.from_pylist(rows), folder / "parquet" / "odd.train.parquet")

    def use_classifier(self, folder: Path) -> None:
        """Load with its model, predict."""
        finite(load_classifier(folder / "classifier", self.model))

    def use_run(self, folder: Path) -> None:
        """Go on with a run, use what comes of it."""
        model = learn_metrics(self.learn.bank, self.learn.recipe, vectors=self.learn.vectors, run=folder / "run")
        finite(model.adapt(worlds.SHOTS.texts, worlds.SHOTS.labels))


def reseal(folder: Path, path: Path) -> None:
    """The checksum of a file, as another program would change it with the file."""
    damage.hostile.rewrite(path.parent, path.name, path.read_bytes())


def behind_checksum(way):
    """Damage behind the checksum of a job's file, which is made to fit afterwards."""

    def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
        payload = raw[DIGEST:]
        return way(payload, rng) if payload[:1] != b"{" else damage.json_of(payload, rng)

    return damaged


def json_or_toml(raw: bytes, rng: np.random.Generator) -> bytes:
    return (damage.json_of if raw[:1] == b"{" else damage.toml)(raw, rng)


def write_checksum(folder: Path, path: Path) -> None:
    path.write_bytes(with_checksum(path.read_bytes(), path.name))


def use_bank(ending: str):
    def use(folder: Path) -> None:
        bank = mm.load_tasks(folder / "banks" / ending)
        assert all(len(task.train) for task in bank)
        with contextlib.suppress(mm.ManyMetricsError):
            mm.import_tasks(next((folder / "banks" / ending).glob("odd*")))

    return use


def targets(bases: Bases) -> list[Target]:
    """Every kind of file."""
    run_files = ("run.json", "manifest.json", "recipe.toml")
    found = [
        Target("model/predictor", 250, lambda folder: [folder / "model/predictor.safetensors"],
               damage.either(damage.packed), use_model, reseal),
        Target("model/origin", 150, lambda folder: [folder / "model/origin.safetensors"],
               damage.either(damage.packed), use_origin, reseal),
        Target("classifier", 125, lambda folder: [folder / "classifier/classifier.safetensors"],
               damage.either(damage.packed), bases.use_classifier, reseal),
        Target("run/jobs", 110, lambda folder: sorted(p for p in (folder / "run/jobs").rglob("*") if p.is_file()),
               behind_checksum(damage.either(damage.job)), bases.use_run, write_checksum),
        Target("run/*.json", 40, lambda folder: [folder / "run" / name for name in run_files],
               damage.either(json_or_toml), bases.use_run),
        Target("run/learned", 30, lambda folder: [folder / "run/learned/origin.safetensors"],
               damage.either(damage.packed), use_origin, reseal),
        Target("recipe.toml", 50, lambda folder: [folder / "recipe.toml"], damage.either(damage.toml),
               lambda folder: mm.Recipe.load(folder / "recipe.toml")),
        Target("bank/manifest.json", 35, lambda folder: [folder / "banks/tsv/manifest.json"],
               damage.either(damage.json_of), use_bank("tsv")),
    ]  # fmt: skip
    ways = {"tsv": damage.text_of, "csv": damage.text_of, "jsonl": damage.json_lines, "parquet": damage.some_bytes,
            "yml": damage.text_of}  # fmt: skip
    for ending, way in ways.items():
        found.append(
            Target(f"bank/{ending}", 30, lambda folder, e=ending: list((folder / "banks" / e).glob(f"odd*.{e}")),
                   damage.either(way), use_bank(ending))
        )  # fmt: skip
    return found


@dataclass
class Case:
    """One damaged file."""

    target: Target
    number: int


def cases(bases: Bases, count: int) -> list[Case]:
    """So many damaged files, of each kind its share."""
    found = targets(bases)
    whole = sum(target.share for target in found)
    return [Case(target, number) for target in found for number in range(max(1, round(count * target.share / whole)))]


def attempt(case: Case, folder: Path, seed: int) -> str:
    """What came of one: refused, used, or what is wrong."""
    rng = np.random.default_rng([seed, case.number, *case.target.name.encode()])
    every = case.target.files(folder)
    path = every[int(rng.integers(len(every)))]
    raw = path.read_bytes()
    kept = {one: one.read_bytes() for one in (path, path.parent / "checksums.json") if one.exists()}
    if case.target.use.__name__ == "use_run":
        shutil.copytree(folder / "run", folder / "run-kept")
    try:
        path.write_bytes(case.target.way(raw, rng))
        if case.target.write_checksum:
            case.target.write_checksum(folder, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.target.use(folder)
    except mm.ManyMetricsError:
        return "refused"
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        return f"WRONG {type(problem).__name__}: {str(problem)[:120]!r} ({Path(last.filename).name}:{last.lineno})"
    finally:
        if (folder / "run-kept").exists():
            shutil.rmtree(folder / "run")
            (folder / "run-kept").rename(folder / "run")
        else:
            for one, content in kept.items():
                one.write_bytes(content)
    return "used"


def _late(*_: object) -> None:
    raise TimeoutError(f"took longer than {SECONDS} s")


def _try_all(batch: list[Case], folder: Path, seed: int, out: int) -> None:
    """In a child: try a batch, and tell of each in a line."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    signal.signal(signal.SIGALRM, _late)
    for case in batch:
        began = time.monotonic()
        signal.alarm(SECONDS)
        said = attempt(case, folder, seed)
        signal.alarm(0)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        os.write(out, (json.dumps([said, round(time.monotonic() - began, 3), most]) + "\n").encode())


def try_batch(batch: list[Case], folder: Path, seed: int) -> list[tuple[str, float, int]]:
    """What came of each of a batch, with its seconds and the MiB its process had held at most."""
    shutil.copytree(folder, place := folder.with_name("tried"))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _try_all(batch, place, seed, writing)
        finally:
            os._exit(0)
    os.close(writing)
    told = b""
    while select.select([reading], [], [], 2 * SECONDS)[0] and (more := os.read(reading, 65536)):
        told += more
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    shutil.rmtree(place)
    found = [tuple(json.loads(line)) for line in told.splitlines()]
    if len(found) < len(batch):  # the next one ended the process: the others are tried in another
        found.append(("WRONG ended its process, or hung", float(SECONDS), 0))
        found += try_batch(batch[len(found) :], folder, seed) if len(found) < len(batch) else []
    return found


def run(count: int, seed: int, place: Path, tell=lambda line: None) -> Counter:
    """Try so many; how many were refused, used, and wrong."""
    runs.SECOND_TRY = 0.0
    (place / "whole").mkdir()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bases = Bases(place / "whole")
        for target in targets(bases):
            target.use(place / "whole")  # as it is, it can be used; and all is loaded that will be
        shutil.rmtree(place / "whole" / "run")
        learn = bases.learn
        learn_metrics(learn.bank, learn.recipe, vectors=learn.vectors, run=place / "whole" / "run")
        every, totals, slowest, largest = cases(bases, count), Counter(), 0.0, 0
        by_target: dict[str, Counter] = {}
        for at in range(0, len(every), BATCH):
            batch = every[at : at + BATCH]
            for case, (said, seconds, most) in zip(batch, try_batch(batch, place / "whole", seed), strict=True):
                kind = said.split()[0]
                totals[kind] += 1
                by_target.setdefault(case.target.name, Counter())[kind] += 1
                slowest, largest = max(slowest, seconds), max(largest, most)
                if kind == "WRONG":
                    tell(f"    {case.target.name} {case.number}: {said}")
    for name, found in by_target.items():
        tell(f"{name}: {found['refused']} refused, {found['used']} used, {found['WRONG']} wrong")
    tell(
        f"{sum(totals.values())} damaged files: {totals['refused']} refused, {totals['used']} used, "
        f"{totals['WRONG']} wrong; the slowest took {slowest:.1f} s, the largest process held {largest} MiB."
    )
    return totals


def main() -> int:
    """The command line; gives how many were wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with TemporaryDirectory() as place:

        def tell(line: str) -> None:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

        return run(chosen.count, chosen.seed, Path(place).resolve(), tell)["WRONG"]


if __name__ == "__main__":
    sys.exit(min(main(), 1))
