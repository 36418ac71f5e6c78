import multiprocessing
import os
import re
import socket

import pytest

from manymetrics.errors import EnvironmentProblem
from manymetrics.store import Run


def hold(folder, taken, finish):
    with Run.open(folder):
        taken.set()
        finish.wait(60)


def test_a_run_has_one_writer_until_that_process_ends(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    taken, finish = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path, taken, finish))
    other.start()
    assert taken.wait(60)
    message = re.escape(f"{tmp_path} is in use by process {other.pid} on {socket.gethostname()}. Wait until")
    with pytest.raises(EnvironmentProblem, match=message):
        Run.open(tmp_path)
    other.kill()
    other.join()
    with Run.open(tmp_path), pytest.raises(EnvironmentProblem, match=f"in use by process {os.getpid()} on"):
        Run.open(tmp_path)
    assert (tmp_path / ".lock").read_bytes() == b""


def test_a_lock_that_is_a_link_or_a_pipe_is_refused_and_nothing_is_truncated(tmp_path):
    (tmp_path / "thesis").write_text("years of work")
    (tmp_path / "run").mkdir()
    lock = tmp_path / "run" / ".lock"
    lock.symlink_to(tmp_path / "thesis")
    with pytest.raises(EnvironmentProblem, match=r"Could not write .*\.lock"):
        Run.open(tmp_path / "run")
    assert (tmp_path / "thesis").read_text() == "years of work"
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(EnvironmentProblem, match=r"Could not write .*\.lock: it is not a file"):
        Run.open(tmp_path / "run")


def test_a_lock_file_with_other_content_names_nobody(tmp_path):
    for text in ("", "[]", "process \x1b[31m on x", "x" * 100_000):
        with Run.open(tmp_path):
            (tmp_path / ".lock").write_text(text)
            with pytest.raises(EnvironmentProblem, match="in use by another process"):
                Run.open(tmp_path)


def test_a_disk_without_locks_is_refused(tmp_path, monkeypatch):
    def unsupported(*_, **__):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("filelock.lock_descriptor", unsupported)
    with pytest.raises(EnvironmentProblem, match=r"Could not lock .*not implemented\. Choose a folder on another disk"):
        Run.open(tmp_path)
