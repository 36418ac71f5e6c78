"""Disturb every operation at every one of its file operations, in every way; a line for each.

python tests/faults/loop.py --all          # every file operation; some minutes
python tests/faults/loop.py --sample 12    # so many of each, from the first to the last
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from injection import MODES
from operations import CHEAP, LEARNING, Loop
from threadpoolctl import threadpool_limits

from manymetrics.store import runs


def main() -> int:
    """The command line; gives how many were wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=12)
    parser.add_argument("--only", default="", help="operations whose names hold this")
    chosen = parser.parse_args()
    runs.SECOND_TRY = 0.0
    tried = wrong = 0
    for operation in [one for one in (kind() for kind in CHEAP + LEARNING) if chosen.only in one.name]:
        with TemporaryDirectory() as place, threadpool_limits(1):
            began, loop = time.monotonic(), Loop(operation, Path(place).resolve())
            which = range(len(loop.steps)) if chosen.all else loop.spread(chosen.sample)
            found = [told for mode in MODES for at in which if (told := loop.try_at(mode, at))]
            tried, wrong = tried + len(MODES) * len(which), wrong + len(found)
            seconds = time.monotonic() - began
            sys.stdout.write(
                f"{loop.operation.name}: {len(which)} of {len(loop.steps)} file operations x {len(MODES)} faults, "
                f"{len(found)} wrong, {seconds:.0f} s\n" + "".join(f"    {told}\n" for told in found)
            )
            sys.stdout.flush()
    sys.stdout.write(f"{tried} faults, {wrong} wrong.\n")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
