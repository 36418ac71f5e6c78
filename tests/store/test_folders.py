import itertools
import json
import math
import os
import shutil
import threading
from pathlib import Path

import pytest

from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.store import Kind, read_folder, require_place, seal_of, write_folder

KIND = Kind("thing", 2, "Make the thing again.")
OLD, NEW, NEWER = {"a": b"old", "b": b"1"}, {"a": b"new", "b": b"22"}, {"a": b"newer", "c": b"3"}
AT_ONCE = "manymetrics.store.folders._exchange_at_once"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checksums.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- there whole or not at all


def test_a_folder_is_replaced_whole_and_comes_back(tmp_path):
    write_folder(tmp_path / "above" / "thing", OLD, KIND)
    write_folder(tmp_path / "above" / "thing", NEWER, KIND)
    assert content(tmp_path / "above" / "thing") == NEWER
    assert read_folder(tmp_path / "above" / "thing", ["c"], KIND) == {"c": b"3"}
    assert names(tmp_path / "above") == ["thing"]


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "thing").mkdir()
    write_folder(tmp_path / "thing", NEW, KIND)
    assert content(tmp_path / "thing") == NEW


class Faults:
    """Calls of the system, of which some fail from the n-th on; where all do, the process is gone."""

    def __init__(self, monkeypatch, nth, problem, *, done, some):
        self.calls, self._nth, self._problem, self._done, self._some = 0, nth, problem, done, some
        for name in ("rename", "replace", "mkdir", "unlink", "rmdir", "fsync"):
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    @property
    def happened(self):
        return self.calls >= self._nth

    def _wrapped(self, call):
        def wrapped(*arguments, **options):
            self.calls += 1
            fails = self._nth <= self.calls < self._nth + self._some
            if fails and not self._done:
                raise self._problem
            result = call(*arguments, **options)
            if fails:
                raise self._problem
            return result

        return wrapped


def check(path, old, *, written):
    """What is there is whole, and the next write works."""
    try:
        found = read_folder(path, ["a", "b"], KIND)
    except ModelError:
        assert old is None
        assert not written
        assert not path.exists()
    else:
        assert found == NEW or (found == old and not written)
        assert content(path) == found
    write_folder(path, NEWER, KIND)
    assert content(path) == NEWER
    assert names(path.parent) == ["thing"]


def check_that_nothing_is_left(path):
    """Where somebody removes the folder, half of an older one does not take its place."""
    shutil.rmtree(path, ignore_errors=True)
    try:
        assert read_folder(path, ["a", "b"], KIND) == OLD
    except ModelError as problem:
        assert "There is no thing folder" in str(problem)  # noqa: PT017 - or a whole one


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("old", [OLD, None])
def test_whatever_call_of_the_system_fails_the_old_or_the_new_folder_is_whole(tmp_path, monkeypatch, at_once, old):
    if not at_once:
        monkeypatch.setattr(AT_ONCE, lambda *_: False)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # which a disk may take its time for
    problems = (OSError(28, "No space left on device"), KeyboardInterrupt())
    tried = 0
    for number, (problem, done, some) in enumerate(itertools.product(problems, (False, True), (1, 2, math.inf))):
        for nth in itertools.count(1):
            above = tmp_path / f"{number}-{nth}"
            above.mkdir()
            if old is not None:
                write_folder(above / "thing", old, KIND)
            with monkeypatch.context() as broken:
                faults = Faults(broken, nth, problem, done=done, some=some)
                try:
                    write_folder(above / "thing", NEW, KIND)
                    written = True
                except (EnvironmentProblem, KeyboardInterrupt):
                    written = False
            if not faults.happened:
                break
            tried += 1
            if some == 1 and old is not None:
                assert (above / "thing").is_dir()  # already before anybody reads it
            shutil.copytree(above, above.with_suffix(".copy"))
            check(above / "thing", old, written=written)
            check_that_nothing_is_left(above.with_suffix(".copy") / "thing")
    assert tried > 100


def test_an_error_of_the_exchange_is_told_and_the_old_folder_stays(tmp_path, monkeypatch):
    write_folder(tmp_path / "thing", OLD, KIND)

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(AT_ONCE, fail)
    with pytest.raises(
        EnvironmentProblem, match=r"Could not write .*thing: Input/output error.*what was there is there"
    ):
        write_folder(tmp_path / "thing", NEW, KIND)
    assert content(tmp_path / "thing") == OLD
    assert names(tmp_path) == ["thing"]


def test_a_system_without_an_exchange_in_one_step_does_it_in_two(tmp_path, monkeypatch):
    class NoSuchCall:
        def __init__(self, *_, **__):
            pass

    monkeypatch.setattr("ctypes.CDLL", NoSuchCall)
    write_folder(tmp_path / "thing", OLD, KIND)
    write_folder(tmp_path / "thing", NEW, KIND)
    assert content(tmp_path / "thing") == NEW
    assert names(tmp_path) == ["thing"]


