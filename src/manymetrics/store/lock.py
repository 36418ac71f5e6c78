"""One writer for a folder, and a sentence about who that is for everybody else.

The lock is a file that stays. Who holds it is written in it, and the system's own lock on it goes with the process that
took it, however that ended. A network disk may keep the system's locks of different machines apart, so a holder also
touches the file now and then: one on another machine that has not done so for `SILENCE` seconds is taken for gone.
"""

import contextlib
import errno
import json
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

from manymetrics.errors import EnvironmentProblem

BEAT, SILENCE = 20.0, 120.0  # seconds between two signs of life, and after which a holder elsewhere is taken for gone

_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link is followed, no pipe waited for


class Lock:
    """Held from the moment it is made until it is released, or its process is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = _open_plain_file(path)
        except OSError as problem:
            raise EnvironmentProblem(
                f"Could not write {path}: {problem.strerror or problem}. Choose another folder, or mend this one."
            ) from problem
        try:
            self._take()
        except BaseException:
            os.close(self._handle)
            raise
        self._released = threading.Event()
        self._beating = threading.Thread(target=_beat, args=(self._handle, self._released), daemon=True)
        self._beating.start()

    def release(self) -> None:
        """Let others have it."""
        if not self._released.is_set():
            self._released.set()
            try:
                self._beating.join()
                with contextlib.suppress(OSError):  # the name of a holder that is gone holds nobody up
                    os.truncate(self._handle, 0)
            finally:
                os.close(self._handle)

    def _take(self) -> None:
        free, certain = _ask_system(self._handle)
        holder = holder_of(self._path)
        if not free or (holder and _lives(holder, self._path, certain=certain)):
            who = f"process {holder['pid']} on {holder['host']}" if holder else "another process"
            raise EnvironmentProblem(
                f"{self._path.parent} is in use by {who}. Wait until that one is done, or give another folder."
            )
        with contextlib.suppress(OSError):  # a full disk: locked all the same, only nobody can tell by whom
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)


def _open_plain_file(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN_FILE, 0o644)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle


def holder_of(path: Path) -> dict[str, Any] | None:
    """The process and machine written in a lock, or None where nobody is."""
    if not path.is_file():
        return None
    try:
        said = json.loads(path.read_bytes())
        return {"pid": int(said["pid"]), "host": str(said["host"])}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _ask_system(handle: int) -> tuple[bool, bool]:
    """Whether nobody on this machine holds the file, and whether the system can tell at all."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False, True
    except (ImportError, OSError):
        return True, False
    return True, True


def _lives(holder: dict[str, Any], path: Path, *, certain: bool) -> bool:
    if holder["host"] != socket.gethostname():
        return -BEAT < _seconds_since_touched(path) < SILENCE  # a stamp of the future is nobody's sign of life
    return not certain and holder["pid"] != os.getpid() and _is_running(holder["pid"])


def _seconds_since_touched(path: Path) -> float:
    """By the clock of the disk, which may be another machine's."""
    now = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        now.touch()
        return now.stat().st_mtime - path.stat().st_mtime
    finally:
        now.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _beat(handle: int, released: threading.Event) -> None:
    while not released.wait(BEAT):
        with contextlib.suppress(OSError):
            os.utime(handle)
