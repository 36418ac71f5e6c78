"""All parts of the service put together; the HTTP API, the pages, the command line and the tests use them."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from manymetrics.service.domain.answers import Answering
from manymetrics.service.domain.classifiers import Classifiers
from manymetrics.service.domain.errors import Forbidden, Unavailable
from manymetrics.service.domain.models import Models
from manymetrics.service.domain.readapt import Readapting
from manymetrics.service.domain.tenants import Caller, Tenants
from manymetrics.service.runtime.monitoring import Measures
from manymetrics.service.runtime.scheduler import Admission, RateLimits, WorkQueue
from manymetrics.service.settings import Settings
from manymetrics.service.storage.database import open_database
from manymetrics.service.storage.idempotency import IdempotentRequest

Result = TypeVar("Result")


class Service:
    """One process of the service, without HTTP."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = open_database(settings.database)
        self.tenants = Tenants(self.database, remember=settings.remember_keys)
        self.models = Models(self.database)
        if settings.model is not None and self.models.find_live() is None:
            self.models.put_live(settings.model)
        self.classifiers = Classifiers(self.database, self.models, settings)
        self.answering = Answering(self.classifiers)
        self.rates = RateLimits()
        self.admission = Admission(settings.at_once, settings.at_once_each, capacity=settings.in_turn)
        self.work = WorkQueue(settings.waiting, settings.waiting_each)
        self.answers = WorkQueue(
            settings.waiting,
            settings.waiting_each,
            worker=self.answering.answer_together,
            batch=settings.batch_texts,
        )
        self.measures = Measures(self.answers, self.work, self.classifiers.fitted)
        self.readapting = Readapting(self.classifiers, self.work, pause=settings.model_check)

    def admit(self, caller: Caller, scope: str = "") -> None:
        """Count one request of a tenant; refused beyond its rate, or if its key lacks the scope."""
        limits = {"rate": self.settings.rate, "burst": self.settings.burst, **caller.limits}
        self.rates.take(caller.tenant, rate=float(limits["rate"]), burst=float(limits["burst"]))
        if scope and scope not in caller.scopes:
            raise Forbidden(f"This key lacks the scope {scope}. Use one that has it.")

    def start(self) -> None:
        """Prepare for the first request, and start the work in the background."""
        with contextlib.suppress(Unavailable):  # no model is live yet; /ready reports it
            model = self.models.live()
            model.adapt(["the lamp is on", "play some music"], ["lamp", "music"]).predict(["please"])  # loads all
        self.readapting.start()

    def stop(self) -> None:
        """Finish the work that waits and close the database."""
        self.readapting.stop()
        self.answers.stop()
        self.work.stop()
        self.database.close()


@dataclass(frozen=True)
class Call:
    """What one caller asks of the service, in the turn of the caller's tenant."""

    service: Service
    caller: Caller

    async def run(self, job: Callable[[], Result]) -> Result:
        """Run a job in the queue of the tenant."""
        return await asyncio.wrap_future(self.service.work.submit(self.caller.tenant, job))

    async def work(self, verb: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Call a slow verb of the service for the caller, in the queue of the tenant."""
        return await self.run(partial(verb, self.caller, *args, **options))

    def once(self, key: str, content: Any, status: int = 200) -> IdempotentRequest:
        """A request under an idempotency key, by which it is done once."""
        lifetime = timedelta(seconds=self.service.settings.remember_replies)
        return IdempotentRequest(self.caller.tenant, key, content, lifetime, status)
