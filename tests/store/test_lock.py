import json
import multiprocessing
import os
import re
import socket

import pytest

from manymetrics.errors import EnvironmentProblem
from manymetrics.store import Run
from manymetrics.store.lock import SILENCE, Lock, holder_of


def hold(folder, taken, go_on):
    with Run.open(folder):
        taken.set()
        go_on.wait(60)


def test_a_run_has_one_writer_and_a_dead_one_has_none(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    taken, go_on = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(tmp_path, taken, go_on))
    other.start()
    assert taken.wait(60)
    told = re.escape(f"{tmp_path} is in use by process {other.pid} on {socket.gethostname()}. Wait until")
    with pytest.raises(EnvironmentProblem, match=told):
        Run.open(tmp_path)
    other.kill()
    other.join()
    with Run.open(tmp_path), pytest.raises(EnvironmentProblem, match=f"in use by process {os.getpid()} on"):
        Run.open(tmp_path)
    assert (tmp_path / ".lock").read_bytes() == b""


def test_a_writer_on_another_machine_is_believed_until_it_falls_silent(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    with pytest.raises(EnvironmentProblem, match="in use by process 1 on elsewhere"):
        Lock(lock)
    long_ago = lock.stat().st_mtime - SILENCE - 1
    os.utime(lock, (long_ago, long_ago))
    Lock(lock).release()


def test_a_stamp_of_the_future_is_no_sign_of_life(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    tomorrow = lock.stat().st_mtime + 86_400
    os.utime(lock, (tomorrow, tomorrow))
    taken = Lock(lock)
    assert holder_of(lock)["pid"] == os.getpid()
    taken.release()
    assert lock.read_bytes() == b""


def test_a_lock_that_is_a_link_or_no_file_is_refused_and_nothing_is_truncated(tmp_path):
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


def test_a_lock_that_says_nothing_sensible_has_no_holder(tmp_path):
    lock = tmp_path / ".lock"
    assert holder_of(lock) is None
    for text in ("", "[]", "{}", '{"pid": "x", "host": 1}', '{"pid": 1e400, "host": "x"}', "[" * 100_000):
        lock.write_text(text)
        assert holder_of(lock) is None
        Lock(lock).release()


def test_releasing_twice_is_releasing_once(tmp_path):
    lock = Lock(tmp_path / ".lock")
    assert holder_of(tmp_path / ".lock") == {"pid": os.getpid(), "host": socket.gethostname()}
    lock.release()
    lock.release()
    assert holder_of(tmp_path / ".lock") is None
