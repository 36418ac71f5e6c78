"""After another model was put live: adapt every classifier to it, compare, and keep what is better.

The leave-one-out estimate is made with both models on the same examples. Unless it falls below the interval of the
earlier one, the classifier gets a new version with the new model; the earlier version stays, to roll back to. Whoever
rolls back keeps the earlier model until yet another is put live.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from sqlalchemy import select

import manymetrics as mm
from manymetrics.service.classifiers import Change, Classifiers, State
from manymetrics.service.database import Database
from manymetrics.service.fitting import estimate, fit
from manymetrics.service.problems import NotFound, Problem
from manymetrics.service.queue import FairQueue
from manymetrics.service.records import Classifier
from manymetrics.service.rows import labelled
from manymetrics.service.tenants import Caller

TURN = "readapting"  # the line of the fair queue that this work waits in
AT_ONCE = 100
logger = logging.getLogger("manymetrics.service")


class Readapting:
    """The background work of one process; several processes may do it on one database."""

    def __init__(self, database: Database, classifiers: Classifiers, work: FairQueue, *, pause: float) -> None:
        self.database, self.classifiers, self._work = database, classifiers, work
        self._pause = pause  # seconds between looks
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="readapting", daemon=True)

    def start(self) -> None:
        """Begin to look for classifiers that have not met the live model."""
        self._thread.start()

    def stop(self) -> None:
        """End after the classifier that is being adapted."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(20)

    def run_once(self) -> int:
        """Adapt the classifiers that have not met the live model; gives how many were looked at."""
        model = self.classifiers.models.live()
        waiting = self._waiting(model.fingerprint)
        for caller, classifier_id in waiting:
            if self._ended.is_set():
                break
            try:
                self._work.submit(TURN, lambda who=caller, which=classifier_id: self._meet(who, which, model)).result()
            except NotFound:
                continue  # deleted meanwhile
        return len(waiting)

    def _run(self) -> None:
        while not self._ended.wait(max(self._pause, 0.2)):
            try:
                while not self._ended.is_set() and self.run_once():
                    pass
            except Problem:
                continue  # no model is live, or the queue is full: the next look finds the same work
            except Exception as problem:
                logger.error("readapting: %s", type(problem).__name__)

    def _waiting(self, fingerprint: str) -> Sequence[tuple[Caller, str]]:
        query = select(Classifier.tenant_id, Classifier.id).where(Classifier.settled_model != fingerprint)
        with self.database.read() as session:
            rows = session.execute(query.order_by(Classifier.updated_at.desc()).limit(AT_ONCE)).all()
        return [(Caller(tenant, "", TURN, ()), one) for tenant, one in rows]

    def _meet(self, caller: Caller, classifier_id: str, model: mm.MetricModel) -> None:
        state = self.classifiers.state(caller, classifier_id)
        if state.version.model != model.fingerprint and not _is_worse(state, model):
            earlier = state.version.accuracy

            def plan(found: State) -> Change:
                return Change("model", options=dict(found.version.settings), model=model.fingerprint, before=earlier)

            self.classifiers.change(caller, classifier_id, plan)
        self.classifiers.settle(caller, classifier_id, model.fingerprint)


def _is_worse(state: State, model: mm.MetricModel) -> bool:
    """Whether the examples answer one another clearly worse with this model than with their own."""
    earlier = state.version
    if earlier.accuracy is None or earlier.low is None:
        return False
    found = estimate(fit(model, labelled(state.rows), earlier.settings))
    return found is not None and found.accuracy < earlier.low
