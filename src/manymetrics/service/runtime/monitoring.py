"""The log and the measurements of one process: a line of JSON for each event, and counts and times for Prometheus.

Neither has the text of any client. Messages of other libraries are left out, because they may quote their
input, and of an exception only its type and its lines of code are written.
"""

import json
import logging
import sys
import traceback
from collections.abc import Sized
from datetime import UTC, datetime
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

QUOTED = ("manymetrics", "uvicorn")  # loggers whose messages are written
MAX_FRAMES = 8  # of an exception, the innermost
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds


class JsonLines(logging.Formatter):
    """A record of the log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger and event; and for a request what is known of it."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        if record.name.partition(".")[0] in QUOTED:
            line["event"] = record.getMessage()
        line |= getattr(record, "about", {})
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"problem": type(record.exc_info[1]).__name__, "at": frames_of(record.exc_info[1])}
        return json.dumps(line)


def frames_of(error: BaseException) -> list[str]:
    """The lines of code that an exception passed, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]


def write_logs(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Write the log of this process to stderr, or another stream, as lines of JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in QUOTED:
        logging.getLogger(name).setLevel(level)


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
