"""One file at a time: what is read, what is refused, and in which words."""

import contextlib
import json
import re
import sys
import unicodedata
import warnings
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manymetrics.collect import columnar, rows
from manymetrics.collect.formats import read_examples
from manymetrics.errors import ManyMetricsError, MissingExtra, TaskFormatError, TaskLeftOut

GOOD = {
    "tsv": "wo ist mein Päckchen\tdelivery\n \t \nhm\tother\r\nand\ttabs\tdelivery\n".encode(),
    "csv": b'text,label\n"where, please",delivery\r\n"two\nlines ""quoted""",other\n,\nhm,delivery\n',
    "jsonl": b'{"text": "where", "label": "delivery"}\n\n{"intent": 3, "id": [1], "utterance": "h\xc3\xa9"}\n',
}


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes, ending: str = "tsv") -> Path:
        path = tmp_path / f"baby.train.{ending}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def pairs(path: Path) -> list[tuple[str, str]]:
    examples = read_examples(path)
    return list(zip(examples.texts, examples.labels, strict=True))


def assert_refused(path: Path, message: str) -> None:
    with pytest.raises(TaskFormatError, match=re.escape(message)):
        read_examples(path)


def test_tsv_parts_at_the_last_tab_and_skips_blank_lines(write):
    expected = [("wo ist mein Päckchen", "delivery"), ("hm", "other"), ("and\ttabs", "delivery")]
    assert pairs(write(GOOD["tsv"])) == expected


def test_csv_is_quoted_as_the_rfc_says(write):
    expected = [("where, please", "delivery"), ('two\nlines "quoted"', "other"), ("hm", "delivery")]
    assert pairs(write(GOOD["csv"], "csv")) == expected


def test_jsonl_takes_other_names_and_whole_numbers_as_labels(write):
    assert pairs(write(GOOD["jsonl"], "jsonl")) == [("where", "delivery"), ("hé", "3")]


def test_csv_columns_may_have_other_names_and_any_order(write):
    for label, text in (("label", "text"), ("intent", "sentence"), ("category", "utterance"), ("LABEL", " Text ")):
        assert pairs(write(f"id,{label},{text}\n1,yes,sure\n", "csv")) == [("sure", "yes")]


def test_parquet_columns_may_be_words_numbers_or_categories(tmp_path):
    path = tmp_path / "a.train.parquet"
    category = pyarrow.array(["x", "y"]).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"sentence": ["one", "two"], "more": [0, 0], "label": category}), path)
    assert pairs(path) == [("one", "x"), ("two", "y")]
    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"], "label": [-1, 1]}), path)
    assert pairs(path) == [("one", "-1"), ("two", "1")]


def test_a_byte_order_mark_is_taken_off(write):
    for ending, content in GOOD.items():
        assert pairs(write(b"\xef\xbb\xbf" + content, ending)) == pairs(write(content, ending))


def test_text_and_label_are_brought_to_nfc_and_labels_are_stripped(write):
    assert pairs(write("cafe\u0301\t e\u0301 \n")) == [("caf\u00e9", "\u00e9")]


def test_only_line_feeds_end_a_line(write):
    assert pairs(write("a\u2028b\x85c\x0cd\re\tx\n")) == [("a\u2028b\x85c\x0cd\re", "x")]


def test_a_very_long_text_is_kept_whole(write):
    assert len(pairs(write("x" * 300_000 + "\ta\n"))[0][0]) == 300_000


