import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import read_checked, write_atomically
from manymetrics.store.files import sealed, write_folder


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_written_with_the_folders_above_it(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), full_disk)
    with pytest.raises(
        EnvironmentProblem, match=r"Could not write .*file: No space left on device.*nothing .* is lost"
    ):
        write_atomically(path, b"new")
    assert [found.name for found in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


@given(st.binary(max_size=200))
def test_a_sealed_payload_comes_back(tmp_path_factory, payload):
    path = tmp_path_factory.mktemp("sealed") / "unit"
    path.write_bytes(sealed(payload))
    assert read_checked(path) == payload


def test_a_missing_file_and_every_flipped_bit_and_every_cut_are_noticed(tmp_path):
    path, raw = tmp_path / "unit", sealed(b"result")
    assert read_checked(path) is None
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert read_checked(path) is None
        path.write_bytes(raw[:place])
        assert read_checked(path) is None


def test_a_folder_of_ours_is_replaced_whole(tmp_path):
    write_folder(tmp_path / "model", {"mark": b"1", "old": b"1"})
    write_folder(tmp_path / "model", {"mark": b"2"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == {"mark": b"2"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", {"mark": b"1"})
    assert (tmp_path / "model" / "mark").is_file()


def test_what_is_not_ours_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    for name in ("thesis", "file"):
        with pytest.raises(InputError, match=rf"{name} is there already and is not a model\. Give a new folder"):
            write_folder(tmp_path / name, {"mark": b"1"})
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"


@pytest.mark.parametrize("failing", ["writing", "the last move"])
def test_a_folder_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch, failing):
    write_folder(tmp_path / "model", {"mark": b"old"})
    rename = Path.rename

    def rename_but_not_into_place(path, target):
        return full_disk() if path.suffix == ".tmp" else rename(path, target)

    if failing == "writing":
        monkeypatch.setattr(os, "fsync", full_disk)
    else:
        monkeypatch.setattr(Path, "rename", rename_but_not_into_place)
    with pytest.raises(EnvironmentProblem, match=r"Could not write .*No space left on device"):
        write_folder(tmp_path / "model", {"mark": b"new"})
    assert (tmp_path / "model" / "mark").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
