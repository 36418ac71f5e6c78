"""A folder -> what can be told of it: a model, a run of `learn`, or the results of `reproduce`."""

import json
from dataclasses import dataclass
from pathlib import Path

from manymetrics.errors import InputError
from manymetrics.report.results import FORMAT, Results, results_from
from manymetrics.store import Learned, load_learned

RESULTS, LEARNED, MODEL, RUN = "results.json", "learned", "checksums.json", "recipe.toml"
EXPECTED = "Give the folder that `learn --out`, `learn --run` or `reproduce --out` wrote."


@dataclass(frozen=True, eq=False)
class Findings:
    """What was learned and, where it was tried on targets, how well it did."""

    learned: Learned
    results: Results | None = None


def read_findings(place: str | Path) -> Findings:
    """Read a model folder, a finished run, or the results of an experiment; refuses any other folder."""
    folder = Path(place)
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "is not there"
        raise InputError(f"There is nothing to report in {folder}: it {found}. {EXPECTED}")
    if (folder / RESULTS).is_file():
        return Findings(load_learned(folder / LEARNED), _read_results(folder / RESULTS))
    if (folder / MODEL).is_file():
        return Findings(load_learned(folder))
    if (folder / LEARNED).is_dir():
        return Findings(load_learned(folder / LEARNED))
    if (folder / RUN).is_file():
        raise InputError(f"The run in {folder} has not finished. Give the `learn` command again; it goes on there.")
    raise InputError(f"There is nothing to report in {folder}: it is neither a model nor a run. {EXPECTED}")


def _read_results(path: Path) -> Results:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        form = int(raw["format"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(f"{path} is damaged: {problem!r}. Give the `reproduce` command again.") from problem
    if form > FORMAT:
        raise InputError(
            f"{path} has format {form}, and this version of manymetrics reads up to {FORMAT}. Upgrade manymetrics."
        )
    try:
        return results_from(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"{path} is damaged: {problem!r}. Give the `reproduce` command again.") from problem
