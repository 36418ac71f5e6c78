import itertools
import json
import math
import os
import shutil
import threading
from pathlib import Path

import pytest

from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.store import Kind, check_output_folder, folder_fingerprint, read_folder, write_folder

KIND = Kind("thing", 2, "Make the thing again.")
OLD, NEW, NEWER = {"a": b"old", "b": b"1"}, {"a": b"new", "b": b"22"}, {"a": b"newer", "c": b"3"}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checksums.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- a folder is replaced as a job


def test_a_folder_that_is_replaced_has_the_new_files_only(tmp_path):
    path = tmp_path / "above" / "thing"
    path.mkdir(parents=True)
    for files in (OLD, NEWER):
        write_folder(path, files, KIND)
        assert content(path) == files
    assert read_folder(path, ["c"], KIND) == {"c": b"3"}
    assert names(path.parent) == ["thing"]


class Faults:
    """System calls that fail from the n-th on; if all of them fail, the process has ended."""

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
    """The folder is complete, and the next write succeeds."""
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


def check_that_no_incomplete_folder_returns(path):
    """If the folder is removed, an incomplete older one is not restored."""
    shutil.rmtree(path, ignore_errors=True)
    try:
        assert read_folder(path, ["a", "b"], KIND) == OLD
    except ModelError as problem:
        assert "There is no thing folder" in str(problem)  # noqa: PT017 - or a complete one


@pytest.mark.parametrize("old", [OLD, None])
def test_whichever_system_call_fails_the_old_or_the_new_folder_is_complete(tmp_path, monkeypatch, old):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # slow on some disks
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
                assert (above / "thing").is_dir()  # before anybody reads it
            shutil.copytree(above, above.with_suffix(".copy"))
            check(above / "thing", old, written=written)
            check_that_no_incomplete_folder_returns(above.with_suffix(".copy") / "thing")
    assert tried > 100


def test_concurrent_writers_and_readers_see_complete_folders_only(tmp_path):
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


# --- files of the user


def test_folders_of_another_kind_are_never_replaced(tmp_path):
    for name in ("thesis", "other", "older"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter").write_text("years of work")
    (tmp_path / "other" / "checksums.json").write_text('{"chapter": "sum"}')
    whose = {"library": "manymetrics", "kind": "thing", "format": 1, "files": {"chapter": "sum"}}
    (tmp_path / "older" / "checksums.json").write_text(json.dumps(whose))
    for name in ("thesis", "other", "older"):
        before = content(tmp_path / name)
        for attempt in (lambda path: write_folder(path, NEW, KIND), lambda path: check_output_folder(path, KIND)):
            with pytest.raises(InputError, match=rf"{name} is there already and is not a thing\. Give a new folder"):
                attempt(tmp_path / name)
        assert content(tmp_path / name) == before


def test_a_file_or_a_link_is_refused(tmp_path):
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


def test_folders_with_names_like_the_temporary_ones_are_unchanged(tmp_path):
    for name in (".thing.new", ".thing.old", ".thing.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter").write_text("years of work")
    write_folder(tmp_path / "thing", OLD, KIND)
    write_folder(tmp_path / "thing", NEW, KIND)
    assert names(tmp_path) == [".thing.new", ".thing.old", ".thing.tmp", "thing"]


def test_a_folder_that_cannot_be_read_is_an_error_with_its_reason(tmp_path, monkeypatch):
    write_folder(tmp_path / "thing", OLD, KIND)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    for attempt in (lambda path: check_output_folder(path, KIND), lambda path: read_folder(path, ["a"], KIND)):
        with pytest.raises(EnvironmentProblem, match=r"Could not read .*thing: Permission denied"):
            attempt(tmp_path / "thing")


# --- reading


def test_only_files_with_a_checksum_are_read(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    (tmp_path / "thing" / "notes.txt").write_text("")
    for name in ("notes.txt", "nothing", "../thing/a"):
        with pytest.raises(ModelError, match=r"is missing or not a file of a thing\. Copy the thing again"):
            read_folder(tmp_path / "thing", [name], KIND)


def test_damage_other_formats_and_other_kinds_have_their_own_messages(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    checksums = tmp_path / "thing" / "checksums.json"
    whose = json.loads(checksums.read_text())
    for changes, message in (
        ({"format": 3}, r"has the format 3, and this version reads format 2\. Upgrade manymetrics to load it"),
        ({"format": 1}, r"has the format 1, and this version reads format 2\. Make the thing again"),
        ({"format": "x"}, r"has the format of an older version, and this version reads format 2\. Make the thing"),
        ({"library": None}, r"has the format of an older version, and this version reads format 2\. Make the thing"),
        ({"library": ["manymetrics"]}, "is not a thing of manymetrics"),
        ({"library": "other"}, "is not a thing of manymetrics"),
        ({"kind": "model", "format": 9}, "is not a thing of manymetrics"),
        ({"files": ["a"]}, r"checksums\.json is damaged"),
        ({"files": {"a": "0" * 64}}, r"a is damaged: its content does not match its checksum"),
    ):
        checksums.write_text(json.dumps(whose | changes))
        with pytest.raises(ModelError, match=message):
            read_folder(tmp_path / "thing", ["a"], KIND)
    for text in ("", "[]", "null", "3", "[" * 100_000):
        checksums.write_text(text)
        with pytest.raises(ModelError, match=r"checksums\.json is damaged\. Copy the thing again"):
            read_folder(tmp_path / "thing", ["a"], KIND)
    checksums.write_bytes(b" " * (2**20 + 1))
    for folder in (tmp_path / "thing", tmp_path, Path("/")):
        with pytest.raises(ModelError, match=r"is not a saved thing: it has no checksums\.json"):
            read_folder(folder, ["a"], KIND)
    for folder in (tmp_path / "nowhere", checksums):
        with pytest.raises(ModelError, match=r"There is no thing folder .* Give a folder that was saved as one"):
            read_folder(folder, ["a"], KIND)


def test_the_fingerprint_of_a_folder_changes_with_its_content(tmp_path):
    assert folder_fingerprint(tmp_path / "thing") is None
    write_folder(tmp_path / "thing", OLD, KIND)
    first = folder_fingerprint(tmp_path / "thing")
    write_folder(tmp_path / "thing", NEW, KIND)
    assert folder_fingerprint(tmp_path / "thing") != first
    write_folder(tmp_path / "thing", OLD, KIND)
    assert folder_fingerprint(tmp_path / "thing") == first
