"""A fault at the Nth file operation below a folder: an error, a disk that stays broken or full, an interrupt, a kill.

Python tells an audit hook of every file it opens, renames or removes, of every folder it makes or lists, whoever asks:
pathlib, shutil, or a library in C. A hook that raises makes the operation fail before it was done. It is not told of
`fsync`, which is wrapped: there a fault leaves half the file behind, as a full disk or a power cut would.
"""

import ctypes
import errno
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

MODES = ("error", "broken disk", "full disk", "interrupt", "kill")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
BY_PATH = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.listdir", "os.scandir", "os.truncate", "os.utime")
LONGEST = 60  # seconds that a child may take

_FSYNC = os.fsync
_armed: "Fault | None" = None


class Fault:
    """Counts the operations below a folder, and makes one of them go wrong; none where `at` is None."""

    def __init__(self, folder: Path, mode: str = "error", at: int | None = None) -> None:
        self.folder, self.mode, self.at = os.fsencode(folder), mode, at
        self.seen: list[str] = []
        self.thread = threading.get_ident()

    def meet(self, operation: str, *, writes: bool, handle: int | None = None) -> None:
        """Count an operation, and let it go wrong if it is its turn."""
        self.seen.append(operation)
        number = len(self.seen) - 1
        if self.at is None or number < self.at or (number > self.at and self.mode not in ("full disk", "broken disk")):
            return
        if self.mode == "full disk" and not writes:
            return
        if handle is not None:
            os.ftruncate(handle, os.fstat(handle).st_size // 2)
        if self.mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(LONGEST)
        if self.mode == "interrupt":
            raise KeyboardInterrupt
        number = errno.ENOSPC if self.mode == "full disk" else errno.EIO
        raise OSError(number, os.strerror(number))

    def concerns(self, path: object) -> bool:
        """Whether a path is below the folder; one that is not absolute is of a folder that is being removed."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        raw = os.fsencode(path)
        return raw == self.folder or raw.startswith(self.folder + b"/") or not os.path.isabs(raw)


def _hear(event: str, told: tuple[object, ...]) -> None:
    fault = _armed
    if fault is None or threading.get_ident() != fault.thread:
        return
    if event == "open":
        path, mode, flags = told
        if fault.concerns(path):
            writes = bool(flags & WRITES) if isinstance(flags, int) else set(mode or "r") & set("wax+") != set()
            fault.meet(f"open {'to write' if writes else 'to read'}", writes=writes)
    elif event in BY_PATH and (isinstance(told[0], int) or fault.concerns(told[0])):
        fault.meet(event, writes=event in ("os.rename", "os.mkdir"))
    elif event == "ctypes.dlsym" and told[1] == "renameat2":
        fault.meet("exchange", writes=True)


def _sync(handle: int) -> None:
    fault = _armed
    if fault is not None and threading.get_ident() == fault.thread:
        fault.meet("os.fsync", writes=True, handle=handle)
    _FSYNC(handle)


@contextmanager
def armed(fault: Fault):
    """Let the fault happen inside, and nowhere else."""
    global _armed
    if not getattr(sys, "_faults_are_heard", False):
        sys._faults_are_heard = True
        ctypes.CDLL(None)
        sys.addaudithook(_hear)
    os.fsync, _armed = _sync, fault
    try:
        yield fault
    finally:
        os.fsync, _armed = _FSYNC, None


def operations_of(act, folder: Path) -> list[str]:
    """The file operations of an act that nothing disturbs."""
    with armed(Fault(folder)) as fault:
        act(folder)
    return fault.seen


def disturb(act, folder: Path, mode: str, at: int) -> BaseException | None:
    """Act, with a fault on the way; what came out of it. A kill is done to a child that has all that is loaded here."""
    if mode == "kill":
        return _kill(act, folder, at)
    try:
        with armed(Fault(folder, mode, at)):
            act(folder)
    except BaseException as problem:
        return problem
    return None


def _kill(act, folder: Path, at: int) -> BaseException | None:
    child = os.fork()
    if not child:
        signal.alarm(LONGEST)
        try:
            with armed(Fault(folder, "kill", at)):
                act(folder)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if ended_by == signal.SIGALRM:
        raise TimeoutError(f"the child took longer than {LONGEST} s")
    return None if ended_by is None else KeyboardInterrupt("killed")
