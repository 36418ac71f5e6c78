"""The look over a folder: planted oddities are counted, and nothing is passed over."""

import json
import warnings

import pytest

from manymetrics.collect import BankReport, TaskReport, inspect_bank
from manymetrics.collect.diversity import Diversity
from manymetrics.errors import TaskFormatError
from manymetrics.values import LeftOut

# train: "a" three times (two duplicates), once under the other label (a contradiction)
ODD_TRAIN = "a\tyes\na\tyes\na\tno\nb\tno\nc\tyes\n"
# valid: "b" is in train too (shared) and "c" under the other label (shared, a contradiction)
ODD_VALID = "b\tno\nc\tno\nd\tno\n"
# test: "d" is in valid too (shared); "C!" is the same text as "c"
ODD_TEST = "d\tno\nC!\tno\ne\tyes\ne\tyes\n"


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "odd.train.tsv").write_text(ODD_TRAIN)
    (tmp_path / "odd.valid.tsv").write_text(ODD_VALID)
    (tmp_path / "odd.test.tsv").write_text(ODD_TEST)
    (tmp_path / "plain.train.tsv").write_text("x\tone\ny\ttwo\nz\tthree\nw\tone\n")
    (tmp_path / "bad.train.tsv").write_text("no tab\n")
    (tmp_path / "README.md").write_text("# The bank\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "manifest.json").write_text('[{"name": "odd", "role": "target"}]')
    return tmp_path


def test_planted_oddities_are_counted(bank):
    reason = f"{bank / 'bad.train.tsv'}, line 1: found 1 field, expected text<TAB>label. Check the separator."
    assert inspect_bank(bank) == BankReport(
        path=str(bank),
        tasks=(
            TaskReport(
                name="odd",
                role="target",
                labels=2,
                train=5,
                valid=3,
                test=4,
                largest_share=0.6,
                duplicates=2,
                shared=3,
                contradictions=2,
            ),
            TaskReport(
                name="plain",
                role="meta-train",
                labels=3,
                train=4,
                valid=0,
                test=0,
                largest_share=0.5,
                duplicates=0,
                shared=0,
                contradictions=0,
            ),
        ),
        left_out=(LeftOut("bad", reason),),
        not_tasks=("README.md", "old/"),
        diversity=Diversity(1, (("plain",),), 0.0, 0.0, 0.0, 0.0, False),
    )


def test_the_report_goes_through_json_unchanged(bank):
    report = inspect_bank(str(bank)).as_dict()
    assert json.loads(json.dumps(report)) == report
    assert list(report) == ["format", "path", "tasks", "left_out", "not_tasks", "diversity"]
    assert report["format"] == 1
    assert report["tasks"][0]["name"] == "odd"
    assert report["left_out"][0]["name"] == "bad"


def test_inspecting_reports_instead_of_warning(bank):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inspect_bank(bank)


def test_a_folder_without_one_usable_task_is_still_reported(tmp_path):
    (tmp_path / "bad.train.tsv").write_text("no tab\n")
    report = inspect_bank(tmp_path)
    assert report.tasks == ()
    assert report.diversity is None
    assert [left.name for left in report.left_out] == ["bad"]


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(TaskFormatError, match="there is no such folder"):
        inspect_bank(tmp_path / "gone")
    with pytest.raises(TaskFormatError, match="the folder is empty"):
        inspect_bank(tmp_path)
