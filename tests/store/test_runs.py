import json
import multiprocessing
import os
import re
import socket

import pytest

from manymetrics.engine import Engine
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.recipe import Recipe
from manymetrics.store import Run
from manymetrics.store.lock import SILENCE, Lock
from manymetrics.values import Unit

UNITS = [Unit(name, {"k": 1}) for name in "abc"]


class Counted:
    """Work that notes what it did."""

    def __init__(self):
        self.done = []

    def __call__(self, unit, shared):
        self.done.append(unit.name)
        return f"{shared} {unit.name}".encode()


def go(folder, work, units=UNITS, stage="stage", *, finish=False, recipe=None):
    with Run.open(folder, recipe or Recipe()) as run, Engine("shared", run=run) as engine:
        results = engine(stage, work, units)
        if finish:
            run.finish()
    return results


def test_finished_units_are_not_done_again(tmp_path):
    work = Counted()
    first = go(tmp_path / "run", work)
    again = go(tmp_path / "run", work)
    assert work.done == ["a", "b", "c"]
    assert first == again == {name: f"shared {name}".encode() for name in "abc"}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    with Run.open(tmp_path) as run:
        run.put("stage", Run.key("stage", UNITS[1]), UNITS[1], b"kept")
    work, reports = Counted(), []
    with Run.open(tmp_path) as run, Engine("shared", run=run, report=reports.append) as engine:
        assert engine("stage", work, UNITS)["b"] == b"kept"
    assert work.done == ["a", "c"]
    assert [(report.done, report.kept, report.total) for report in reports] == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: bytes([raw[0] ^ 1]) + raw[1:], lambda raw: b""])
def test_a_damaged_unit_is_done_again(tmp_path, damage):
    work = Counted()
    go(tmp_path, work)
    (path,) = tmp_path.glob(f"units/stage/*/{Run.key('stage', UNITS[1])}")
    path.write_bytes(damage(path.read_bytes()))
    assert go(tmp_path, work)["b"] == b"shared b"
    assert work.done == ["a", "b", "c", "b"]
    assert go(tmp_path, work)["b"] == b"shared b"
    assert len(work.done) == 4


def test_a_units_key_is_made_of_all_it_depends_on_and_nothing_else():
    same = [
        Unit("a", {"k": 1, "l": [2]}, (b"x",)),
        Unit("a", {"l": [2], "k": 1}, (b"x",)),
        Unit("a", {"k": 1, "l": [2]}, (b"x",), {"part": "hash"}),
    ]
    others = [
        Unit("b", {"k": 1, "l": [2]}, (b"x",)),
        Unit("a", {"k": 2, "l": [2]}, (b"x",)),
        Unit("a", {"k": 1, "l": [2]}, (b"y",)),
        Unit("a", {"k": 1, "l": [2]}, (b"x", b"x")),
        Unit("a", {"k": 1, "l": [2]}),
    ]
    assert len({Run.key("s", unit) for unit in same}) == 1
    assert len({Run.key("s", unit) for unit in [same[0], *others]} | {Run.key("t", same[0])}) == 7


def test_a_finished_run_lists_its_units(tmp_path):
    go(tmp_path, Counted(), finish=True, recipe=Recipe(seed=5))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(manifest["stage"]) == sorted(Run.key("stage", unit) for unit in UNITS)
    assert Recipe.load(tmp_path / "recipe.toml") == Recipe(seed=5)


def test_the_manifest_is_the_same_whether_the_run_was_stopped_or_not(tmp_path):
    for folder, order in (("straight", [UNITS]), ("stopped", [UNITS[2:], UNITS])):
        for units in order:
            go(tmp_path / folder, Counted(), units, finish=True)
    left, right = ((tmp_path / folder / "manifest.json").read_bytes() for folder in ("straight", "stopped"))
    assert left == right


def test_a_file_is_not_a_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file, and a run is a folder"):
        Run.open(tmp_path / "file", Recipe())


def row(*parts):
    return Unit("row", {"k": 1}, (), {part: f"hash of {part}" for part in parts})


class Cells:
    """Work on units with parts that notes which parts it did."""

    def __init__(self):
        self.done = []

    def __call__(self, unit, shared):
        self.done.append(sorted(unit.parts))
        return json.dumps({name: len(mark) for name, mark in unit.parts.items()}).encode()


def test_of_a_unit_with_parts_only_the_missing_ones_are_done(tmp_path):
    work = Cells()
    go(tmp_path, work, [row("a", "b")])
    assert json.loads(go(tmp_path, work, [row("a", "b", "cc")])["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert json.loads(go(tmp_path, work, [row("b")])["row"]) == {"b": 9}
    assert json.loads(go(tmp_path, work, [row("a", "b", "cc")])["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert work.done == [["a", "b"], ["cc"]]
    assert len(list(tmp_path.glob("units/stage/*/*"))) == 1


def test_the_manifest_knows_the_parts_asked_for_and_no_others(tmp_path):
    found = {}
    for folder, asked in (("grown", ["ab", "abc", "bc"]), ("straight", ["bc"])):
        for parts in asked:
            go(tmp_path / folder, Cells(), [row(*parts)], finish=True)
        found[folder] = (tmp_path / folder / "manifest.json").read_bytes()
    assert found["grown"] == found["straight"]
    go(tmp_path / "straight", Cells(), [row("b")], finish=True)
    assert (tmp_path / "straight" / "manifest.json").read_bytes() != found["straight"]


class Weak:
    """Work on which `b` fails as long as it is ill."""

    def __init__(self):
        self.ill, self.tried = True, 0

    def __call__(self, unit, shared):
        if unit.name == "b":
            self.tried += 1
            if self.ill:
                raise ValueError("b is ill")
        return b"well"


def test_a_failure_is_kept_apart_and_tried_again_on_the_next_start(tmp_path):
    work = Weak()
    for attempt in (1, 2):
        with pytest.warns(UserWarning, match=r"stage of 'b' failed: ValueError: b is ill .*The others go on"):
            assert go(tmp_path, work) == {"a": b"well", "c": b"well"}
        (path,) = (tmp_path / "failed").iterdir()
        told = json.loads(path.read_text())
        assert (path.stem, told["stage"], told["unit"]) == (Run.key("stage", UNITS[1]), "stage", "b")
        assert told["error"].startswith("ValueError: b is ill")
        assert told["attempts"] == attempt
    work.ill = False
    assert go(tmp_path, work)["b"] == b"well"
    assert list((tmp_path / "failed").iterdir()) == []
    assert work.tried == 3


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


def test_what_a_killed_writer_left_half_written_is_swept_away(tmp_path):
    go(tmp_path, Counted())
    half = next(tmp_path.glob("units/stage/*")) / ".half.123.tmp"
    half.write_bytes(b"half")
    go(tmp_path, Counted())
    assert not half.exists()


def test_a_write_that_stumbles_once_is_tried_again(tmp_path, monkeypatch):
    from manymetrics.store import runs

    tries = []

    def stumble(path, payload):
        tries.append(path)
        if len(tries) == 1:
            raise EnvironmentProblem("the disk stumbled")

    monkeypatch.setattr(runs, "SECOND_TRY", 0.0)
    with Run.open(tmp_path) as run:
        monkeypatch.setattr(runs, "write_atomically", stumble)
        run.put("stage", "key", UNITS[0], b"payload")
    assert len(tries) == 2
