"""One line of JSON for each event, without the text of any client.

What the service says itself holds no text. Messages of other libraries are left out, because they may quote what they
were given, and of an exception only its kind and its places in the code are told.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

ROOT = "manymetrics"
QUOTED = (ROOT, "uvicorn")  # loggers whose messages are written as they are
PLACES = 8  # of an exception, the innermost


class JsonLines(logging.Formatter):
    """A record of the log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, where it comes from, what happened; and for a request what is known of it."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        if record.name.partition(".")[0] in QUOTED:
            line["event"] = record.getMessage()
        line |= getattr(record, "about", {})
        if record.exc_info and record.exc_info[0] is not None:
            line |= told_of(record.exc_info[1])
        return json.dumps(line)


def told_of(problem: BaseException | None) -> dict[str, Any]:
    """What may be told of an exception: its kind and its places, never its message."""
    if problem is None:
        return {}
    return {"problem": type(problem).__name__, "at": list(_places(problem.__traceback__))[-PLACES:]}


def _places(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next


def write_logs(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Write what this process logs to stderr, or another stream, as lines of JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in QUOTED:
        logging.getLogger(name).setLevel(level)
