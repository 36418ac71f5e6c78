"""What the light package costs to fetch: its wheel and those of all it needs, counted and weighed.

    make size    or    python -m benchmarks.size

pip resolves and fetches them into a temporary folder, as for a machine that has nothing yet. This runs without any
other package.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_PACKAGES, MOST_MEGABYTES, MOST_STARTER = 45, 115, 12  # megabytes beside the starter model, and of it
STARTER = "manymetrics/model/starter/"  # in the wheel of the package
MEGABYTE = 1_000_000


class NotFetched(Exception):
    """pip could not fetch the wheels; the message is its last line."""


def wheel_sizes(project: Path = ROOT) -> dict[str, int]:
    """Wheel -> bytes, of the project and of all that it needs without extras; and of the starter in them."""
    with tempfile.TemporaryDirectory(prefix="manymetrics-size-") as folder:
        options = ["--quiet", "--prefer-binary", "--wheel-dir", folder]
        command = [sys.executable, "-m", "pip", "wheel", *options, str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise NotFetched((done.stderr.strip() or "no message").splitlines()[-1])
        wheels = list(Path(folder).glob("*.whl"))
        starter = sum(map(starter_size, wheels))
        return {path.name: path.stat().st_size for path in wheels} | {STARTER: starter}


def starter_size(wheel: Path) -> int:
    """The bytes of the starter model in a wheel, compressed."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(entry.compress_size for entry in archive.infolist() if entry.filename.startswith(STARTER))


def main() -> None:
    """Print every wheel with its size, then their number and sum; fail if there is too much."""
    try:
        sizes = wheel_sizes()
    except NotFetched as problem:
        sys.exit(f"pip could not fetch the wheels: {problem}")
    starter = sizes.pop(STARTER) / MEGABYTE
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{size / MEGABYTE:7.1f} MB  {name}\n")
    megabytes = sum(sizes.values()) / MEGABYTE - starter
    allowed = f"at most {MOST_PACKAGES} packages, {MOST_MEGABYTES} MB and {MOST_STARTER} MB"
    sys.stdout.write(f"{len(sizes)} packages, {megabytes:.0f} MB and {starter:.0f} MB for the starter ({allowed})\n")
    if len(sizes) > MOST_PACKAGES or megabytes > MOST_MEGABYTES or starter > MOST_STARTER:
        sys.exit("The light package has become too large.")


if __name__ == "__main__":
    main()
