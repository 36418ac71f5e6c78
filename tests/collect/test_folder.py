"""Folders: which files make up which task, what is left out, and the messages."""

import json
import os
import re
from pathlib import Path

import pytest

from manymetrics.collect import load_tasks
from manymetrics.errors import InputError, TaskSkipped
from manymetrics.values import Examples, SkippedTask, TaskBank

pytestmark = pytest.mark.filterwarnings("error")  # only what is said to warn does
TRAIN = "yes please\tyes\nno thanks\tno\n"


def assert_refused(source, message: str, **options) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load_tasks(source, **options)


def assert_left_out(path: Path, name: str, reason: str) -> TaskBank:
    with pytest.warns(TaskSkipped, match=re.escape(reason)) as caught:
        bank = load_tasks(path)
    assert bank.names == ("good",)
    assert [left_out.name for left_out in bank.left_out] == [name]
    assert reason in bank.left_out[0].reason
    assert caught[0].filename == __file__
    assert_refused(path, reason, strict=True)
    return bank


def test_a_plain_folder_gives_its_tasks_in_order(folder):
    parts = {"b.dev.csv": "text,label\nwell yes,yes\n", "b.test.jsonl": '{"text": "nope", "label": "no"}\n'}
    others = {"a-1.v2.train.tsv": TRAIN, "A-1.v2.train.tsv": TRAIN, "README.md": "# About\n"}
    bank = load_tasks(folder({"b.train.tsv": TRAIN, **parts, **others}), strict=True)
    assert bank.names == ("A-1.v2", "a-1.v2", "b")
    assert bank["b"].valid == Examples(("well yes",), ("yes",), ("no", "yes"))
    assert bank["b"].test == Examples(("nope",), ("no",), ("no", "yes"))
    assert bank.left_out == ()
    assert dict(bank.roles) == {}


@pytest.mark.parametrize(
    ("files", "name", "reason"),
    [
        ({"bad.train.tsv": "x\n"}, "bad", "bad.train.tsv, line 1: found 1 field, expected text<TAB>label. Check the"),
        ({"bad.train.tsv": "x\ta\n"}, "bad", "Task 'bad' has only the label 'a' in train. A task needs at least two"),
        ({"bad.train.tsv": ""}, "bad", "Task 'bad' has no examples in train. A task needs at least two"),
        ({"bad.train.tsv": TRAIN, "bad.test.tsv": "hm\tmaybe\n"}, "bad", "Task 'bad' has the label 'maybe' in test"),
        ({"bad.test.tsv": TRAIN}, "bad", "bad.test.tsv: task 'bad' has no train file. Add one, or remove"),
        ({"manifest.json": '[{"name": "gone"}]'}, "gone", "manifest.json: no file belongs to the task 'gone'. Add its"),
    ],
)
def test_one_bad_task_is_left_out_and_strict_refuses_it(folder, files, name, reason):
    assert_left_out(folder({"good.train.tsv": TRAIN, **files}), name, reason)


def test_blank_rows_are_left_out_of_a_task_and_strict_refuses_them(folder):
    path = folder({"good.train.tsv": TRAIN + "\tyes\nhm\t \n", "good.test.csv": "text,label\n ,yes\nno,no\n"})
    reason = (
        f"{path / 'good.test.csv'}, line 2: the text is blank. Write one, or remove the row. "
        f"{path / 'good.train.tsv'}, line 3: the text is blank. Write one, or remove the row. "
        f"{path / 'good.train.tsv'}, line 4: the label is blank. Give every text a label, or remove the row."
    )
    task = assert_left_out(path, "good (3 rows)", reason)["good"]
    assert (len(task.train), len(task.test)) == (2, 1)


def test_a_label_whose_only_text_is_blank_does_not_count_and_the_role_of_a_bad_task_is_dropped(folder):
    manifest = '[{"name": "bad", "role": "target"}, {"name": "good", "role": "target"}]'
    path = folder({"good.train.tsv": TRAIN, "bad.train.tsv": "a\tyes\n\tno\n", "manifest.json": manifest})
    with pytest.warns(TaskSkipped) as caught:
        bank = load_tasks(path)
    assert [left_out.name for left_out in bank.left_out] == ["bad", "bad (1 row)"]
    assert "only the label 'yes'" in str(caught[0].message)
    assert dict(bank.roles) == {"good": "target"}


@pytest.mark.parametrize(("first", "second"), [("bad.train.csv", "bad.train.tsv"), ("bad.dev.tsv", "bad.valid.tsv")])
def test_two_files_for_the_same_part_are_both_named(folder, first, second):
    path = folder({"good.train.tsv": TRAIN, first: TRAIN, second: TRAIN})
    reason = f"{path / first} and {path / second} both claim to be task 'bad'. Rename one of them."
    assert_left_out(path, "bad", reason)


def test_a_file_name_that_is_not_utf_8_is_left_out(folder):
    path = folder({"good.train.tsv": TRAIN})
    try:
        Path(os.fsdecode(os.fsencode(path) + b"/caf\xe9.train.tsv")).write_text(TRAIN)
    except OSError:
        pytest.skip("this file system takes no such names")
    assert_left_out(path, "caf\\xe9", "the file name 'caf\\\\xe9' is not UTF-8. Rename the file.")


