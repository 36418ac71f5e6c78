"""Pasted texts and uploaded files: all formats that `import` reads, detected from the content, within limits."""

import io
import json
import zipfile

import pytest

from manymetrics.service.domain.errors import Invalid
from manymetrics.service.web.session import Form
from manymetrics.service.web.uploads import MAX_FILES, MAX_ROWS, MAX_UNPACKED_BYTES, read_upload

ROWS = [("lamp on", "on"), ("light on", "on"), ("lamp off", "off"), ("light off", "off")]
RASA = "nlu:\n- intent: on\n  examples: |\n    - lamp on\n    - light on\n"
RASA += "- intent: off\n  examples: |\n    - lamp off\n    - light off\n"
CLU = {
    "projectKind": "Conversation",
    "assets": {"utterances": [{"text": text, "intent": label, "dataset": "Train"} for text, label in ROWS]},
}
LUIS = {
    "luis_schema_version": "7.0.0",
    "intents": [{"name": "on"}, {"name": "off"}],
    "utterances": [{"text": text, "intent": label} for text, label in ROWS],
}
CONTENTS = {
    "tsv": "\n".join(f"{text}\t{label}" for text, label in ROWS),
    "csv": "text,label\n" + "\n".join(f"{text},{label}" for text, label in ROWS),
    "csv without a header": "\n".join(f"{text},{label}" for text, label in ROWS),
    "csv of a spreadsheet": "\ufeffText;Label\r\n" + "\r\n".join(f"{text};{label}" for text, label in ROWS),
    "jsonl": "\n".join(json.dumps({"text": text, "label": label}) for text, label in ROWS),
    "rasa": RASA,
    "clu": json.dumps(CLU),
    "luis": json.dumps(LUIS),
}


def zipped(files):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, content in files.items():
            writer.writestr(name, content)
    return archive.getvalue()


def table_file(kind, path, rows):
    """The content of a Parquet or Arrow file with these rows."""
    table = pytest.importorskip("pyarrow").table({"text": [row[0] for row in rows], "label": [row[1] for row in rows]})
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
    return path.read_bytes()


def examples(content, file_name="", **fields):
    upload = read_upload(Form(fields, file_name, content))
    return sorted(((example.text, example.label) for example in upload.examples), key=str)


@pytest.mark.parametrize("kind", CONTENTS)
def test_text_of_any_format_is_read_pasted_or_as_a_file(kind):
    assert examples(CONTENTS[kind].encode()) == sorted(ROWS)
    assert examples(b"ignored", pasted=CONTENTS[kind]) == sorted(ROWS)


def test_a_parquet_file_is_read(tmp_path):
    assert examples(table_file("parquet", tmp_path / "x.parquet", ROWS)) == sorted(ROWS)


def test_columns_and_encoding_can_be_named():
    content = "Satz;Art\nLampe für mich;an\nLicht für mich;aus\n".encode("latin-1")
    fields = {"format": "csv", "text_column": "Satz", "label_column": "Art", "encoding": "latin-1"}
    assert examples(content, **fields) == [("Lampe für mich", "an"), ("Licht für mich", "aus")]


def test_a_dialogflow_agent_is_read_from_a_zip():
    files = {}
    for label in ("on", "off"):
        phrases = [{"data": [{"text": text}], "isTemplate": False} for text, other in ROWS if other == label]
        files[f"intents/{label}.json"] = json.dumps({"name": label})
        files[f"intents/{label}_usersays_en.json"] = json.dumps(phrases)
    agent = files | {"agent.json": "{}", "package.json": "{}"}
    assert examples(zipped(files)) == sorted(ROWS)
    assert examples(zipped(agent), "agent.zip") == sorted(ROWS)
    assert examples(zipped({f"my agent/{name}": content for name, content in agent.items()})) == sorted(ROWS)


@pytest.mark.parametrize(
    "files",
    [
        {"data/train.csv": CONTENTS["csv"], "README.md": "# data"},
        {"mine/train.csv": CONTENTS["csv"], "mine/test.csv": "text,label\n"},
        {"folder/mine.tsv": CONTENTS["tsv"], "__MACOSX/._mine.tsv": "x"},
    ],
    ids=["hugging face", "in one folder", "one file"],
)
def test_tables_are_read_from_a_zip(files):
    assert examples(zipped(files)) == sorted(ROWS)


@pytest.mark.parametrize("name", ["../../../../etc/evil.csv", "/etc/evil.csv", "..\\..\\evil.csv", "a/../../evil.csv"])
def test_names_in_an_archive_cannot_leave_the_temporary_folder(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert examples(zipped({name: CONTENTS["csv"]})) == sorted(ROWS)
    assert list(tmp_path.iterdir()) == []


def test_archives_are_bounded_in_files_and_in_bytes():
    with pytest.raises(Invalid, match="more than 2,000 files"):
        examples(zipped({f"{number}.csv": "" for number in range(MAX_FILES + 1)}))
    bomb = zipped({"a.csv": b"0" * (MAX_UNPACKED_BYTES // 2), "b.csv": b"0" * (MAX_UNPACKED_BYTES // 2 + 1)})
    assert len(bomb) < 100_000
    with pytest.raises(Invalid, match="unpacks to more than 32 MiB"):
        examples(bomb)


@pytest.mark.parametrize("kind", ["tsv", "parquet", "arrow"])
def test_tables_with_many_rows_are_refused_before_they_are_read(kind, tmp_path):
    rows = [("a", "b")] * (MAX_ROWS + 1)
    content = b"a\tb\n" * len(rows) if kind == "tsv" else table_file(kind, tmp_path / f"x.{kind}", rows)
    with pytest.raises(Invalid, match="more than 50,000 rows"):
        examples(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n", "There is nothing to read"),
        (b"PK\x03\x04 broken", "The archive cannot be unpacked"),
        (zipped({"picture.png": b"x"}), "no file with a known suffix"),
        (b"\xff\xfe\xff", "Examples"),
        (b"PAR1 broken PAR1", "Examples"),
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


def test_a_format_that_import_does_not_know_is_refused():
    with pytest.raises(Invalid, match="no format 'pickle'"):
        examples(b"a\tb\n", format="pickle")


def test_an_upload_has_one_task():
    files = {f"{config}/train.csv": CONTENTS["csv"] for config in ("first", "second")}
    with pytest.raises(Invalid, match="The upload has 2 tasks"):
        examples(zipped(files))


def test_a_table_with_one_label_can_be_added_to_a_classifier():
    rows = [("good night", "sleep"), ("wake me", "sleep")]
    assert examples(b"good night\tsleep\nwake me\tsleep\n") == rows


def test_rows_without_text_or_label_are_counted():
    upload = read_upload(Form({"pasted": "a b\tx\n\ty\nc d\ty\n"}))
    assert (len(upload.examples), upload.skipped) == (2, 1)


def test_texts_without_a_label_are_counter_examples():
    rows = examples(b"lamp on\ton\nlamp off\toff\nwhat time is it\tout of scope\n")
    assert [text for text, label in rows if label is None] == ["what time is it"]