def test_a_missing_tab_names_file_line_and_cure(write):
    path = write("fine\ta\n" * 16 + "no tab here\n")
    assert_refused(path, f"{path}, line 17: found 1 field, expected text<TAB>label. Check the separator.")


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        ("tsv", "a\0\tb\n", ", line 1: found a NUL character. Remove it, or export the file again as UTF-8 text."),
        ("csv", "", ", line 1: found no column names, expected 'text' and 'label'. Name the columns so;"),
        ("csv", "body;sort\na;b\n", ", line 1: found the columns 'body', 'sort', expected 'text' and 'label'."),
        ("csv", "a,b,c,d,e,f,g\n", ", line 1: found the columns 'a', 'b', 'c', 'd', 'e' and 2 more, expected"),
        ("csv", "text,label\na,b\na\n", ", line 3: found 1 field, expected 2 as in the header. Put texts that hold"),
        (
            "csv",
            "text;label\na;b;c\n",
            "found 3 fields, expected 2 as in the header. Put texts that hold semicolons in",
        ),
        ("csv", 'text,label\n"a,b\n', "line 2: this is not CSV (unexpected end of data). Check the double quotes, or"),
        ("csv", f"text,label\n{'x' * 140_000},b\n", "field larger than field limit (131072)). Check the double"),
        ("jsonl", "{]\n", ", line 1: this is not a JSON object (Expecting property name enclosed in double quotes"),
        ("jsonl", "[1]\n", ", line 1: this is not a JSON object (found a list). Write one object a line, such as"),
        ("jsonl", "[" * 100_000, ", line 1: this is not a JSON object (too large or too deep). Write one object"),
        ("jsonl", "9" * 5_000, ", line 1: this is not a JSON object (too large or too deep). Write one object"),
        ("jsonl", '{"a": 1}', ", line 1: found the columns 'a', expected 'text' and 'label'. Name the columns so;"),
        ("jsonl", '{"text": 1, "label": "a"}', ", line 1: the text is a number, expected a string. Write it as text."),
        ("jsonl", '{"text": "a", "label": true}', ", line 1: the label is true or false, expected a string. Write"),
        ("jsonl", '{"text": "a", "label": 1.5}', ", line 1: the label is a number, expected a string. Write it as"),
        ("jsonl", r'{"text": "a\u0000", "label": "a"}', ", line 1: found a NUL character. Remove it, or export"),
        (
            "jsonl",
            r'{"text": "a", "label": "\ud800"}',
            ", line 1: found half of a character (the lone surrogate U+D800)",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place_and_cure(write, ending, content, message):
    assert_refused(write(content, ending), message)


BLANKS = {
    "tsv": "a\tx\n\ty\nb\t \n  \ty\nc\ty\n",
    "csv": "text,label\na,x\n,y\nb, \n  ,y\nc,y\n",
    "jsonl": "".join(
        json.dumps(row) + "\n"
        for row in (
            {"text": "a", "label": "x"},
            {"text": None, "label": "y"},
            {"text": "b"},
            {"text": " ", "label": "y"},
            {"text": "c", "label": "y"},
        )
    ),
}


def test_blank_texts_and_labels_are_left_out_and_told_all_at_once(write):
    for ending, content in BLANKS.items():
        path = write(content, ending)
        first = 3 if ending == "csv" else 2
        told = (
            f"3 rows are left out. {path}, line {first}, line {first + 2}: the text is blank. Write one, or remove the "
            f"row. {path}, line {first + 1}: the label is blank. Give every text a label, or remove the row."
        )
        with pytest.warns(TaskLeftOut, match=re.escape(told)) as caught:
            assert pairs(path) == [("a", "x"), ("c", "y")]
        assert len(caught) == 1
        with pytest.raises(TaskFormatError, match=re.escape(told.removeprefix("3 rows are left out. "))):
            read_examples(path, strict=True)


def test_missing_values_of_a_parquet_file_are_left_out(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", None, "c"], "label": ["x", "x", None]}), path)
    with pytest.warns(TaskLeftOut, match=r"2 rows are left out.*row 2: the text is blank.*row 3: the label is blank"):
        assert pairs(path) == [("a", "x")]


def test_of_many_bad_rows_the_first_are_named_and_the_others_counted(write):
    path = write("a\tx\n" + "\tx\n" * 1_000)
    with pytest.warns(TaskLeftOut, match=re.escape("line 2, line 3, line 4, line 5, line 6 and 995 more: the text is")):
        assert pairs(path) == [("a", "x")]


def test_a_label_as_long_as_a_text_is_left_out(write):
    kept = "y" * 500
    content = f"a\tx\nb\t{'y' * 100_000}\nc\t{'y' * 501}\nd\t{kept}\n"
    with pytest.warns(TaskLeftOut, match="line 2, line 3: the label has more than 500 characters. Check which column"):
        assert pairs(write(content)) == [("a", "x"), ("d", kept)]


def test_more_text_than_fits_into_memory_is_refused(write, monkeypatch):
    monkeypatch.setattr(rows, "MAX_CHARACTERS", 100)
    assert len(pairs(write("x" * 50 + "\ta\n" + "x" * 50 + "\tb\n"))) == 2
    assert_refused(write("x" * 51 + "\ta\n" + "x" * 50 + "\tb\n"), "the texts have more than 100 characters. Take a")


def test_a_file_that_may_not_be_opened_says_so(tmp_path):
    path = tmp_path / "gone.train.tsv"
    assert_refused(path, f"{path}: cannot be opened (No such file or directory). Check that it may be read.")


def test_parquet_without_pyarrow_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=re.escape('Install it with: pip install "manymetrics[parquet]"')):
        read_examples(write(b"", "parquet"))


def test_parquet_that_is_damaged_or_has_other_columns_is_refused(write, tmp_path):
    assert_refused(write(b"PAR1 not really PAR1", "parquet"), "baby.train.parquet: this is not a readable Parquet file")
    path = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "sort": ["b"]}), path)
    assert_refused(path, f"{path}: found the columns 'text', 'sort', expected 'text' and 'label'.")
    pyarrow.parquet.write_table(pyarrow.table({"text": [b"a"], "label": ["b"]}), path)
    assert_refused(path, f"{path}: the column 'text' is of type binary, expected strings. Write it as text.")
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "label": [["b"]]}), path)
    assert_refused(path, f"{path}: the column 'label' is of type list")
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "label": [1.5]}), path)
    assert_refused(path, f"{path}, row 1: the label is a number, expected a string. Write it as text.")