def test_if_nothing_is_usable_the_first_reasons_are_given(folder):
    path = folder({f"{name}.train.tsv": "x\n" for name in "abcde"})
    assert_refused(path, f"{path}: none of its tasks can be used. {path / 'a.train.tsv'}, line 1: found 1 field")
    assert_refused(path, "And 2 more.")


def test_a_path_that_is_not_a_folder_of_tasks_is_refused(folder):
    assert_refused("a\0b", "cannot be listed (embedded null byte). Give a folder of tasks")
    path = folder({"baby.tsv": TRAIN, "notes.txt": ""})
    assert_refused(path, f"{path}: found no task file, only baby.tsv, notes.txt. Name the files <task>.train.tsv,")
    (path / "x.train.tsv").mkdir()
    assert_refused(path, "found no task file, only baby.tsv, notes.txt, x.train.tsv/.")


def sources(bank: TaskBank) -> dict[str, str]:
    return {task.name: task.source for task in bank}


def test_a_manifest_gives_roles_and_sources_and_names_are_compared_in_nfc(folder):
    tasks = [
        {"name": "a", "source": "Acme caf\u00e9", "labels": 2, "role": "meta-train"},
        {"name": "caf\u00e9", "source": "Acme cafe\u0301", "role": "target"},
        {"name": "c", "source": None},
        {"name": "e", "source": "x" * 600},
    ]
    files = {f"{name}.train.tsv": TRAIN for name in ("a", "cafe\u0301", "c", "d", "e")}
    for manifest in (tasks, {"tasks": tasks}):
        bank = load_tasks(folder({**files, "manifest.json": json.dumps(manifest)}), strict=True)
        shared = {"a": "Acme caf\u00e9", "caf\u00e9": "Acme caf\u00e9"}
        assert sources(bank) == {**shared, "c": "c", "d": "d", "e": "x" * 600}
        assert dict(bank.roles) == {"a": "meta-train", "caf\u00e9": "target"}
        assert bank.split_off()[1].names == ("caf\u00e9",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "manifest.json, line 1: this is not JSON ("),
        ("[" * 100_000, "manifest.json: this is not JSON ("),
        (b"\xff", "manifest.json, line 1: the byte 0xff is not UTF-8. Save the file as UTF-8."),
        ("{}", "manifest.json: found no list of tasks. Write {"),
        ("[3]", 'manifest.json, task 1: the entry has no name. Give each entry a "name".'),
        ('[{"name": "a", "role": "test"}]', "task 1: 'a' has the role 'test'. Use one of meta-train, target."),
        ('[{"name": "a", "role": {}}]', "task 1: 'a' has the role {}. Use one of meta-train, target."),
        ('[{"name": "a", "source": 7}]', "task 1: the source of 'a' is not a text. Write it as a text."),
        ('[{"name": "a", "source": "\\ud800"}]', "task 1: the source of 'a' is not a text."),
        ('[{"name": "a"}, {"name": "a"}]', "task 2: 'a' is listed twice. Remove one of the entries."),
    ],
)
def test_a_broken_manifest_is_always_refused(folder, content, message):
    assert_refused(folder({"a.train.tsv": TRAIN, "manifest.json": content}), message)


@pytest.fixture
def amazon(folder):
    parts = ("train", "dev", "test")
    files = {f"{domain}.t{number}.{part}": TRAIN for domain in ("baby", "home") for number in (2, 5) for part in parts}
    files |= {f"books.t4.{part}": TRAIN for part in ("train", "test")}
    files |= {"music.t2.dev": TRAIN, "music.t2.test": "la\tyes\nli\tno\n"}
    return folder({**files, "workspace.filtered.list": "baby\nbooks\r\nmusic", "workspace.target.list": "books\n"})


def test_the_amazon_lists_give_the_domains_and_the_targets(amazon):
    bank = load_tasks(amazon, strict=True)
    past = dict.fromkeys(("baby.t2", "baby.t5", "music.t2"), "meta-train")
    assert dict(bank.roles) == {**past, "books.t4": "target"}
    missing = "music.t2.train is missing"
    assert bank.left_out == (
        SkippedTask("home.t2", "The domain 'home' is not in workspace.filtered.list."),
        SkippedTask("home.t5", "The domain 'home' is not in workspace.filtered.list."),
        SkippedTask("music.t2 (train)", f"{missing}; music.t2.test is used as train, so the task has no test."),
    )
    assert bank["music.t2"].train.texts == ("la", "li")
    assert (len(bank["music.t2"].valid), len(bank["music.t2"].test)) == (2, 0)


def test_the_source_of_an_amazon_task_is_its_domain(amazon):
    (amazon / "plain.t2.train.tsv").write_text(TRAIN)
    expected = {"baby.t2": "baby", "baby.t5": "baby", "books.t4": "books", "music.t2": "music"}
    assert sources(load_tasks(amazon)) == {**expected, "plain.t2": "plain.t2"}
    (amazon / "manifest.json").write_text('[{"name": "baby.t5", "source": "toys"}]')
    assert sources(load_tasks(amazon)) == {**expected, "baby.t5": "toys", "plain.t2": "plain.t2"}


def test_the_amazon_layout_needs_both_lists(amazon):
    for name in ("workspace.target.list", "workspace.filtered.list"):
        (amazon / name).unlink()
        assert_refused(amazon, f"{amazon}: files of the Amazon layout need {name}. Add it, or rename the files.")
