"""Folders of Hugging Face: the split of each file, the name of its task, and names of class numbers."""

import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import ipc
from tests.collect.conftest import as_jsonl, entries, pairs, pairs_of

from manymetrics.collect import import_tasks
from manymetrics.errors import MissingExtra, TaskFormatError, TaskSkipped

TEXTS = ["where is my parcel", "has it shipped", "refund please", "money back"]
NUMBERS = [0, 0, 1, 1]
NAMES = ["track", "refund"]
PAIRS = [(text, NAMES[number]) for text, number in zip(TEXTS, NUMBERS, strict=True)]
TABLE = pyarrow.table({"text": TEXTS, "label": NUMBERS})


def with_names(table, column="label"):
    """The table with the names of its classes, as the library datasets writes them."""
    features = {"text": {"dtype": "string", "_type": "Value"}, column: {"names": NAMES, "_type": "ClassLabel"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def save_to_disk(folder, table, *, split=None, name="data-00000-of-00001.arrow"):
    """The files that `Dataset.save_to_disk` writes."""
    folder.mkdir(parents=True)
    with pyarrow.OSFile(str(folder / name), "wb") as file, ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}], "_split": split}))


def test_a_dictionary_of_data_sets_saved_to_disk_keeps_its_splits(tmp_path):
    for split, part in (("train", slice(0, 4)), ("validation", slice(1, 2)), ("test", slice(2, 4))):
        save_to_disk(tmp_path / "shop" / split, with_names(TABLE)[part], split=split)
    (tmp_path / "shop" / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    task = import_tasks(tmp_path / "shop").bank["shop"]
    assert (pairs(task.train), pairs(task.valid), pairs(task.test)) == (PAIRS, PAIRS[1:2], PAIRS[2:])
    (tmp_path / "shop" / "train" / "cache-0123.arrow").write_bytes(b"a cache of the library")
    result = import_tasks(tmp_path / "shop" / "train")
    assert (result.format, result.bank.names) == ("huggingface", ("train",))
    assert (pairs(result.bank["train"].train), len(result.bank["train"].test)) == (PAIRS, 0)


def test_arrow_without_pyarrow_names_the_extra_to_install(tmp_path, monkeypatch):
    save_to_disk(tmp_path / "shop", TABLE)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"Arrow needs pyarrow\. Install it: pip install \"manymetrics\[parquet\]"):
        import_tasks(tmp_path / "shop")


def test_class_names_are_read_from_parquet_files_and_shards_are_joined(tmp_path):
    (tmp_path / "shop" / "data").mkdir(parents=True)
    parts = {"train-00000-of-00002": slice(0, 3), "train-00001-of-00002": slice(3, 4), "test": slice(4)}
    for name, part in parts.items():
        pyarrow.parquet.write_table(with_names(TABLE)[part], tmp_path / "shop" / "data" / f"{name}.parquet")
    task = import_tasks(tmp_path / "shop").bank["shop"]
    assert pairs(task.train) == pairs(task.test) == PAIRS
    table = with_names(pyarrow.table({"text": TEXTS, "Intent": NUMBERS}), "Intent")
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert pairs_of(import_tasks(tmp_path / "a.parquet").bank["a"]) == sorted(PAIRS)


def test_the_class_minus_one_is_left_out_if_classes_have_names(tmp_path):
    (tmp_path / "shop").mkdir()

    def write(split, numbers):
        table = pyarrow.table({"text": TEXTS[: len(numbers)], "label": numbers})
        pyarrow.parquet.write_table(with_names(table), tmp_path / "shop" / f"{split}.parquet")

    write("train", NUMBERS)
    write("test", [-1])
    with pytest.warns(TaskSkipped, match=r"1 row is left out.*test\.parquet, row 1: the class is -1, which means"):
        task = import_tasks(tmp_path / "shop").bank["shop"]
    assert (task.labels, len(task.test)) == (("refund", "track"), 0)
    write("test", [2])
    with pytest.raises(TaskFormatError, match=r"test\.parquet, row 1: there is no class 2, only 0 to 1"):
        import_tasks(tmp_path / "shop")


def test_each_config_is_a_task_and_the_name_is_a_prefix_of_several(make):
    for file in ("en-US/train", "en-US/validation", "de-DE/train"):
        make(f"massive/{file}.jsonl", as_jsonl(entries(zip(TEXTS, NUMBERS, strict=True))))
    folder = make("massive/.cache/x.jsonl", "broken").parents[1]
    bank = import_tasks(folder).bank
    assert (bank.names, [len(task.valid) for task in bank]) == (("de-DE", "en-US"), [0, 4])
    assert import_tasks(folder, name="massive").bank.names == ("massive-de-DE", "massive-en-US")
    (folder / "de-DE" / "train.jsonl").unlink()
    assert import_tasks(folder).bank.names == ("en-US",)
    assert import_tasks(folder, name="massive").bank.names == ("massive",)
