"""After another model was put live: adapt every classifier to it, and use it unless it is worse.

The leave-one-out accuracy is estimated with both models on the same examples. Unless it falls below the interval of the
earlier one, the classifier gets a new version with the new model; the earlier version remains and can be rolled back
to. A classifier that was rolled back uses the earlier model until yet another is put live.
"""

import contextlib
import logging
import threading
from functools import partial

from sqlalchemy import select

import manymetrics as mm
from manymetrics.service.domain.classifiers import Classifiers
from manymetrics.service.domain.errors import Invalid, NotFound, RequestError
from manymetrics.service.domain.fitting import fit
from manymetrics.service.domain.schemas import labelled
from manymetrics.service.domain.tenants import Caller
from manymetrics.service.domain.versions import Change, State, estimate, find
from manymetrics.service.runtime.scheduler import WorkQueue
from manymetrics.service.storage.tables import Classifier, Tenant

TENANT = "readapting"  # the tenant queue that this work waits in
MAX_CLASSIFIERS = 100  # read from the database at once
logger = logging.getLogger("manymetrics.service")


class Readapting:
    """The background work of one process; several processes may do it on one database."""

    def __init__(self, classifiers: Classifiers, work: WorkQueue, *, pause: float) -> None:
        self.classifiers, self._work = classifiers, work
        self._pause = max(pause, 0.2)  # seconds between two checks
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Check for classifiers that were not compared with the live model."""
        self._thread.start()

    def stop(self) -> None:
        """End after the classifier that is being adapted."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(20)

    def run_once(self) -> int:
        """Compare classifiers with the live model, those changed last first; gives how many there were."""
        model = self.classifiers.models.live()
        query = select(Tenant, Classifier.id).join(Classifier, Classifier.tenant_id == Tenant.id)
        query = query.where(Classifier.settled_model != model.fingerprint)
        with self.classifiers.database.read() as session:
            pending = session.execute(query.order_by(Classifier.updated_at.desc()).limit(MAX_CLASSIFIERS)).all()
        for tenant, classifier_id in pending:
            if self._stopped.is_set():
                break
            caller = Caller(tenant.id, tenant.name, TENANT, (), tenant.limits)
            try:
                self._work.submit(TENANT, partial(self._adapt, caller, classifier_id, model)).result()
            except NotFound:
                continue  # deleted meanwhile
        return len(pending)

    def _run(self) -> None:
        while not self._stopped.wait(self._pause):
            try:
                self.run_once()
            except RequestError:
                continue  # no model is live, or the queue is full: the next check finds the same work
            except Exception as error:
                logger.error("readapting: %s", type(error).__name__)

    def _adapt(self, caller: Caller, classifier_id: str, model: mm.MetricModel) -> None:
        state = self.classifiers.state(caller, classifier_id)

        def plan(current: State) -> Change:
            before = state.version.accuracy
            return Change("model", current.version.settings, model=model.fingerprint, before=before)

        with contextlib.suppress(Invalid):  # such as beyond a limit that was lowered: it uses the earlier model
            if state.version.model != model.fingerprint and not _is_worse(state, model):
                self.classifiers.change(caller, classifier_id, plan)
        with self.classifiers.database.write() as session:
            find(session, caller, classifier_id, lock=True).settled_model = model.fingerprint


def _is_worse(state: State, model: mm.MetricModel) -> bool:
    """Whether the accuracy with this model is below the interval of the accuracy with the earlier one."""
    version = state.version
    if version.low is None:
        return False
    result = estimate(fit(model, labelled(state.rows), version.settings, tenant=version.tenant_id))
    return result is not None and result.accuracy < version.low
