"""Parquet and Arrow files, as programs write them and as somebody may write them to do harm."""

import json
import random

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import ipc

from manymetrics.collect import columnar
from manymetrics.collect.columnar import arrow_records, features_in
from manymetrics.collect.formats import read_examples
from manymetrics.errors import TaskFormatError

ROWS = {"text": ["one", "two", "three"], "label": ["x", "y", "x"]}
FEATURES = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}


def write_arrow(path, table, compression=None):
    options = ipc.IpcWriteOptions(compression=compression)
    with pyarrow.OSFile(str(path), "wb") as file, ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=2)
    return path


def read_arrow(path):
    return [values for _, values in arrow_records(path, lambda *_: ("text", None, "label"))]


def test_a_small_parquet_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    long_text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5_000, pyarrow.int32()), ["x" * 1_000_000])
    pyarrow.parquet.write_table(
        pyarrow.table({"text": long_text, "label": ["x", "y"] * 2_500}), path, compression="zstd"
    )
    assert path.stat().st_size < 10_000
    with pytest.raises(TaskFormatError, match=r"a\.parquet: the texts have more than 300,000,000 characters\. Take a"):
        read_examples(path)


def test_the_unpacked_size_is_looked_up_before_anything_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": ["x" * 100_000], "label": ["y"], "photo": ["z" * 200_000]})
    pyarrow.parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(columnar, "MAX_BYTES", 150_000)
    assert len(read_examples(path)) == 1  # what is not asked for does not count
    monkeypatch.setattr(columnar, "MAX_BYTES", 50_000)
    with pytest.raises(TaskFormatError, match=r"the columns have 100,\d\d\d bytes when unpacked, 50,000 are the most"):
        read_examples(path)


def test_row_groups_and_large_strings_are_read_in_order(tmp_path):
    path = tmp_path / "a.parquet"
    texts = [f"text {number}" for number in range(1_000)]
    table = pyarrow.table(
        {"text": pyarrow.array(texts, pyarrow.large_string()), "label": [n % 2 for n in range(1_000)]}
    )
    pyarrow.parquet.write_table(table, path, row_group_size=300)
    found = read_examples(path)
    assert list(found.texts) == texts
    assert found.labels[:3] == ("0", "1", "0")


def test_an_arrow_stream_gives_its_rows(tmp_path):
    table = pyarrow.table({**ROWS, "label": pyarrow.array(ROWS["label"]).dictionary_encode(), "more": [[1], [], [2]]})
    path = write_arrow(tmp_path / "a.arrow", table)
    assert list(arrow_records(path, lambda found, _: tuple(found[:2])))[2] == ("row 3", ("three", "x"))
    assert read_arrow(path) == [("one", None, "x"), ("two", None, "y"), ("three", None, "x")]


def test_packed_arrow_batches_are_not_opened(tmp_path):
    for compression in ("zstd", "lz4"):
        for label in (ROWS["label"], pyarrow.array(ROWS["label"]).dictionary_encode()):
            path = write_arrow(tmp_path / "a.arrow", pyarrow.table({**ROWS, "label": label}), compression)
            with pytest.raises(
                TaskFormatError, match=r"a\.arrow: its batches are packed, and are not opened\. Write it"
            ):
                read_arrow(path)


def test_a_damaged_arrow_file_is_read_or_refused_cleanly(tmp_path):
    path = write_arrow(tmp_path / "a.arrow", pyarrow.table(ROWS))
    content, dice = path.read_bytes(), random.Random(0)
    refusals = []
    for _ in range(300):
        damaged = bytearray(content[: dice.randrange(1, len(content))] if dice.random() < 0.3 else content)
        for _ in range(dice.randrange(1, 6)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        try:
            assert len(read_arrow(path)) <= 3
        except TaskFormatError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert [told for told in refusals if str(path) not in told] == []


def test_what_hugging_face_wrote_about_columns_is_found_in_both_kinds_of_files(tmp_path):
    table = pyarrow.table(ROWS)
    told = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})
    for one, expected in ((told, FEATURES), (table, None), (table.replace_schema_metadata({"huggingface": "{"}), None)):
        pyarrow.parquet.write_table(one, tmp_path / "a.parquet")
        assert features_in(tmp_path / "a.parquet") == expected
        assert features_in(write_arrow(tmp_path / "a.arrow", one)) == expected
