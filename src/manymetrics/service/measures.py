"""What the service measures of itself, for Prometheus and for the operator's page: counts and times, never a text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

TENANTS = 2_000  # of which times are kept, before those not seen for longest are forgotten


@dataclass
class Load:
    """What one tenant asked for since the process started."""

    requests: int = 0
    errors: int = 0  # answers with a status from 500 up
    refused: int = 0  # answers with status 429
    seconds: float = 0.0
    slowest: float = 0.0


class Measures:
    """Counts and times of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("manymetrics_requests", "Requests answered.", labels, registry=self.registry)
        self._seconds = Histogram(
            "manymetrics_request_seconds", "Time from request to answer.", ["route"], registry=self.registry,
            buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        )  # fmt: skip
        self._waiting = Gauge("manymetrics_waiting", "Requests waiting.", ["queue"], registry=self.registry)
        self._cached = Gauge("manymetrics_cached_classifiers", "Classifiers in memory.", registry=self.registry)
        self.tenants: OrderedDict[str, Load] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, *, tenant: str | None, method: str, route: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        known = method if method in ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS") else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if tenant is None:
            return
        with self._lock:
            load = self.tenants.setdefault(tenant, Load())
            self.tenants.move_to_end(tenant)
            load.requests += 1
            load.errors += status >= 500
            load.refused += status == 429
            load.seconds += seconds
            load.slowest = max(load.slowest, seconds)
            while len(self.tenants) > TENANTS:
                self.tenants.popitem(last=False)

    def gauge(self, *, answers: int, work: int, cached: int) -> None:
        """How full the queues and the cache are."""
        self._waiting.labels("answers").set(answers)
        self._waiting.labels("work").set(work)
        self._cached.set(cached)

    def written(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self.registry)
