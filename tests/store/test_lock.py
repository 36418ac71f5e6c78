import json
import multiprocessing
import os
import re
import socket

import pytest

from manymetrics.errors import EnvironmentProblem
from manymetrics.store import Run
from manymetrics.store.lock import EXPIRY, Lock, holder_of


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


def test_a_holder_on_another_machine_counts_until_its_heartbeat_expires(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    with pytest.raises(EnvironmentProblem, match="in use by process 1 on elsewhere"):
        Lock(lock)
    long_ago = lock.stat().st_mtime - EXPIRY - 1
    os.utime(lock, (long_ago, long_ago))
    Lock(lock).release()


def test_a_time_in_the_future_is_no_heartbeat(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    tomorrow = lock.stat().st_mtime + 86_400
    os.utime(lock, (tomorrow, tomorrow))
    taken = Lock(lock)
    assert holder_of(lock).pid == os.getpid()
    taken.release()
    assert lock.read_bytes() == b""


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
    assert holder_of(lock) is None


def test_a_lock_file_without_valid_content_has_no_holder(tmp_path):
    lock = tmp_path / ".lock"
    assert holder_of(lock) is None
    for text in ("", "[]", "{}", '{"pid": "x", "host": 1}', '{"pid": 1e400, "host": "x"}', "[" * 100_000):
        lock.write_text(text)
        assert holder_of(lock) is None
        Lock(lock).release()


def test_a_lock_can_be_released_twice(tmp_path):
    lock = Lock(tmp_path / ".lock")
    assert str(holder_of(tmp_path / ".lock")) == f"process {os.getpid()} on {socket.gethostname()}"
    lock.release()
    lock.release()
    assert holder_of(tmp_path / ".lock") is None


def test_on_a_disk_without_locks_any_holder_counts_until_its_heartbeat_expires(tmp_path, monkeypatch):
    def unsupported(*_, **__):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("filelock.lock_descriptor", unsupported)
    path = tmp_path / ".lock"
    lock = Lock(path)
    with pytest.raises(EnvironmentProblem, match=f"in use by process {os.getpid()} on"):
        Lock(path)
    lock.release()
    Lock(path).release()
    path.write_text(json.dumps({"pid": 1, "host": socket.gethostname()}))
    long_ago = path.stat().st_mtime - EXPIRY - 1
    os.utime(path, (long_ago, long_ago))
    Lock(path).release()
