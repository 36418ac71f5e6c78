"""Kill -9 a learning again and again, at random moments, and see that the same command ends with the same bytes.

    python tests/survival.py --runs 30        # all of it; some twenty minutes
    python tests/survival.py --runs 2         # what the tests do

Each run is started with the same command until it ends by itself. On the way the driver, or one of its workers, is
killed several times. At the end the manifest and every job must equal those of a run that nobody disturbed, and no
job that was finished may have been done a second time: its file keeps the time at which it was first written.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tiny_sentence import vocabulary_of, write_folder

TASKS = 16
RECIPE = "projection_steps = 200\nown_steps = 20\nown_rate = 0.01\nclusters = 4\n"  # and a small sentence encoder
LONGEST = 300.0  # seconds of one start


def command(folder: Path) -> list[str]:
    """The command that learns from the bank in the folder."""
    bank, out, run, recipe = (str(folder / name) for name in ("bank", "model", "run", "recipe.toml"))
    learn = [sys.executable, "-m", "manymetrics", "learn", bank, "--out", out, "--run", run, "--recipe", recipe]
    return [*learn, "--workers", "2", "--replace", "-q"]


def prepare(folder: Path) -> None:
    """A small bank and the default recipe, shortened, with a small sentence encoder that all runs have in common."""
    import manymetrics as mm

    folder.mkdir(parents=True)
    past, _ = mm.sample_bank(0, tasks=TASKS).split_off()
    mm.write_bank(past, folder / "bank")
    encoder = folder.parent / "encoder"
    if not encoder.exists():
        write_folder(encoder, pooling="mean", vocabulary=vocabulary_of(past), width=16)
    (folder / "recipe.toml").write_text(f"encoder = {json.dumps(str(encoder))}\n{RECIPE}", encoding="utf-8")


def content(folder: Path) -> dict[str, bytes]:
    """All that must not depend on what happened on the way: jobs, manifest, model."""
    kept = [*(folder / "run" / "jobs").rglob("*"), folder / "run" / "manifest.json", *(folder / "model").iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def written(folder: Path) -> dict[str, int]:
    """When each finished job was written."""
    found = {}
    for path in (folder / "run" / "jobs").glob("*/*/*"):
        with contextlib.suppress(FileNotFoundError):  # a file that is being written has another name until it is whole
            if not path.name.startswith("."):
                found[path.name] = path.stat().st_mtime_ns
    return found


def workers_of(driver: int) -> list[int]:
    """The processes a driver has started, as far as they work on jobs."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            line = (status.parent / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == driver and b"spawn_main" in line:
            found.append(int(status.parent.name))
    return found


def wait_for_jobs(folder: Path, count: int, driver: subprocess.Popen[bytes]) -> None:
    """Until so many jobs are finished, or the driver is."""
    while driver.poll() is None and len(written(folder)) < count:
        time.sleep(0.01)


def disturb(folder: Path, rng: random.Random, *, kills: int, jobs: int) -> dict[str, int]:
    """Learn, with so many kills on the way; says how many of what were killed, and how often it was started."""
    counts = {"driver": 0, "worker": 0, "starts": 0}
    before: dict[str, int] = {}
    while True:
        counts["starts"] += 1
        driver = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while driver.poll() is None and counts["driver"] + counts["worker"] < kills:
            wait_for_jobs(folder, rng.randint(min(len(written(folder)), jobs - 1), jobs - 1), driver)
            time.sleep(rng.uniform(0.0, 0.5))
            victims = workers_of(driver.pid) if rng.random() < 0.5 else [driver.pid]
            if driver.poll() is None and victims:
                victim = rng.choice(victims)
                counts["driver" if victim == driver.pid else "worker"] += 1
                os.kill(victim, signal.SIGKILL)
        _, told = driver.communicate(timeout=LONGEST)
        now = written(folder)
        repeated = [key for key, moment in before.items() if now.get(key) != moment]
        assert not repeated, f"{len(repeated)} finished jobs were done again"
        before = now
        if driver.returncode == 0:
            return counts
        assert driver.returncode == -signal.SIGKILL, told.decode()


def survive(folder: Path, *, runs: int, seed: int = 0) -> Iterator[dict[str, int]]:
    """So many disturbed runs, each compared with an undisturbed one."""
    prepare(folder / "straight")
    subprocess.run(command(folder / "straight"), check=True, capture_output=True, timeout=LONGEST)
    wanted, jobs = content(folder / "straight"), len(written(folder / "straight"))
    for number in range(runs):
        rng = random.Random(seed * 1000 + number)
        prepare(folder / str(number))
        began = time.monotonic()
        counts = disturb(folder / str(number), rng, kills=rng.randint(2, 5), jobs=jobs)
        got = content(folder / str(number))
        assert got.keys() == wanted.keys(), set(got) ^ set(wanted)
        assert got == wanted, [name for name in wanted if got[name] != wanted[name]]
        yield {"run": number, **counts, "seconds": round(time.monotonic() - began)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder:
        kills = 0
        for row in survive(Path(folder), runs=chosen.runs, seed=chosen.seed):
            kills += row["driver"] + row["worker"]
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
        sys.stdout.write(f"{chosen.runs} of {chosen.runs} runs ended as an undisturbed one, after {kills} kills.\n")


if __name__ == "__main__":
    main()