@pytest.mark.parametrize("at_once", [True, False])
def test_writers_and_readers_of_one_place_never_meet_half_a_folder(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(AT_ONCE, lambda *_: False)
    path, problems, done = tmp_path / "thing", [], threading.Event()
    write_folder(path, OLD, KIND)

    def write(files):
        try:
            for _ in range(50):
                write_folder(path, files, KIND)
        except BaseException as problem:
            problems.append(problem)

    def read():
        try:
            while not done.is_set():
                assert read_folder(path, ["a", "b"], KIND) in (OLD, NEW)
        except BaseException as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(files,)) for files in (OLD, NEW)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert content(path) in (OLD, NEW)
    assert names(tmp_path) == ["thing"]


# --- what is not ours


def test_what_is_not_ours_is_never_replaced(tmp_path):
    for name in ("thesis", "other", "older"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter").write_text("years of work")
    (tmp_path / "other" / "checksums.json").write_text('{"chapter": "sum"}')
    whose = {"library": "manymetrics", "kind": "thing", "format": 1, "files": {"chapter": "sum"}}
    (tmp_path / "older" / "checksums.json").write_text(json.dumps(whose))
    for name in ("thesis", "other", "older"):
        before = content(tmp_path / name)
        for attempt in (lambda path: write_folder(path, NEW, KIND), lambda path: require_place(path, KIND)):
            with pytest.raises(InputError, match=rf"{name} is there already and is not a thing\. Give a new folder"):
                attempt(tmp_path / name)
        assert content(tmp_path / name) == before


def test_a_file_or_a_link_is_not_a_place(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to(tmp_path / "thing")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    before = names(tmp_path)
    for name in ("file", "link", "nowhere"):
        with pytest.raises(InputError, match=rf"{name} is there already and is not a folder\. Give a new folder"):
            write_folder(tmp_path / name, NEW, KIND)
    assert names(tmp_path) == before
    assert content(tmp_path / "thing") == OLD


def test_a_users_file_inside_is_not_lost(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    (tmp_path / "thing" / "notes.txt").write_text("do not lose")
    with pytest.raises(InputError, match=r"thing holds 'notes\.txt' beside a thing, which saving over it would lose"):
        write_folder(tmp_path / "thing", NEW, KIND)
    assert content(tmp_path / "thing") == {**OLD, "notes.txt": b"do not lose"}


def test_folders_that_users_named_much_like_ours_are_left_alone(tmp_path):
    for name in (".thing.new", ".thing.old", ".thing.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter").write_text("years of work")
    write_folder(tmp_path / "thing", OLD, KIND)
    write_folder(tmp_path / "thing", NEW, KIND)
    assert names(tmp_path) == [".thing.new", ".thing.old", ".thing.tmp", "thing"]


def test_a_place_that_cannot_be_looked_into_says_why(tmp_path, monkeypatch):
    write_folder(tmp_path / "thing", OLD, KIND)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(EnvironmentProblem, match=r"Could not read .*thing: Permission denied"):
        require_place(tmp_path / "thing", KIND)


# --- reading


def test_only_files_that_the_seal_names_are_read(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    (tmp_path / "thing" / "notes.txt").write_text("")
    for name in ("notes.txt", "nothing", "../thing/a"):
        with pytest.raises(ModelError, match=r"is missing or not a file of a thing\. Copy the thing again"):
            read_folder(tmp_path / "thing", [name], KIND)


def test_damage_and_foreign_seals_are_told_apart(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    seal = tmp_path / "thing" / "checksums.json"
    whose = json.loads(seal.read_text())
    for changes, message in (
        ({"format": 3}, r"has the format 3, and this version reads format 2\. Upgrade manymetrics to load it"),
        ({"format": 1}, r"has the format 1, and this version reads format 2\. Make the thing again"),
        (
            {"format": "x"},
            r"has the format of an older version, and this version reads format 2\. Make the thing again",
        ),
        (
            {"library": None},
            r"has the format of an older version, and this version reads format 2\. Make the thing again",
        ),
        ({"library": "other"}, "is not a thing of manymetrics"),
        ({"kind": "model", "format": 9}, "is not a thing of manymetrics"),
        ({"files": ["a"]}, r"checksums\.json is damaged"),
        ({"files": {"a": "0" * 64}}, r"a is damaged: its content does not match its checksum"),
    ):
        seal.write_text(json.dumps(whose | changes))
        with pytest.raises(ModelError, match=message):
            read_folder(tmp_path / "thing", ["a"], KIND)
    seal.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(ModelError, match=r"is not a saved thing: it has no checksums\.json"):
        read_folder(tmp_path / "thing", ["a"], KIND)


def test_a_folder_is_known_again_by_its_seal(tmp_path):
    assert seal_of(tmp_path / "thing") is None
    write_folder(tmp_path / "thing", OLD, KIND)
    first = seal_of(tmp_path / "thing")
    write_folder(tmp_path / "thing", NEW, KIND)
    assert seal_of(tmp_path / "thing") != first
    write_folder(tmp_path / "thing", OLD, KIND)
    assert seal_of(tmp_path / "thing") == first
