"""The report on a folder: planted problems are counted, and nothing is ignored."""

import json

import pytest

from manymetrics.collect import BankReport, inspect_bank
from manymetrics.collect.bank.report import TaskReport
from manymetrics.errors import TaskFormatError
from manymetrics.values import SkippedTask

# train: "a" three times (two duplicates), once under the other label (a contradiction)
ODD_TRAIN = "a\tyes\na\tyes\na\tno\nb\tno\nc\tyes\n"
# valid: "b" is in train too (shared) and "c" under the other label (shared, a contradiction)
ODD_VALID = "b\tno\nc\tno\nd\tno\n"
# test: "d" is in valid too (shared); "C!" is the same text as "c"
ODD_TEST = "d\tno\nC!\tno\ne\tyes\ne\tyes\n"


@pytest.fixture
def bank(tmp_path):
    files = {"odd.train.tsv": ODD_TRAIN, "odd.valid.tsv": ODD_VALID, "odd.test.tsv": ODD_TEST,
             "plain.train.tsv": "x\tone\ny\ttwo\nz\tthree\nw\tone\n", "bad.train.tsv": "no tab\n",
             "README.md": "# The bank\n", "manifest.json": '[{"name": "odd", "role": "target"}]'}  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "old").mkdir()
    return tmp_path


def test_planted_problems_are_counted(bank):
    reason = f"{bank / 'bad.train.tsv'}, line 1: found 1 field, expected text<TAB>label. Check the separator."
    odd = TaskReport("odd", "target", labels=2, train=5, valid=3, test=4, largest_share=0.6, duplicates=2, shared=3,
                     contradictions=2)  # fmt: skip
    plain = TaskReport("plain", "meta-train", labels=3, train=4, valid=0, test=0, largest_share=0.5, duplicates=0,
                       shared=0, contradictions=0)  # fmt: skip
    assert inspect_bank(bank) == BankReport(
        path=str(bank),
        tasks=(odd, plain),
        left_out=(SkippedTask("bad", reason),),
        not_tasks=("README.md", "old/"),
    )


def test_the_report_is_the_same_after_json_and_gives_no_warning(bank, recwarn):
    report = inspect_bank(str(bank)).as_dict()
    assert not recwarn
    assert json.loads(json.dumps(report)) == report
    assert list(report) == ["format", "path", "tasks", "left_out", "not_tasks", "counter_files"]
    assert report["format"] == 1
    assert report["tasks"][0]["name"] == "odd"
    assert report["left_out"][0]["name"] == "bad"


def test_a_folder_without_one_usable_task_is_still_reported(tmp_path):
    (tmp_path / "bad.train.tsv").write_text("no tab\n")
    report = inspect_bank(tmp_path)
    assert report.tasks == ()
    assert [left_out.name for left_out in report.left_out] == ["bad"]


def test_a_missing_or_empty_folder_is_refused(tmp_path):
    with pytest.raises(TaskFormatError, match="there is no such folder"):
        inspect_bank(tmp_path / "gone")
    with pytest.raises(TaskFormatError, match="the folder is empty"):
        inspect_bank(tmp_path)


def test_files_of_counter_examples_are_listed_if_their_task_exists(tmp_path):
    (tmp_path / "shop.train.tsv").write_text("x\tone\ny\ttwo\n")
    (tmp_path / "shop.counter.jsonl").write_text('{"text": "lorem"}\n')
    (tmp_path / "gone.counter.jsonl").write_text('{"text": "ipsum"}\n')
    report = inspect_bank(tmp_path)
    assert report.counter_files == ("shop.counter.jsonl",)
    assert report.not_tasks == ("gone.counter.jsonl",)


def test_labels_that_differ_only_in_case_or_white_space_are_reported(tmp_path):
    (tmp_path / "shop.train.tsv").write_text("a\tGood one\nb\tgood  One\nc\tbad\nd\tGood one\nf\tBAD\n")
    (tmp_path / "shop.test.tsv").write_text("e\tbad\n")
    (tmp_path / "plain.train.tsv").write_text("x\tone\ny\ttwo\n")
    report = inspect_bank(tmp_path)
    assert {task.name: task.similar_labels for task in report.tasks} == {
        "plain": (),
        "shop": ({"Good one": 2, "good  One": 1}, {"bad": 2, "BAD": 1}),
    }
    assert report.label_problems == (
        "Labels that differ only in case or white space count as different labels: shop: 'Good one' (2), 'good  One' "
        "(1); shop: 'bad' (2), 'BAD' (1). `import --fold-labels` joins them."
    )
    assert inspect_bank(tmp_path).as_dict()["tasks"][1]["similar_labels"][1] == {"bad": 2, "BAD": 1}
