"""Counts and times of requests, for Prometheus and for the operator's page; never a text."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MAX_LOADS = 2_000  # tenants or routes with counts, before those not seen for longest are forgotten
METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")  # others are a client's own words
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


@dataclass
class Load:
    """The requests of one tenant, or to one route, since the process started."""

    requests: int = 0
    errors: int = 0  # responses with a status from 500 up
    refused: int = 0  # responses with status 429
    seconds: float = 0.0
    slowest: float = 0.0

    @property
    def mean(self) -> float:
        """Seconds per request."""
        return self.seconds / max(self.requests, 1)

    def add(self, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests += 1
        self.errors += status >= 500
        self.refused += status == 429
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)


@dataclass
class Measures:
    """Counts and times of one process."""

    tenants: OrderedDict[str, Load] = field(default_factory=OrderedDict)
    routes: OrderedDict[str, Load] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("manymetrics_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "manymetrics_request_seconds", "Time from request to answer.", ["route"], buckets=BUCKETS, registry=registry
        )
        self._waiting = Gauge("manymetrics_waiting", "Requests waiting.", ["queue"], registry=registry)
        self._cached = Gauge("manymetrics_cached_classifiers", "Classifiers in memory.", registry=registry)
        self._lock = threading.Lock()

    def count(self, *, tenant: str | None, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        with self._lock:
            for loads, name in ((self.tenants, tenant), (self.routes, route)):
                if name is not None:
                    loads.setdefault(name, Load()).add(status, seconds)
                    loads.move_to_end(name)
                if len(loads) > MAX_LOADS:
                    loads.popitem(last=False)

    def text(self, *, answers: int, work: int, cached: int) -> bytes:
        """All measurements in the text format of Prometheus, with the lengths of the queues and of the cache."""
        self._waiting.labels("answers").set(answers)
        self._waiting.labels("work").set(work)
        self._cached.set(cached)
        return generate_latest(self._registry)
