"""Where a model and the run that makes it are to lie, looked at before an hour of learning rather than after it."""

import os
from pathlib import Path

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.model.metric_model import MetricModel
from manymetrics.store.runs import require_run_place


def require_places(bank: str | Path, *, out: str | Path, run: str | Path | None = None) -> None:
    """Refuse places for a model and a run that learning could not write to."""
    out, run = Path(out), None if run is None else Path(run)
    MetricModel.require_place(out)
    if run is not None:
        require_run_place(run)
        if run.resolve() == Path(bank).resolve():
            raise InputError(f"The run {run} is the folder of the tasks. Give the run a folder of its own.")
        one, other = out.resolve(), run.resolve()
        if one == other or one in other.parents or other in one.parents:
            raise InputError(f"The model {out} and the run {run} would lie in one another. Give each its own folder.")
    for place in (out,) if run is None else (out, run):
        _require_writable_parent(place)


def _require_writable_parent(place: Path) -> None:
    for parent in place.absolute().parents:
        if parent.is_symlink() and not parent.exists():
            raise InputError(f"{parent} is a link to nothing. Mend it, or choose another place for {place.name}.")
        if parent.exists():
            if not parent.is_dir() or not os.access(parent, os.W_OK):
                raise EnvironmentProblem(f"Nothing can be written to {parent}. Choose another place for {place.name}.")
            return
