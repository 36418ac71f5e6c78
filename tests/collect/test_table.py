"""One file of examples: what is read, what is skipped, what is refused, and the messages."""

import contextlib
import json
import re
import unicodedata
import warnings

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collect.conftest import as_jsonl
from tests.collect.conftest import pairs as pairs_in

from manymetrics.collect import read_examples
from manymetrics.collect.readers import arrow, records
from manymetrics.errors import TaskFormatError, TaskSkipped

GOOD = {
    "tsv": "wo ist mein Päckchen\tdelivery\n \t \nhm\tother\r\nand\ttabs\tdelivery\n".encode(),
    "csv": b'text,label\n"where, please",delivery\r\n"two\nlines ""quoted""",other\n,\nhm,delivery\n',
    "jsonl": b'{"text": "where", "label": "delivery"}\n\n{"intent": 3, "id": [1], "utterance": "h\xc3\xa9"}\n',
}
PAIRS = {
    "tsv": [("wo ist mein Päckchen", "delivery"), ("hm", "other"), ("and\ttabs", "delivery")],
    "csv": [("where, please", "delivery"), ('two\nlines "quoted"', "other"), ("hm", "delivery")],
    "jsonl": [("where", "delivery"), ("hé", "3")],
}


def pairs(path):
    return pairs_in(read_examples(path))


def assert_refused(path, message):
    with pytest.raises(TaskFormatError, match=re.escape(message)):
        read_examples(path)


@pytest.mark.parametrize("ending", GOOD)
def test_each_format_is_read_with_and_without_a_byte_order_mark(make, ending):
    assert pairs(make(f"a.{ending}", GOOD[ending])) == PAIRS[ending]
    assert pairs(make(f"a.{ending}", b"\xef\xbb\xbf" + GOOD[ending])) == PAIRS[ending]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("cafe\u0301\t e\u0301 \n", ("caf\u00e9", "\u00e9")),  # NFC, labels without white space at the ends
        ("a\u2028b\x85c\x0cd\re\tx\n", ("a\u2028b\x85c\x0cd\re", "x")),  # only line feeds end a line
        ("x" * 300_000 + "\ta\n", ("x" * 300_000, "a")),
    ],
)
def test_texts_are_not_changed_except_for_their_unicode_form(make, content, expected):
    assert pairs(make("a.tsv", content)) == [expected]


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        ("tsv", "fine\ta\n" * 16 + "no tab\n", ", line 17: found 1 field, expected text<TAB>label. Check the"),
        ("tsv", "a\0\tb\n", ", line 1: found a NUL character. Remove it, or export the file again as UTF-8 text."),
        ("csv", "", ", line 1: found no column names, expected 'text' or 'sentence' or 'utterance' for the text."),
        ("csv", "body;sort\na;b\n", ", line 1: found the columns 'body', 'sort', expected 'text' or"),
        ("csv", "a,b,c,d,e,f,g\n", ", line 1: found the columns 'a', 'b', 'c', 'd', 'e' and 2 more, expected"),
        ("csv", "text,label\na,b\na\n", ", line 3: found 1 field, expected 2 as in the header. Put texts that hold"),
        ("csv", "text;label\na;b;c\n", "found 3 fields, expected 2 as in the header. Put texts that hold semicolons"),
        ("csv", 'text,label\n"a,b\n', "line 2: this is not CSV (unexpected end of data). Check the quotes."),
        ("csv", f"text,label\n{'x' * 140_000},b\n", "field larger than field limit (131072)). Check the quotes."),
        ("jsonl", "{]\n", ", line 1: this is not a JSON object (Expecting property name enclosed in double quotes"),
        ("jsonl", "[1]\n", ", line 1: this is not a JSON object (found a list). Write one object for each text"),
        ("jsonl", "[" * 100_000, ", line 1: this is not a JSON object (too large or too deep). Write one object"),
        ("jsonl", "9" * 5_000, ", line 1: this is not a JSON object (too large or too deep). Write one object"),
        ("jsonl", '{"a": 1}', ", line 1: found the columns 'a', expected 'text' or 'sentence' or 'utterance' for the"),
        ("jsonl", '{"text": 1, "label": "a"}', ", line 1: the text is a number, expected a string. Write it as text."),
        ("jsonl", '{"text": "a", "label": true}', ", line 1: the label is true or false, expected a string. Write"),
        ("jsonl", '{"text": "a", "label": 1.5}', ", line 1: the label is a number, expected a string. Write it as"),
        ("jsonl", r'{"text": "a\u0000", "label": "a"}', ", line 1: found a NUL character. Remove it, or export"),
        ("jsonl", r'{"text": "a", "label": "\ud800"}', ", line 1: found the lone surrogate U+D800. Remove it, or"),
    ],
)
def test_an_unreadable_file_is_refused_with_position_and_cure(make, ending, content, message):
    path = make(f"a.{ending}", content)
    assert_refused(path, f"{path}{message}" if message.startswith(",") else message)


