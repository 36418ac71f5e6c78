"""Parquet and Arrow files, as programs write them, damaged, and made to exhaust memory."""

import json
import random

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import ipc
from tests.collect.conftest import pairs

from manymetrics.collect import read_examples
from manymetrics.collect.readers import arrow
from manymetrics.collect.readers.arrow import arrow_rows
from manymetrics.collect.readers.records import TableOptions
from manymetrics.errors import TaskFormatError

ROWS = {"text": ["one", "two", "three"], "label": ["x", "y", "x"]}
FEATURES = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}


def write_parquet(path, columns, **options):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def write_arrow(path, table):
    with pyarrow.OSFile(str(path), "wb") as file, ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    return path


def read_rows(path, **options):
    return [record[1:] for record in arrow_rows(path, path.suffix[1:], TableOptions(**options))]


def test_a_small_parquet_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    long_text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5_000, pyarrow.int32()), ["x" * 1_000_000])
    columns = {"text": long_text, "label": ["x", "y"] * 2_500}
    path = write_parquet(tmp_path / "a.parquet", columns, compression="zstd")
    assert path.stat().st_size < 10_000
    with pytest.raises(TaskFormatError, match=r"a\.parquet: found more than 300,000,000 characters of text\. Take a"):
        read_examples(path)


def test_the_uncompressed_size_of_the_chosen_columns_is_limited(tmp_path, monkeypatch):
    columns = {"text": ["x" * 100_000], "label": ["y"], "photo": ["z" * 200_000]}
    path = write_parquet(tmp_path / "a.parquet", columns, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(arrow, "MAX_TABLE_BYTES", 150_000)
    assert len(read_examples(path)) == 1
    monkeypatch.setattr(arrow, "MAX_TABLE_BYTES", 50_000)
    with pytest.raises(TaskFormatError, match="found more than 50,000 uncompressed bytes"):
        read_examples(path)


def test_parquet_columns_may_be_strings_numbers_or_categories_in_several_row_groups(tmp_path):
    texts = [f"text {number}" for number in range(1_000)]
    columns = {"text": pyarrow.array(texts, pyarrow.large_string()), "label": [-(n % 2) for n in range(1_000)]}
    examples = read_examples(write_parquet(tmp_path / "a.parquet", columns, row_group_size=300))
    assert list(examples.texts) == texts
    assert examples.labels[:3] == ("0", "-1", "0")
    columns = {"sentence": ["one", "two"], "more": [0, 0], "label": pyarrow.array(["x", "y"]).dictionary_encode()}
    assert pairs(read_examples(write_parquet(tmp_path / "a.parquet", columns))) == [("one", "x"), ("two", "y")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"], "sort": ["b"]}, "found the columns 'text', 'sort', expected 'label' or 'intent'"),
        ({"text": [b"a"], "label": ["b"]}, "row 1: the text is bytes, expected a string"),
        ({"text": ["a"], "label": [1.5]}, "row 1: the label is a number, expected a string. Write it as"),
    ],
)
def test_parquet_columns_of_another_name_or_type_are_refused(tmp_path, columns, message):
    with pytest.raises(TaskFormatError, match=message):
        read_examples(write_parquet(tmp_path / "a.parquet", columns))


def test_a_damaged_arrow_file_is_read_or_refused_cleanly(tmp_path):
    path = write_arrow(tmp_path / "a.arrow", pyarrow.table(ROWS))
    content, dice = path.read_bytes(), random.Random(0)
    messages = []
    for _ in range(300):
        damaged = bytearray(content[: dice.randrange(1, len(content))] if dice.random() < 0.3 else content)
        for _ in range(dice.randrange(1, 6)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        try:
            assert len(read_rows(path)) <= 3
        except TaskFormatError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(str(path) in message for message in messages)


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        (json.dumps({"info": {"features": FEATURES}}), True),
        (json.dumps({"info": {"features": [1]}}), False),
        ("{", False),
        ("{}", False),
    ],
)
def test_the_class_names_that_hugging_face_stores_are_read_from_both_formats(tmp_path, stored, named):
    table = pyarrow.table({"text": ["one", "two"], "label": [1, 0], "number": [0, 1]})
    table = table.replace_schema_metadata({"huggingface": stored})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    for path in (tmp_path / "a.parquet", write_arrow(tmp_path / "a.arrow", table)):
        labels = [label for _, _, label, *_ in read_rows(path, class_names=True)]
        assert labels == (["yes", "no"] if named else [1, 0])
        for options in ({}, {"label": "number", "class_names": True}):
            assert all(isinstance(label, int) for _, _, label, *_ in read_rows(path, **options))
