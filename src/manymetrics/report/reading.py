"""A folder -> where the model in it comes from: a saved model, or a finished run of `learn`."""

from pathlib import Path

from manymetrics.errors import InputError
from manymetrics.model import Origin, load_origin
from manymetrics.store.folders import SEAL
from manymetrics.store.runs import is_run

LEARNED = "learned"
EXPECTED = "Give the folder that `learn --out` or `learn --run` wrote."


def read_origin(place: str | Path) -> Origin:
    """Where the model of a model folder or of a finished run comes from; refuses any other folder."""
    folder = Path(place)
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "is not there"
        raise InputError(f"There is nothing to report in {folder}: it {found}. {EXPECTED}")
    if (folder / SEAL).is_file():
        return load_origin(folder)
    if (folder / LEARNED).is_dir():
        return load_origin(folder / LEARNED)
    if is_run(folder):
        raise InputError(f"The run in {folder} has not finished. Give the `learn` command again; it goes on there.")
    raise InputError(f"There is nothing to report in {folder}: it is neither a model nor a run. {EXPECTED}")