BLANK_ROWS = [("a", "x"), (None, "y"), ("b", None), (" ", "y"), ("c", "y")]
BLANKS = {
    "tsv": "a\tx\n\ty\nb\t \n  \ty\nc\ty\n",
    "csv": "text,label\na,x\n,y\nb, \n  ,y\nc,y\n",
    "jsonl": as_jsonl({"text": text, "label": label} for text, label in BLANK_ROWS),
}


@pytest.mark.parametrize("ending", BLANKS)
def test_blank_texts_and_labels_are_left_out_with_one_warning(make, ending):
    path = make(f"a.{ending}", BLANKS[ending])
    first = 3 if ending == "csv" else 2
    message = (
        f"{path}, line {first}, line {first + 2}: the text is blank. Write one, or remove the row. "
        f"{path}, line {first + 1}: the label is blank. Give every text a label, or remove the row."
    )
    with pytest.warns(TaskSkipped, match=re.escape(f"3 rows are left out. {message}")) as caught:
        assert pairs(path) == [("a", "x"), ("c", "y")]
    assert len(caught) == 1


def test_a_label_as_long_as_a_text_is_left_out_and_the_first_of_many_such_rows_are_named(make):
    longest = "y" * 500
    content = f"a\tx\nb\t{'y' * 100_000}\n" + f"c\t{'y' * 501}\n" * 999 + f"d\t{longest}\n"
    positions = "line 2, line 3, line 4, line 5, line 6 and 995 more"
    with pytest.warns(TaskSkipped, match=f"{positions}: the label has more than 500 characters. Check which column"):
        assert pairs(make("a.tsv", content)) == [("a", "x"), ("d", longest)]


def test_more_characters_rows_or_labels_than_the_limits_are_refused(make, tmp_path, monkeypatch):
    path = make("a.tsv", "".join(f"text {i}\tlabel {i}\n" for i in range(1_001)))
    assert_refused(path, f"{path}: found more than 1,000 labels. Check which column holds the label")
    monkeypatch.setattr(records, "MAX_CHARACTERS", 100)
    assert len(pairs(make("a.tsv", "x" * 50 + "\ta\n" + "x" * 50 + "\tb\n"))) == 2
    too_many = "x" * 51 + "\ta\n" + "x" * 50 + "\tb\n"
    assert_refused(make("a.tsv", too_many), "found more than 100 characters of text. Take a")
    monkeypatch.setattr(records, "MAX_ROWS", 3)
    monkeypatch.setattr(arrow, "MAX_ROWS", 3)
    assert len(pairs(make("a.tsv", "a\tb\n" * 3))) == 3
    assert_refused(make("a.tsv", "a\tb\n" * 4), "a.tsv: found more than 3 rows. Take a sample, or split it")
    path = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"] * 4, "label": ["b"] * 4}), path)
    assert_refused(path, f"{path}: found more than 3 rows. Take a sample, or split it")


CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(CHARACTERS).filter(str.strip), max_size=5),
    label=st.text(CHARACTERS, min_size=1).filter(str.strip),
    escaped=st.booleans(),
)
def test_any_unicode_text_survives_jsonl(make, texts, label, escaped):
    lines = [json.dumps({"text": text, "label": label}, ensure_ascii=escaped) + "\n" for text in texts]
    expected = [(unicodedata.normalize("NFC", text), unicodedata.normalize("NFC", label).strip()) for text in texts]
    assert pairs(make("a.jsonl", "".join(lines))) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60), ending=st.sampled_from([*GOOD, "parquet"]))
def test_any_bytes_are_read_or_refused_cleanly(make, content, ending):
    with contextlib.suppress(TaskFormatError), warnings.catch_warnings():
        warnings.simplefilter("ignore", TaskSkipped)
        assert len(read_examples(make(f"a.{ending}", content))) <= len(content)
