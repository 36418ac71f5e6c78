"""Counts and times of requests, for Prometheus; never a text."""

from collections.abc import Sized

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Measures:
    """Counts and times of one process, and the lengths of its queues and of its cache."""

    def __init__(self, answers: Sized, work: Sized, cache: Sized) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self.requests = Counter("manymetrics_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "manymetrics_request_seconds", "Time from request to answer.", ["route"], buckets=BUCKETS, registry=registry
        )
        waiting = Gauge("manymetrics_waiting", "Requests waiting.", ["queue"], registry=registry)
        waiting.labels("answers").set_function(answers.__len__)
        waiting.labels("work").set_function(work.__len__)
        cached = Gauge("manymetrics_cached_classifiers", "Classifiers in memory.", registry=registry)
        cached.set_function(cache.__len__)
