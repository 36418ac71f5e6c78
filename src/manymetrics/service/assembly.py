"""All parts of the service put together: what the API, the pages, the command line and the tests share."""

from __future__ import annotations

import contextlib

from manymetrics.service.answers import Answering
from manymetrics.service.cache import FittedCache
from manymetrics.service.classifiers import Classifiers
from manymetrics.service.database import open_database
from manymetrics.service.limits import RateLimits
from manymetrics.service.measures import Measures
from manymetrics.service.models import Models
from manymetrics.service.problems import Unavailable
from manymetrics.service.queue import FairQueue, call_each
from manymetrics.service.readapting import Readapting
from manymetrics.service.settings import Settings
from manymetrics.service.tenants import Caller, Tenants

DEFAULT = Settings()


class Service:
    """One process of the service, without HTTP."""

    def __init__(self, settings: Settings = DEFAULT) -> None:
        self.settings = settings
        self.database = open_database(settings.database)
        self.tenants = Tenants(self.database, remember=settings.remember_keys)
        self.models = Models(self.database, check=settings.model_check)
        if settings.model is not None:
            self.models.put_live_if_none(settings.model)
        cache = FittedCache(classifiers=settings.cached_classifiers, examples=settings.cached_examples)
        self.classifiers = Classifiers(self.database, self.models, cache, settings)
        self.answering = Answering(self.classifiers)
        self.rates = RateLimits()
        self.measures = Measures()
        self.cache = cache
        bounds = {"waiting": settings.waiting, "waiting_each": settings.waiting_each}
        self.answers = FairQueue(
            self.answering.answer_together, batch=settings.batch_texts, linger=settings.batch_seconds, name="answers",
            **bounds,
        )  # fmt: skip
        self.work = FairQueue(call_each, name="work", **bounds)
        self.readapting = Readapting(self.database, self.classifiers, self.work, pause=settings.model_check)

    def take_rate(self, caller: Caller) -> None:
        """Count one request of a tenant; refused beyond its rate."""
        rate, burst = (float(self.classifiers.limit(caller, name)) for name in ("rate", "burst"))
        self.rates.take(caller.tenant, rate=rate, burst=burst)

    def is_ready(self) -> bool:
        """Whether requests can be answered: the tables are as they should be, and a model is loaded."""
        return self.database.is_migrated() and bool(self.models.live())

    def measured(self) -> bytes:
        """What was measured, in the text format of Prometheus."""
        self.measures.gauge(answers=len(self.answers), work=len(self.work), cached=len(self.cache))
        return self.measures.written()

    def start(self) -> None:
        """Get ready for the first request, and begin what is done in the background."""
        with contextlib.suppress(Unavailable):  # no model is live yet; `is_ready` says so
            self.models.warm_up()
        self.readapting.start()

    def stop(self) -> None:
        """Finish what waits and close the database."""
        self.readapting.stop()
        self.answers.stop()
        self.work.stop()
        self.database.close()
