"""Counts and times of requests, for Prometheus; never a text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")  # others are a client's own words
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Measures:
    """Counts and times of one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("manymetrics_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "manymetrics_request_seconds", "Time from request to answer.", ["route"], buckets=BUCKETS, registry=registry
        )
        self._waiting = Gauge("manymetrics_waiting", "Requests waiting.", ["queue"], registry=registry)
        self._cached = Gauge("manymetrics_cached_classifiers", "Classifiers in memory.", registry=registry)

    def count(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, *, answers: int, work: int, cached: int) -> bytes:
        """All measurements in the text format of Prometheus, with the lengths of the queues and of the cache."""
        self._waiting.labels("answers").set(answers)
        self._waiting.labels("work").set(work)
        self._cached.set(cached)
        return generate_latest(self._registry)
