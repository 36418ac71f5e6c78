"""One writer for a folder.

The lock file stays in the folder and names the process that holds it. The operating system releases its lock when that
process ends, however it ends.
"""

import contextlib
import errno
import os
import re
import socket
import stat
from pathlib import Path

from manymetrics.errors import EnvironmentProblem
from manymetrics.store.files import raise_os_error

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_HOLDER = re.compile(r"process \d{1,20} on [\w.-]{1,255}")


class Lock:
    """Held from its construction until it is released or its process ends."""

    def __init__(self, path: Path) -> None:
        with raise_os_error("write", path, "Choose another folder, or repair this one."):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle: int | None = _open_regular_file(path)
        try:
            with raise_os_error("lock", path, "Choose a folder on another disk."):
                self._acquire(self._handle, path)
        except BaseException:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Let another process write."""
        handle, self._handle = self._handle, None
        if handle is not None:
            try:
                with contextlib.suppress(OSError):  # a name that stays in the file blocks nobody
                    os.truncate(handle, 0)
            finally:
                os.close(handle)

    def _acquire(self, handle: int, path: Path) -> None:
        from filelock import lock_descriptor  # slow to load, and reading a run does not need it

        if not lock_descriptor(handle, blocking=False):
            holder = os.pread(handle, 300, 0).decode(errors="replace")
            raise EnvironmentProblem(
                f"{path.parent} is in use by {holder if _HOLDER.fullmatch(holder) else 'another process'}. "
                "Wait until that one is done, or give another folder."
            )
        with contextlib.suppress(OSError):  # on a full disk the folder is locked without a name
            os.truncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)


def _open_regular_file(path: Path) -> int:
    """Open or create a file; a link is not followed and a pipe is refused."""
    handle = os.open(path, _OPEN_FLAGS, 0o644)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a file")
    return handle
