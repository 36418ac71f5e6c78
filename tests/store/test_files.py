import errno
import os
from pathlib import Path

import pytest

from manymetrics.errors import EnvironmentProblem
from manymetrics.store import write_atomically
from manymetrics.store.files import read_checked, remove_temporary_files, with_checksum


def test_a_file_is_written_with_the_folders_above_it(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), full_disk)
    with pytest.raises(
        EnvironmentProblem, match=r"Could not write .*file: No space left on device.*nothing .* is lost"
    ):
        write_atomically(path, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_a_link_where_the_file_is_written_first_is_not_followed(tmp_path):
    (tmp_path / "thesis").write_text("years of work")
    (tmp_path / f".file.{os.getpid()}.tmp").symlink_to(tmp_path / "thesis")
    with pytest.raises(EnvironmentProblem, match=r"Could not write .*file"):
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "thesis").read_text() == "years of work"


def test_only_temporary_files_are_removed_and_no_link_is_followed(tmp_path):
    folder, other = tmp_path / "jobs", tmp_path / "other"
    for parent in (folder / "ab", other):
        parent.mkdir(parents=True)
        for name in (".half.123.tmp", "notes.tmp", ".half.tmp", "complete"):
            (parent / name).write_text("")
    (folder / "linked").symlink_to(other)
    remove_temporary_files(folder)
    assert sorted(path.name for path in (folder / "ab").iterdir()) == [".half.tmp", "complete", "notes.tmp"]
    assert len(list(other.iterdir())) == 4


def test_a_missing_file_a_flipped_bit_a_truncation_and_another_name_are_detected(tmp_path):
    path, raw = tmp_path / "job", with_checksum(b"result", "name")
    assert read_checked(path, "name") is None
    for index in range(len(raw)):
        path.write_bytes(raw[:index] + bytes([raw[index] ^ 1]) + raw[index + 1 :])
        assert read_checked(path, "name") is None
        path.write_bytes(raw[:index])
        assert read_checked(path, "name") is None
    path.write_bytes(raw)
    assert read_checked(path, "another name") is None
    assert read_checked(path, "name") == b"result"
