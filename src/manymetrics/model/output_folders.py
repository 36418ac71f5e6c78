"""The folders of a model and of its run, checked before an hour of learning rather than after it."""

import os
from pathlib import Path

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.model.metric_model import MetricModel
from manymetrics.store.runs import check_run_folder


def check_output_folders(
    bank: str | Path | None, *, out: str | Path, run: str | Path | None = None, replace: bool = True
) -> None:
    """Refuse folders that learning could not write to; `bank` is the folder of the tasks, if there is one.

    Without `replace` a folder that holds a model is refused too.
    """
    MetricModel.check_output_folder(out, replace=replace)
    if run is not None:
        check_run_folder(Path(run))
        if bank is not None and Path(run).resolve() == Path(bank).resolve():
            raise InputError(f"The run {run} is the folder of the tasks. Give the run a folder of its own.")
        if Path(out).resolve().is_relative_to(Path(run).resolve()) or Path(run).resolve().is_relative_to(
            Path(out).resolve()
        ):
            raise InputError(f"The model {out} and the run {run} would lie in one another. Give each its own folder.")
    for path in (out,) if run is None else (out, run):
        _require_writable_parent(Path(path))


def _require_writable_parent(path: Path) -> None:
    for parent in path.absolute().parents:
        if parent.is_symlink() and not parent.exists():
            raise InputError(f"{parent} is a link to nothing. Fix it, or choose another folder for {path.name}.")
        if parent.exists():
            if not parent.is_dir() or not os.access(parent, os.W_OK):
                raise EnvironmentProblem(f"Nothing can be written to {parent}. Choose another folder for {path.name}.")
            return
