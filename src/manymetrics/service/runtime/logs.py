"""One line of JSON for each event, without the text of any client.

Messages of the service contain no client text. Messages of other libraries are left out, because they may quote their
input, and of an exception only its type and its lines of code are written.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

QUOTED = ("manymetrics", "uvicorn")  # loggers whose messages are written
MAX_FRAMES = 8  # of an exception, the innermost


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
