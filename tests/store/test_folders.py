import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.store import Kind, check_output_folder, folder_fingerprint, read_folder, write_folder

KIND = Kind("thing", 2, "Make the thing again.")
OLD, NEW = {"a": b"old", "b": b"1"}, {"a": b"new", "b": b"22"}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checksums.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_that_is_replaced_has_the_new_files_only(tmp_path):
    path = tmp_path / "above" / "thing"
    path.mkdir(parents=True)
    for files in (OLD, {"a": b"newer", "c": b"3"}):
        write_folder(path, files, KIND)
        assert content(path) == files
    assert read_folder(path, ["c"], KIND) == {"c": b"3"}
    assert names(path.parent) == ["thing"]


def test_concurrent_writers_and_readers_see_complete_folders_only(tmp_path):
    path = tmp_path / "thing"
    write_folder(path, OLD, KIND)
    with ThreadPoolExecutor(3) as pool:
        writing = [pool.submit(lambda files=files: [write_folder(path, files, KIND) for _ in range(50)])
                   for files in (OLD, NEW)]  # fmt: skip
        while not all(writer.done() for writer in writing):
            assert read_folder(path, ["a", "b"], KIND) in (OLD, NEW)
        for writer in writing:
            writer.result()
    assert content(path) in (OLD, NEW)
    assert names(tmp_path) == ["thing"]


def test_an_old_folder_that_is_not_complete_is_not_renamed_back(tmp_path):
    write_folder(tmp_path / "thing", OLD, KIND)
    (tmp_path / "thing").rename(tmp_path / ".thing.manymetrics-old")
    (tmp_path / ".thing.manymetrics-old" / "checksums.json").unlink()
    with pytest.raises(ModelError, match="There is no thing folder"):
        read_folder(tmp_path / "thing", ["a"], KIND)
    write_folder(tmp_path / "thing", NEW, KIND)
    assert content(tmp_path / "thing") == NEW
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
