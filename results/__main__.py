"""`python -m results [--amazon DIR] [--intent DIR]`: keep results of experiments, and write docs/results.md.

An experiment that is not given keeps the results that are here.
"""

import argparse
import json
import shutil
from pathlib import Path

from results.page import EXPERIMENTS, write_page

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"


def main() -> None:
    """Take over the results that are given, and make the page of all there are."""
    parser = argparse.ArgumentParser(prog="results", description=__doc__)
    for name in EXPERIMENTS:
        parser.add_argument(f"--{name}", metavar="DIR", help=f"folder that `manymetrics reproduce {name}` wrote")
    given = vars(parser.parse_args())
    for name in EXPERIMENTS:
        if given[name]:
            shutil.copyfile(Path(given[name]) / "results.json", HERE / f"{name}.json")
    kept = {
        name: json.loads(path.read_text("utf-8")) for name in EXPERIMENTS if (path := HERE / f"{name}.json").exists()
    }
    PAGE.write_text(write_page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
