"""How jobs are run: where, within which limits, in which run, and who receives their progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from manymetrics.engine.progress import Progress, shown
from manymetrics.engine.run_job import NO_LIMITS, Limits, need_nothing
from manymetrics.engine.stage import Engine
from manymetrics.store import Run


@dataclass(frozen=True)
class Execution:
    """The setting of a computation that is made of jobs; the results do not depend on it."""

    report: Callable[[Progress], None]
    run: Run | None = None
    workers: int = 1
    ray: str | None = None
    limits: Limits = NO_LIMITS

    def open(self, shared: Any, *, prepare_worker: Callable[[], None] = need_nothing) -> Engine:
        """An engine whose jobs use `shared`; to be closed by `with`."""
        return Engine(shared, workers=self.workers, ray=self.ray, limits=self.limits, get_ready=prepare_worker,
                      run=self.run, report=self.report)  # fmt: skip


@contextmanager
def executing(about: str, *, run: str | Path | None = None, report: Callable[[Progress], None] | None = None,
              workers: int = 1, ray: str | None = None, limits: Limits = NO_LIMITS) -> Iterator[Execution]:  # fmt: skip
    """An execution whose progress is shown, on one thread; its run is locked, and marked as finished at the end.

    `about` describes the computation in the manifest of the run.
    """
    with (
        threadpool_limits(1),
        shown(report) as on_progress,
        nullcontext() if run is None else Run.open(run, about) as opened,
    ):
        yield Execution(on_progress, opened, workers, ray, limits)
        if opened is not None:
            opened.finish()
