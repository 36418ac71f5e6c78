"""Folders of Hugging Face: what each file is, what its task is called, and names for numbers."""

import json

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import ipc

from manymetrics.collect import import_tasks
from manymetrics.errors import InputError, MissingExtra

TEXTS = ["where is my parcel", "has it shipped", "refund please", "money back"]
NUMBERS = [0, 0, 1, 1]
NAMES = ["track", "refund"]
PAIRS = [(text, NAMES[number]) for text, number in zip(TEXTS, NUMBERS, strict=True)]


def told(table, column="label"):
    """The table with the names of its classes, as the library datasets writes them."""
    features = {"text": {"dtype": "string", "_type": "Value"}, column: {"names": NAMES, "_type": "ClassLabel"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def save_to_disk(folder, table, *, split=None, name="data-00000-of-00001.arrow"):
    """What `Dataset.save_to_disk` leaves."""
    folder.mkdir(parents=True)
    with pyarrow.OSFile(str(folder / name), "wb") as file, ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}], "_split": split}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {"label": {"_type": "Value"}}}))


def pairs(examples):
    return list(zip(examples.texts, examples.labels, strict=True))


def test_a_data_set_saved_to_disk_is_read(tmp_path):
    save_to_disk(tmp_path / "shop", told(pyarrow.table({"text": TEXTS, "label": NUMBERS})))
    (tmp_path / "shop" / "cache-0123.arrow").write_bytes(b"what the library keeps for itself")
    found = import_tasks(tmp_path / "shop")
    assert (found.format, found.bank.names) == ("huggingface", ("shop",))
    task = found.bank["shop"]
    assert sorted(pairs(task.train) + pairs(task.valid) + pairs(task.test)) == sorted(PAIRS)


def test_a_dictionary_of_data_sets_saved_to_disk_keeps_its_splits(tmp_path):
    table = told(pyarrow.table({"text": TEXTS, "label": NUMBERS}))
    for split, rows in (("train", slice(0, 4)), ("validation", slice(1, 2)), ("test", slice(2, 4))):
        save_to_disk(tmp_path / "shop" / split, table[rows], split=split)
    (tmp_path / "shop" / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    task = import_tasks(tmp_path / "shop").bank["shop"]
    assert (pairs(task.train), pairs(task.valid), pairs(task.test)) == (PAIRS, PAIRS[1:2], PAIRS[2:])
    one = import_tasks(tmp_path / "shop" / "train").bank["train"]
    assert (pairs(one.train), len(one.test)) == (PAIRS, 0)


def test_arrow_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    save_to_disk(tmp_path / "shop", pyarrow.table({"text": TEXTS, "label": NUMBERS}))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        MissingExtra, match=r"needed to read Arrow\. Install it with: pip install \"manymetrics\[parquet\]"
    ):
        import_tasks(tmp_path / "shop")


def test_numbers_become_names_whatever_the_column_is_called(tmp_path):
    table = told(pyarrow.table({"text": TEXTS, "Intent": NUMBERS}), "Intent")
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    expected = ("refund", "track")
    assert import_tasks(tmp_path, name="shop").bank["shop"].labels == expected
    assert import_tasks(tmp_path / "train.parquet", name="shop").bank["shop"].labels == expected
    (tmp_path / "train.parquet").unlink()
    (tmp_path / "train.csv").write_text(
        "text,INTENT\n" + "".join(f"{t},{n}\n" for t, n in zip(TEXTS, NUMBERS, strict=True))
    )
    card = "---\ndataset_info:\n  features:\n  - name: intent\n    dtype:\n      class_label:\n        names:\n"
    card += "          '0': track\n          '1': refund\n---\n"
    infos = {"default": {"features": {"Intent": {"names": NAMES}}}}
    for name, content in (("README.md", card), ("dataset_infos.json", json.dumps(infos))):
        (tmp_path / name).write_text(content)
        assert import_tasks(tmp_path, name="shop").bank["shop"].labels == expected
        (tmp_path / name).unlink()
    assert import_tasks(tmp_path, name="shop").bank["shop"].labels == ("0", "1")


def test_a_name_is_the_name_of_one_config_and_begins_those_of_several(tmp_path):
    rows = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in PAIRS)
    for config in ("en-US", "de-DE"):
        (tmp_path / config).mkdir()
        (tmp_path / config / "train.jsonl").write_text(rows)
    assert import_tasks(tmp_path).bank.names == ("de-DE", "en-US")
    assert import_tasks(tmp_path, name="massive").bank.names == ("massive-de-DE", "massive-en-US")
    (tmp_path / "de-DE" / "train.jsonl").unlink()
    assert import_tasks(tmp_path).bank.names == ("en-US",)
    assert import_tasks(tmp_path, name="massive").bank.names == ("massive",)


def test_a_name_begins_those_of_a_column_of_tasks_too(tmp_path):
    rows = [{"text": text, "label": label, "client": c} for c in ("A", "B") for text, label in PAIRS]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_tasks(tmp_path / "all.jsonl", task_column="client", name="2024").bank.names == ("2024-A", "2024-B")


def test_a_state_that_names_files_elsewhere_brings_none(tmp_path):
    save_to_disk(tmp_path / "shop", pyarrow.table({"text": TEXTS, "label": NUMBERS}))
    (tmp_path / "shop" / "state.json").write_text('{"_data_files": [{"filename": "../other.arrow"}]}')
    with pytest.raises(InputError, match="found neither tables"):
        import_tasks(tmp_path / "shop")
