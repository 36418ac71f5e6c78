"""Writing banks: a new folder, tasks added to one, and JSON lines."""

import json
from pathlib import Path

import pytest

from manymetrics.collect import add_to_bank, import_tasks, load_tasks, sample_bank, write_bank
from manymetrics.errors import DataError, InputError
from manymetrics.values import Examples, Task, TaskBank

ODD = Examples(("a\tb", "two\nlines", "käse \u2028 😀", ' "quoted", '), ("x", "y", "x", "y"))


def test_a_written_bank_can_be_read_back(tmp_path):
    few = sample_bank(0).only(["banking-01", "banking-new", "other-chess-talk"])
    few = TaskBank((*few.tasks, Task("odd", ODD)), {**few.roles, "odd": "meta-train"})
    write_bank(few, tmp_path / "bank")
    read = load_tasks(tmp_path / "bank", strict=True)
    assert read.fingerprint == few.fingerprint
    assert dict(read.roles) == dict(few.roles)
    assert not (tmp_path / "bank" / "banking-new.valid.jsonl").exists()


def test_the_manifest_gives_the_role_and_the_source_of_each_task(tmp_path):
    examples = Examples(("one", "two"), ("a", "b"))
    bank = TaskBank((Task("plain", examples), Task("shared", examples, source="Acme")))
    write_bank(bank, tmp_path)
    entries = [{"name": task.name, "role": "meta-train", "source": task.source} for task in bank]
    assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8")) == {"tasks": entries}
    names = ["manifest.json", "plain.train.jsonl", "shared.train.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert load_tasks(tmp_path, strict=True).tasks == bank.tasks


def test_names_are_names_of_files_of_up_to_200_bytes(tmp_path):
    examples = Examples(("one", "two"), ("a", "b"))
    longest = "ü" * 100
    for write in (write_bank, add_to_bank):
        write(TaskBank((Task(longest, examples),)), tmp_path / write.__name__)
        assert load_tasks(tmp_path / write.__name__, strict=True).names == (longest,)
        with pytest.raises(DataError, match=r"The task's name 'ü+' cannot be .* at most 200 bytes\."):
            write(TaskBank((Task(longest + "x", examples),)), tmp_path / "new")
        for name in ("../up", ".hidden", "a/b", "a\\b", "a\nb"):
            with pytest.raises(DataError, match="cannot be the name of a file"):
                write(TaskBank((Task(name, examples),)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_long_names_are_cut_on_import(tmp_path):
    names = ["短" * 100, "short", "短" * 300 + "a", "短" * 300 + "b", "x" * 10_000]
    rows = [{"text": text, "label": text, "task": name} for name in names for text in ("one", "two")]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bank = import_tasks(tmp_path / "all.jsonl", task_column="task", split=False).bank
    assert len(bank) == len(names)
    assert max(len(name.encode()) for name in bank.names) <= 200
    add_to_bank(bank, tmp_path / "bank", counter_examples=dict.fromkeys(bank.names, ("hm",)))
    assert load_tasks(tmp_path / "bank", strict=True).fingerprint == bank.fingerprint


def test_an_existing_task_is_not_overwritten_and_a_folder_of_other_files_does_not_become_a_bank(tmp_path):
    bank = TaskBank((Task("Odd", ODD),))
    add_to_bank(bank, tmp_path / "bank")
    before = {path.name: path.read_bytes() for path in (tmp_path / "bank").iterdir()}
    for name in ("Odd", "odd"):
        with pytest.raises(InputError, match=r"has a task '[Oo]dd' already"):
            add_to_bank(TaskBank((Task("new", ODD), Task(name, ODD.take([1, 0, 2, 3])))), tmp_path / "bank")
    assert {path.name: path.read_bytes() for path in (tmp_path / "bank").iterdir()} == before
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(InputError, match="is there already and is not a bank"):
        add_to_bank(TaskBank((Task("odd", ODD),)), tmp_path)


@pytest.mark.parametrize("done", range(5))  # files renamed before the interruption
def test_a_task_whose_replacement_is_interrupted_is_the_old_one(tmp_path, monkeypatch, done):
    old = TaskBank((Task("odd", ODD, ODD, ODD),))
    add_to_bank(old, tmp_path / "bank")
    rename, calls = Path.replace, []

    def interrupt(path, target):
        calls.append(path)
        if len(calls) == done + 1:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        add_to_bank(TaskBank((Task("odd", ODD.take([1, 0]), ODD),)), tmp_path / "bank", replace=True)
    assert load_tasks(tmp_path / "bank", strict=True).fingerprint == old.fingerprint
    assert len(list((tmp_path / "bank").iterdir())) == 3
