"""What is pasted or uploaded: every format that `import` knows, told from its content, within bounds."""

import io
import json
import zipfile

import pytest

from manymetrics.service.problems import Invalid
from manymetrics.service.web.uploads import MOST_FILES, MOST_ROWS, MOST_UNPACKED, Given, as_lines, read_examples

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
WATSON = {
    "intents": [
        {"intent": label, "examples": [{"text": text} for text, of in ROWS if of == label]} for label in ("on", "off")
    ]
}
WRITTEN = {
    "tsv": "\n".join(f"{text}\t{label}" for text, label in ROWS),
    "csv": "text,label\n" + "\n".join(f"{text},{label}" for text, label in ROWS),
    "csv without a header": "\n".join(f"{text},{label}" for text, label in ROWS),
    "csv of a spreadsheet": "\ufeffText;Label\r\n" + "\r\n".join(f"{text};{label}" for text, label in ROWS),
    "jsonl": "\n".join(json.dumps({"text": text, "label": label}) for text, label in ROWS),
    "rasa": RASA,
    "rasa in markdown": "## intent:on\n- lamp on\n- light on\n\n## intent:off\n- lamp off\n- light off\n",
    "clu": json.dumps(CLU),
    "luis": json.dumps(LUIS),
    "watson": json.dumps(WATSON, indent=1),
}


def packed(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return raw.getvalue()


def found(given):
    return sorted((one.text, one.label) for one in read_examples(given).examples)


@pytest.mark.parametrize("kind", WRITTEN)
def test_pasted_text_is_read_whatever_its_format(kind):
    assert found(Given(WRITTEN[kind].encode())) == sorted(ROWS)


def test_a_parquet_file_is_read(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table(
        {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    assert found(Given((tmp_path / "x.parquet").read_bytes())) == sorted(ROWS)


def test_a_dialogflow_agent_is_read_from_its_zip():
    files = {"agent.json": "{}", "package.json": "{}"}
    for label in ("on", "off"):
        phrases = [{"data": [{"text": text}], "isTemplate": False} for text, other in ROWS if other == label]
        files[f"intents/{label}.json"] = json.dumps({"name": label})
        files[f"intents/{label}_usersays_en.json"] = json.dumps(phrases)
    assert found(Given(packed(files), "agent.zip")) == sorted(ROWS)
    assert found(Given(packed({f"my agent/{name}": content for name, content in files.items()}))) == sorted(ROWS)


def test_a_folder_of_hugging_face_is_read_from_its_zip():
    assert found(Given(packed({"data/train.csv": WRITTEN["csv"], "README.md": "# data"}))) == sorted(ROWS)


def test_one_file_in_a_zip_is_read_as_that_file():
    assert found(Given(packed({"folder/mine.tsv": WRITTEN["tsv"], "__MACOSX/._mine.tsv": "x"}))) == sorted(ROWS)


@pytest.mark.parametrize("name", ["../../../../etc/evil.csv", "/etc/evil.csv", "..\\..\\evil.csv", "a/../../evil.csv"])
def test_names_in_an_archive_lead_nowhere(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert found(Given(packed({name: WRITTEN["csv"]}))) == sorted(ROWS)
    assert list(tmp_path.iterdir()) == []


def test_archives_are_bounded_in_files_and_in_bytes():
    with pytest.raises(Invalid, match="more than 2,000 files"):
        read_examples(Given(packed({f"{number}.csv": "" for number in range(MOST_FILES + 1)})))
    bomb = packed({"a.csv": b"0" * (MOST_UNPACKED // 2), "b.csv": b"0" * (MOST_UNPACKED // 2 + 1)})
    assert len(bomb) < 100_000
    with pytest.raises(Invalid, match="unpacks to more than 32 MiB"):
        read_examples(Given(bomb))


@pytest.mark.parametrize("kind", ["tsv", "parquet", "arrow"])
def test_tables_of_many_rows_are_refused_before_they_are_read(kind, tmp_path):
    if kind == "tsv":
        content = b"a\tb\n" * (MOST_ROWS + 1)
    else:
        arrow = pytest.importorskip("pyarrow")
        table = arrow.table({name: ["a"] * (MOST_ROWS + 1) for name in ("text", "label")})
        path = tmp_path / f"x.{kind}"
        writing = {"parquet": "pyarrow.parquet", "arrow": "pyarrow.feather"}[kind]
        module = pytest.importorskip(writing)
        module.write_table(table, path) if kind == "parquet" else module.write_feather(table, path)
        content = path.read_bytes()
    with pytest.raises(Invalid, match="more than 50,000 rows"):
        read_examples(Given(content))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Given(b" \n"), "There is nothing to read"),
        (Given(b"PK\x03\x04 broken"), "The archive cannot be unpacked"),
        (Given(packed({"picture.png": b"x"})), "holds none of the files that are read"),
        (Given(b"\xff\xfe\xff"), "Examples"),
        (Given(b"a\tb\n", format="pickle"), "There is no such format"),
        (Given(b"PAR1 broken PAR1"), "Examples"),
        (Given(b"## intent:a\n- x\n"), "at least two labels"),
        (Given(b'{"text": "\\ud800", "label": "a"}\n{"text": "b", "label": "b"}'), "half of a character|Examples"),
        (Given(b"head,other\nx,y\n"), "“Text column”"),
    ],
)
def test_what_cannot_be_read_is_told_in_the_words_of_the_page(given, told):
    with pytest.raises(Invalid, match=told) as problem:
        read_examples(given)
    assert "/" not in problem.value.detail.replace("and/or", "")
    assert "--" not in problem.value.detail


def test_a_table_of_one_label_may_add_to_others():
    assert found(Given(b"good night\tsleep\nwake me\tsleep\n")) == [("good night", "sleep"), ("wake me", "sleep")]


def test_rows_without_text_or_label_are_counted():
    read = read_examples(Given(b"a b\tx\n\ty\nc d\ty\n"))
    assert (len(read.examples), read.left_out) == (2, 1)


def test_texts_of_no_label_become_counter_examples():
    pasted = "lamp on\ton\nlamp off\toff\nwhat time is it\tout of scope\n"
    assert [one.text for one in read_examples(Given(pasted.encode())).examples if one.label is None] == [
        "what time is it"
    ]


def test_lines_are_taken_once_and_blank_ones_left_out():
    assert as_lines(" a \r\n\nb\na") == ["a", "b"]
