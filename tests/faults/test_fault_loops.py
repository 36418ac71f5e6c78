"""A fault at any file operation leaves the old state or the new one, and the same command ends as if nothing had been.

Learnings and kills are sampled; with MANYMETRICS_ALL_FAULTS every file operation is tried.
"""

import errno
import os
import sys

import pytest
from injection import MODES, Fault, armed, disturb
from operations import Import, ImportNew, Learn, LearnAgain, Loop, SaveClassifier, SaveModel, SaveNewModel

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import Run, runs

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
EVERY = "MANYMETRICS_ALL_FAULTS" in os.environ
SAMPLE = 10_000 if EVERY else 12


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(runs, "SECOND_TRY", 0.0)


@pytest.mark.parametrize("kind", [SaveModel, SaveNewModel, SaveClassifier, Import, ImportNew])
def test_saving_and_importing_leave_the_old_or_the_new_state_whatever_fails(kind, make_model, shots, tmp_path):
    loop = Loop(kind(make_model, shots), tmp_path)
    assert len(loop.steps) >= 20
    tries = [(mode, at) for mode in ("error", "broken disk", "interrupt") for at in range(len(loop.steps))]
    tries += [(mode, at) for mode in ("full disk", "kill") for at in loop.spread(SAMPLE)]
    assert [told for mode, at in tries if (told := loop.try_at(mode, at))] == []


@pytest.mark.parametrize("kind", [Learn, LearnAgain])
def test_a_learning_goes_on_whichever_operation_fails(kind, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    loop = Loop(kind(tmp_path), tmp_path)
    tries = [(MODES[turn % len(MODES)], at) for turn, at in enumerate(loop.spread(SAMPLE))]
    if EVERY:
        tries = [(mode, at) for mode in MODES for at in range(len(loop.steps))]
    assert [told for mode, at in tries if (told := loop.try_at(mode, at))] == []


def test_the_harness_makes_operations_go_wrong_in_every_way(tmp_path):
    def write(folder):
        with (folder / "a").open("wb") as file:
            file.write(b"1234")
            file.flush()
            os.fsync(file.fileno())
        (folder / "a").rename(folder / "b")

    with armed(Fault(tmp_path)) as fault:
        write(tmp_path)
    assert fault.seen == ["open to write", "os.fsync", "os.rename"]
    (tmp_path / "b").unlink()
    assert disturb(write, tmp_path, "error", 0).errno == errno.EIO
    assert list(tmp_path.iterdir()) == []
    assert disturb(write, tmp_path, "full disk", 1).errno == errno.ENOSPC
    assert (tmp_path / "a").read_bytes() == b"12"
    assert isinstance(disturb(write, tmp_path, "interrupt", 2), KeyboardInterrupt)
    assert (tmp_path / "a").read_bytes() == b"1234"
    (tmp_path / "a").unlink()
    assert isinstance(disturb(write, tmp_path, "kill", 2), KeyboardInterrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert disturb(write, tmp_path, "kill", 3) is None


def test_a_run_whose_mark_was_being_written_when_it_was_killed_is_gone_on_with(tmp_path):
    left = [tmp_path / f".{name}.123.tmp" for name in ("run.json", "recipe.toml", "manifest.json")]
    for path in left:
        path.write_bytes(b"half")
    with Run.open(tmp_path):
        pass
    assert not any(path.exists() for path in left)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".letter.txt.123.tmp").write_text("dear all")
    with pytest.raises(InputError, match="is there already and is not a run"):
        Run.open(other)


def test_a_lock_that_is_interrupted_on_release_is_released(tmp_path):
    held = Run.open(tmp_path / "run")
    with armed(Fault(tmp_path, "interrupt", 0)) as fault, pytest.raises(KeyboardInterrupt):
        held.close()
    assert fault.seen == ["os.truncate"]
    with Run.open(tmp_path / "run"):
        pass


def test_a_disk_that_cannot_be_read_is_said_in_a_sentence(tmp_path):
    with Run.open(tmp_path / "run"):
        pass
    message = r"Input/output error\..*again; finished jobs are not lost"
    with armed(Fault(tmp_path, "error", 0)), pytest.raises(EnvironmentProblem, match=message):
        Run.open(tmp_path / "run")
