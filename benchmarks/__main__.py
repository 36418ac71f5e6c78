"""The benchmarks' own command line.

python -m benchmarks                                   everything
python -m benchmarks encoder completion --rounds 7     these themes; the others keep their results
python -m benchmarks --page-only                       the page again, with the marks of stale themes
python -m benchmarks --quick --no-peers                seconds: does everything run?
"""

import importlib
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks.harness import Options
from benchmarks.page import TITLES, keep, record, sources_digest, write_page

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "kept" / "performance.json"
QUICK = ROOT / "build" / "bench.json"

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read by libraries that the themes, and processes of their own, load later
os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}


@click.command()
@click.argument("themes", nargs=-1, type=click.Choice(list(TITLES)))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that everything runs. The page is not touched.")
@click.option("--peers/--no-peers", default=True, show_default=True, help="Run the peers that are installed.")
@click.option("--page-only", is_flag=True, help="Measure nothing: write the page from the results that are kept.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where the results go, as JSON.")
@click.option("--page", type=click.Path(path_type=Path), default=None, help="Where the page goes.")
def main(*, themes: tuple[str, ...], rounds: int, seed: int, quick: bool, peers: bool, page_only: bool,
         out: Path | None, page: Path | None) -> None:  # fmt: skip
    """Measure the THEMES (all, if none is named) and write JSON and the page."""
    options = Options(rounds, quick, peers, seed)
    out = out or (QUICK if quick else RESULTS)
    merged = keep(out, {}, quick=quick)
    for theme in () if page_only else themes or TITLES:
        merged = keep(out, {theme: measure(theme, options)}, quick=quick)  # nothing is lost to an interruption
    page = page or (out.with_name("performance.md") if quick else PAGE)
    page.write_text(write_page(merged, quick=quick), encoding="utf-8")
    click.echo(f"wrote {out.name} and {page.name}")


def measure(theme: str, options: Options) -> dict[str, object]:
    """Run one theme, and say on the way what came out."""
    click.echo(f"{theme} ...")
    started, begun = datetime.now(UTC), time.perf_counter()
    module = importlib.import_module(f"benchmarks.{theme}")
    digest = sources_digest(module.SOURCES)  # of the code that is measured, before it can change
    rows = module.run(options)
    for row in rows:
        ratio = f"  {row.ratio.median:.3g} × [{row.ratio.low:.3g}, {row.ratio.high:.3g}]" if row.ratio else ""
        click.echo(f"  {row.what}: {row.ours}{f' against {row.peer}' if row.peer else ''}{ratio}  "
                   f"{row.target or ''} {row.verdict}  ({row.note})")  # fmt: skip
    click.echo(f"  {time.perf_counter() - begun:.0f} s")
    peers = "" if options.peers else " --no-peers"
    command = f"python -m benchmarks {theme} --rounds {options.rounds} --seed {options.seed}{peers}"
    return record(rows, options, command=command, now=started, sources=module.SOURCES, digest=digest)


if __name__ == "__main__":
    sys.exit(main())
