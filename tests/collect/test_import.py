"""Importing tables: formats, columns, tasks and splits; broken files; and the commands import and export."""

import json

import pyarrow
import pyarrow.parquet
import pytest
from tests.collect.conftest import PAIRS, as_jsonl, entries, pairs_of

import manymetrics as mm
from command_line import assert_refused, done, printed_json, run
from manymetrics.collect import import_tasks
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped


def as_csv(pairs, header="text,label\n"):
    quoted = ('"{}","{}"'.format(*(field.replace('"', '""') for field in pair)) for pair in pairs)
    return header + "".join(f"{row}\n" for row in quoted)


BARE = as_csv(PAIRS, header="")


@pytest.mark.parametrize(
    ("name", "content", "format_name"),
    [
        ("shop.csv", as_csv(PAIRS), "csv"),
        ("shop.CSV", as_csv(PAIRS, "Utterance,Intent\n"), "csv"),
        ("shop.tsv", "".join(f"{text}\t{label}\n" for text, label in PAIRS), "tsv"),
        ("shop.jsonl", as_jsonl(entries(PAIRS)), "jsonl"),
        ("shop.json", json.dumps(entries(PAIRS), indent=1), "json"),
        ("shop.json", as_jsonl(entries(PAIRS)), "jsonl"),
        ("shop.csv", BARE, "csv"),
        ("shop.csv", b"\xef\xbb\xbf" + BARE.replace("\n", "\r\n").encode(), "csv"),
    ],
)
def test_the_format_of_a_file_is_detected_and_all_examples_are_read(make, name, content, format_name):
    result = import_tasks(make(name, content))
    assert (result.format, result.bank.names) == (format_name, ("shop",))
    assert pairs_of(result.bank["shop"]) == sorted(PAIRS)


def test_data_without_splits_are_split_the_same_way_each_time_or_not_at_all(make):
    path = make("shop.csv", as_csv([(f"{text} {n}", label) for n in range(10) for text, label in PAIRS]))
    first, second = (import_tasks(path).bank["shop"] for _ in range(2))
    assert first == second
    assert (len(first.train), len(first.valid), len(first.test)) == (38, 10, 12)
    task = import_tasks(path, split=False).bank["shop"]
    assert (len(task.train), len(task.valid), len(task.test)) == (60, 0, 0)


def test_columns_can_have_any_names(make, tmp_path):
    renamed = entries(PAIRS, "body", "queue")
    make("a.csv", as_csv(PAIRS, "Body,Queue\n"))
    make("b.jsonl", as_jsonl(renamed))
    make("c.json", renamed)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(renamed), tmp_path / "d.parquet")
    for name in ("a.csv", "b.jsonl", "c.json", "d.parquet"):
        result = import_tasks(tmp_path / name, text_column="body", label_column="queue", name="shop")
        assert (result.format, pairs_of(result.bank["shop"])) == (name.partition(".")[2], sorted(PAIRS))


def test_a_column_divides_a_table_into_tasks_and_unusable_ones_are_left_out(make):
    rows = [row for client in ("Acme / EU", "Bolt") for row in entries(PAIRS, client=client)]
    rows += [{"text": "alone", "label": "only", "client": "Zed"}]
    path = make("all.jsonl", as_jsonl(rows))
    with pytest.warns(TaskSkipped, match="'Zed' is left out.*only the label 'only'"):
        bank = import_tasks(path, task_column="client").bank
    assert bank.names == ("Acme-EU", "Bolt")
    with pytest.warns(TaskSkipped, match="'2024-Zed' is left out"):
        assert import_tasks(path, task_column="client", name="2024").bank.names == ("2024-Acme-EU", "2024-Bolt")
    assert [left_out.name for left_out in bank.left_out] == ["Zed"]
    path = make("all.jsonl", as_jsonl({**row, "client": row["client"].replace("Bolt", "acme-eu")} for row in rows))
    with pytest.warns(TaskSkipped) as caught:
        import_tasks(path, task_column="client")
    assert "two tasks would both be called 'acme-eu'" in str(caught[1].message)


