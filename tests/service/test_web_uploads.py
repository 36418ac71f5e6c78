"""Pasted texts and uploaded files: formats of one text file, detected from the content, within limits."""

import json

import pytest

from manymetrics.service.domain.errors import Invalid
from manymetrics.service.web.session import Form
from manymetrics.service.web.uploads import MAX_ROWS, read_upload

ROWS = [("lamp on", "on"), ("light on", "on"), ("lamp off", "off"), ("light off", "off")]
RASA = "nlu:\n- intent: on\n  examples: |\n    - lamp on\n    - light on\n"
RASA += "- intent: off\n  examples: |\n    - lamp off\n    - light off\n"
LUIS = {
    "luis_schema_version": "7.0.0",
    "intents": [{"name": "on"}, {"name": "off"}],
    "utterances": [{"text": text, "intent": label} for text, label in ROWS],
}
CONTENTS = {
    "tsv": "\n".join(f"{text}\t{label}" for text, label in ROWS),
    "csv": "text,label\n" + "\n".join(f"{text},{label}" for text, label in ROWS),
    "csv of a spreadsheet": "\ufeffText;Label\r\n" + "\r\n".join(f"{text};{label}" for text, label in ROWS),
    "jsonl": "\n".join(json.dumps({"text": text, "label": label}) for text, label in ROWS),
    "rasa": RASA,
    "luis": json.dumps(LUIS),
}


def examples(content, file_name="", **fields):
    upload = read_upload(Form(fields, file_name, content))
    return sorted(((example.text, example.label) for example in upload.examples), key=str)


@pytest.mark.parametrize("kind", CONTENTS)
def test_text_of_any_format_is_read_pasted_or_as_a_file(kind):
    assert examples(CONTENTS[kind].encode()) == sorted(ROWS)
    assert examples(b"ignored", pasted=CONTENTS[kind]) == sorted(ROWS)


def test_columns_and_encoding_can_be_named():
    content = "Satz;Art\nLampe für mich;an\nLicht für mich;aus\n".encode("latin-1")
    fields = {"format": "csv", "text_column": "Satz", "label_column": "Art", "encoding": "latin-1"}
    assert examples(content, **fields) == [("Lampe für mich", "an"), ("Licht für mich", "aus")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n", "There is nothing to read"),
        (b"a\tb\n" * (MAX_ROWS + 1), "more than 50,000 rows"),
        (b"PK\x03\x04 broken", "Archives, Parquet and Arrow files are not read here"),
        (b"\xff\xfe\xff", "Examples"),
        (b"nlu:\n- intent: a\n  examples: |\n    - x\n", "at least two labels"),
        (b'{"text": "\\ud800", "label": "a"}\n{"text": "b", "label": "b"}', "Examples.* lone surrogate"),
        (b"head,other\nx,y\n", "“Text column”"),
    ],
)
def test_errors_name_fields_of_the_page_and_no_path(content, message):
    with pytest.raises(Invalid, match=message) as error:
        examples(content)
    assert "/" not in error.value.detail
    assert "--" not in error.value.detail


def test_a_format_that_the_page_does_not_offer_is_refused():
    with pytest.raises(Invalid, match="There is no such format"):
        examples(b"a\tb\n", format="parquet")


def test_a_table_may_have_one_label_or_texts_that_are_out_of_scope():
    assert examples(b"good night\tsleep\nwake me\tsleep\n") == [("good night", "sleep"), ("wake me", "sleep")]
    rows = examples(b"lamp on\ton\nlamp off\toff\nwhat time is it\tout of scope\n")
    assert [text for text, label in rows if label is None] == ["what time is it"]