def test_five_thousand_labels_are_answered_with_one_clear_sentence(write):
    path = write("".join(f"text {i}\tlabel {i}\n" for i in range(5_000)))
    assert_refused(
        path, f"{path}: found 5,000 labels, a task may have at most 1,000. Check which column holds the label"
    )


def test_too_many_rows_are_refused(write, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 3)
    monkeypatch.setattr(columnar, "MAX_ROWS", 3)
    assert len(pairs(write("a\tb\n" * 3))) == 3
    assert_refused(
        write("a\tb\n" * 4), "baby.train.tsv: found more than 3 rows. Take a sample of them, or split the task"
    )
    path = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"] * 4, "label": ["b"] * 4}), path)
    assert_refused(path, f"{path}: found 4 rows, a file may have at most 3. Take a sample of them, or split the task")


@pytest.mark.filterwarnings("ignore::manymetrics.errors.TaskLeftOut")
@pytest.mark.parametrize("ending", GOOD)
def test_a_file_cut_off_at_any_byte_is_read_or_refused_cleanly(write, ending):
    whole = pairs(write(GOOD[ending], ending))
    read, refusals = 0, []
    for length in range(len(GOOD[ending])):
        try:
            found = pairs(write(GOOD[ending][:length], ending))
        except ManyMetricsError as error:
            refusals.append(str(error))
        else:
            assert len(found) <= len(whole)
            read += 1
    assert read
    assert refusals
    assert all("baby.train" in refusal for refusal in refusals)


def test_a_parquet_file_cut_off_anywhere_is_refused_cleanly(write, tmp_path):
    path = tmp_path / "whole.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": ["x", "y"]}), path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        assert_refused(write(content[:length], "parquet"), "Write it again.")


CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(CHARACTERS).filter(str.strip), max_size=5),
    label=st.text(CHARACTERS, min_size=1).filter(str.strip),
    escaped=st.booleans(),
)
def test_any_unicode_text_survives_jsonl(write, texts, label, escaped):
    lines = [json.dumps({"text": text, "label": label}, ensure_ascii=escaped) + "\n" for text in texts]
    expected = [(unicodedata.normalize("NFC", text), unicodedata.normalize("NFC", label).strip()) for text in texts]
    assert pairs(write("".join(lines), "jsonl")) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60), ending=st.sampled_from([*GOOD, "parquet"]))
def test_any_bytes_are_read_or_refused_cleanly(write, content, ending):
    with contextlib.suppress(TaskFormatError), warnings.catch_warnings():
        warnings.simplefilter("ignore", TaskLeftOut)
        assert len(read_examples(write(content, ending))) <= len(content)