def test_a_column_of_splits_is_used(make):
    rows = [row for split in ("train", "dev", "test") for row in entries(PAIRS, split=split)]
    rows = [{**row, "text": f"{row['text']} {row['split']}"} for row in rows]
    task = import_tasks(make("a.jsonl", as_jsonl(rows))).bank["a"]
    for part, split in ((task.train, "train"), (task.valid, "dev"), (task.test, "test")):
        assert {text.split()[-1] for text in part.texts} == {split}
    rows[7]["split"] = "fold 3"
    with pytest.raises(TaskFormatError, match=r"line 8: the split is 'fold 3', expected train, valid or test"):
        import_tasks(make("a.jsonl", as_jsonl(rows)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "found no examples in it"),
        ("a.csv", "text,label\n", r"a\.csv: found no examples in it, read as csv\. Give another"),
        ("a.csv", "body,queue\nx,a\ny,b\n", "line 1: found the columns 'body', 'queue', which may be a header or"),
        ("a.csv", "a,x\nb,x\nc\n", "line 3: found 1 field, expected 2 as in the first line"),
        ("a.jsonl", '{"txt": "a", "label": "x"}\n', "the columns 'txt', 'label', expected 'text' .*--text-column"),
        ("a.jsonl", '{"text": "a", "tag": "x"}\n', "expected 'label' or .* for the label.*--label-column"),
        ("a.jsonl", "", "found no examples in it, read as jsonl"),
        ("a.json", "", "this is not JSON"),
        ("a.json", json.dumps({"assets": {}}).encode("utf-16-le"), "this seems to be utf-16-le"),
        ("a.json", [{"text": "a", "label": "b"}, ["a"]], r"entry 2: this is not a JSON object \(found a list\)\."),
        ("a.json", [{"body": "a", "queue": "b"}], "entry 1: found the columns 'body', 'queue', expected 'text' or"),
        ("a.yml", "nlu: []\n", "found no examples in it, read as rasa"),
        ("a.zip", b"PK", r"archives are not opened\. Unpack it"),
        ("a.doc", "hello", "the format is unclear"),
        ("empty/notes.txt", "hello", "found neither tables"),
        ("bank/a.train.tsv", "a\tb\n", "this is a bank already"),
    ],
)
def test_a_broken_source_is_refused_in_a_sentence(make, name, content, message):
    path = make(name, content)
    with pytest.raises(InputError, match=message):
        import_tasks(path.parent if "/" in name else path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "excel"}, "no format 'excel'. Known are csv"),
        ({"format": "dialogflow"}, "this is a file, and dialogflow comes as a folder"),
        ({"format": "rasa", "text_column": "x"}, "rasa has no columns to choose"),
        ({"text_column": "body"}, "expected 'body' for the text"),
        ({"task_column": "client"}, "expected 'client' for the task"),
        ({"name": "///"}, "the task's name '///' has no letter"),
    ],
)
def test_options_that_do_not_fit_the_source_are_refused(make, options, message):
    with pytest.raises(InputError, match=message):
        import_tasks(make("a.csv", as_csv(PAIRS)), **options)
    with pytest.raises(InputError, match="there is no such file or folder"):
        import_tasks("gone")
    with pytest.raises(InputError, match="found an object, expected a list of objects"):
        import_tasks(make("shop.json", {"a": 1}), format="json")


def test_the_commands_import_into_a_bank_and_export_it_again(make, tmp_path):
    result = done("import", make("shop.csv", BARE), tmp_path / "bank")
    assert "shop.csv as csv; wrote" in result.stderr
    assert result.stdout.splitlines()[-1].split()[:2] == ["shop", "2"]
    source = make("bot/nlu.yml", "nlu:\n- {intent: a, examples: [one, two]}\n- {intent: b, examples: [three]}\n").parent
    report = printed_json("import", source, tmp_path / "bank", "--no-split")
    sizes = {"labels": 2, "train": 3, "valid": 0, "test": 0, "counter_examples": 0}
    assert (report["tasks"], report["read_as"]) == ([{"name": "bot", **sizes}], "rasa")
    lines = done("export", tmp_path / "bank").stdout
    assert json.loads(lines.splitlines()[0]) == {"text": "one", "label": "a", "task": "bot", "split": "train"}
    assert len(lines.splitlines()) == 9
    done("import", make("out.jsonl", lines), tmp_path / "copy", "--task-column", "task")
    assert mm.load_tasks(tmp_path / "copy").fingerprint == mm.load_tasks(tmp_path / "bank").fingerprint
    again = run("import", make("shop.csv", as_csv(PAIRS[:5], header="")), tmp_path / "bank")
    assert_refused(again, "has a task 'shop' already. Add --replace, or give the task another name.")
    assert_refused(run("import", make("a.jsonl", ""), tmp_path / "nothing"), "found no examples in it")
    assert not (tmp_path / "nothing").exists()


def test_a_task_is_replaced_with_all_its_files_on_request(make, folder):
    files = {"Shop.train.tsv": "where is it\ttrack\nmoney\trefund\n", "Shop.valid.csv": "text,label\nhello,track\n",
             "Shop.counter.jsonl": '{"text": "lorem"}\n', "other.train.tsv": "on\tlamp\noff\tdark\n",
             "manifest.json": '{"tasks": [{"name": "other", "role": "target"}]}'}  # fmt: skip
    bank, source = folder(files), make("shop.tsv", "one\ta\ntwo\tb\n")
    assert run("import", source, bank, "--no-split").exit_code == 2
    assert sorted(path.name for path in bank.iterdir()) == sorted(files)
    done("import", source, bank, "--no-split", "--replace")
    assert sorted(path.name for path in bank.iterdir()) == ["manifest.json", "other.train.tsv", "shop.train.jsonl"]
    tasks = mm.load_tasks(bank, strict=True)
    assert (tasks.names, tasks.role("other")) == (("other", "shop"), "target")
    assert tuple(tasks["shop"].train.texts) == ("one", "two")
    done("import", source, bank, "--no-split", "--replace")
    assert_refused(run("import", source, make("notes/mine.txt", "x").parent, "--replace"), "is not a bank")
