"""One writer for a folder.

The lock file stays in the folder and names the process that holds it. The operating system releases its lock when that
process ends, however it ends. Some network disks share no locks between machines or have none, so the holder also
touches the file every `HEARTBEAT` seconds: there, a holder that has not done so for `EXPIRY` seconds counts as ended.
"""

import contextlib
import errno
import os
import socket
import stat
import threading
from pathlib import Path

import msgspec

from manymetrics.errors import EnvironmentProblem
from manymetrics.store.files import raise_os_error

HEARTBEAT, EXPIRY = 20.0, 120.0  # seconds
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Lock:
    """Held from its construction until it is released or its process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with raise_os_error("write", path, "Choose another folder, or repair this one."):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = _open_regular_file(path)
        try:
            self._acquire()
        except BaseException:
            os.close(self._handle)
            raise
        self._released = threading.Event()
        self._heartbeat = threading.Thread(target=_touch_until, args=(self._handle, self._released), daemon=True)
        self._heartbeat.start()

    def release(self) -> None:
        """Let another process write."""
        if not self._released.is_set():
            self._released.set()
            try:
                self._heartbeat.join()
                with contextlib.suppress(OSError):  # a name that stays in the file blocks nobody
                    os.truncate(self._handle, 0)
            finally:
                os.close(self._handle)

    def _acquire(self) -> None:
        from filelock import lock_descriptor  # slow to load, and reading a run does not need it

        try:
            is_free, has_locks = lock_descriptor(self._handle, blocking=False), True
        except OSError:
            is_free, has_locks = True, False
        holder, this = holder_of(self._path), Holder(os.getpid(), socket.gethostname())
        if is_free and holder is not None and not (has_locks and holder.host == this.host):
            is_free = not -HEARTBEAT < _seconds_since_touched(self._path) < EXPIRY  # a future time is no heartbeat
        if not is_free:
            raise EnvironmentProblem(
                f"{self._path.parent} is in use by {holder or 'another process'}. "
                "Wait until that one is done, or give another folder."
            )
        with contextlib.suppress(OSError):  # on a full disk the folder is locked without a name
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, msgspec.json.encode(this), 0)


def holder_of(path: Path) -> Holder | None:
    """The process that a lock file names, if any."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def _open_regular_file(path: Path) -> int:
    """Open or create a file; a link is not followed and a pipe is refused."""
    handle = os.open(path, _OPEN_FLAGS, 0o644)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle


def _seconds_since_touched(path: Path) -> float:
    """By the clock of the disk, which may be that of another machine."""
    now = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        now.touch()
        return now.stat().st_mtime - path.stat().st_mtime
    finally:
        now.unlink(missing_ok=True)


def _touch_until(handle: int, released: threading.Event) -> None:
    while not released.wait(HEARTBEAT):
        with contextlib.suppress(OSError):
            os.utime(handle)
