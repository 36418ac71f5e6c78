"""Data from elsewhere: every format as its program writes it, and broken in the ways files break."""

import json
import warnings
from collections import Counter

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.collect import import_tasks, load_tasks
from manymetrics.errors import InputError, TaskFormatError, TaskLeftOut

TRACK = ["where is my parcel", "has it shipped, or not", "track my order"]
REFUND = ["i want my money back", "refund please", 'they said "no refund"']
PAIRS = [(text, "track") for text in TRACK] + [(text, "refund") for text in REFUND]

CLU = {
    "projectFileVersion": "2023-04-01",
    "stringIndexType": "Utf16CodeUnit",
    "metadata": {"projectKind": "Conversation", "projectName": "shop", "language": "en-us", "multilingual": False},
    "assets": {
        "projectKind": "Conversation",
        "intents": [{"category": "None"}, {"category": "track"}, {"category": "refund"}],
        "entities": [{"category": "item"}],
        "utterances": [
            {"text": text, "intent": label, "language": "en-us", "dataset": dataset, "entities": []}
            for dataset, pairs in (("Train", PAIRS), ("Test", PAIRS[1:4]))
            for text, label in pairs
        ],
    },
}
RASA = {
    "rasa_nlu_data": {
        "regex_features": [{"name": "zip", "pattern": "[0-9]{5}"}],
        "entity_synonyms": [],
        "common_examples": [
            *({"text": text, "intent": label, "entities": []} for text, label in PAIRS),
            {"text": "berlin", "entities": [{"start": 0, "end": 6, "value": "berlin", "entity": "city"}]},
        ],
    }
}
RASA_YAML = 'version: "3.1"\nnlu:\n- intent: track\n  examples: |\n    - where is my [parcel](thing)\n    - track it\n'
WATSON = (
    '"where is my parcel",track\n"has it shipped, or not",track\ntrack my order,track\ni want my money back,refund\n'
)
WATSON += 'refund please,refund\n"they said ""no refund""",refund\n'
CARD = """---
license: mit
dataset_info:
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': track
          '1': refund
---
# Shop
"""


def phrase(*pieces):
    return {"id": "0a", "data": [{"text": piece, "userDefined": False} for piece in pieces], "isTemplate": False}


@pytest.fixture
def make(tmp_path):
    """Writes a file, and gives its path; what is no text is written as JSON."""

    def make(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture
def dialogflow(make):
    """A Dialogflow ES agent as its export is unpacked."""
    make("agent/agent.json", {"displayName": "shop", "language": "en"})
    make("agent/package.json", {"version": "1.0.0"})
    make("agent/intents/Track order.json", {"id": "1", "name": "track", "auto": True, "fallbackIntent": False})
    make("agent/intents/Track order_usersays_en.json", [phrase("where is my ", "parcel"), phrase("track it")])
    make("agent/intents/refund.json", {"id": "2", "name": "refund", "auto": True})
    make("agent/intents/refund_usersays_en.json", [phrase("refund please"), phrase("money ", "back", " please")])
    make("agent/intents/refund_usersays_pt-BR.json", [phrase("quero reembolso")])
    return make("agent/intents/Default Fallback Intent.json", {"name": "Fallback", "fallbackIntent": True}).parents[1]


def write_parquet(path, rows, *, names=None):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    table = pa.table(rows)
    if names:
        features = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": names, "_type": "ClassLabel"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path)


def pairs_of(task):
    parts = (task.train, task.valid, task.test)
    return Counter(pair for part in parts for pair in zip(part.texts, part.labels, strict=True))


def as_csv(pairs, header="text,label"):
    quoted = ('"{}","{}"'.format(*(field.replace('"', '""') for field in pair)) for pair in pairs)
    return "\n".join([header, *quoted]) + "\n"


def as_jsonl(pairs, text="text", label="label"):
    return "".join(json.dumps({text: one, label: other}) + "\n" for one, other in pairs)


@pytest.mark.parametrize(
    ("name", "content", "known_as"),
    [
        ("shop.csv", as_csv(PAIRS), "csv"),
        ("shop.CSV", as_csv(PAIRS, "Utterance,Intent"), "csv"),
        ("shop.tsv", "".join(f"{text}\t{label}\n" for text, label in PAIRS), "tsv"),
        ("shop.jsonl", as_jsonl(PAIRS), "jsonl"),
        ("shop.csv", WATSON, "watson"),
        ("shop.csv", b"\xef\xbb\xbf" + WATSON.replace("\n", "\r\n").encode(), "watson"),
        ("shop.json", RASA, "rasa"),
        ("shop.json", CLU | {"assets": CLU["assets"] | {"utterances": CLU["assets"]["utterances"][:6]}}, "clu"),
    ],
)
def test_a_file_is_known_by_its_look_and_read_in_full(make, name, content, known_as):
    found = import_tasks(make(name, content))
    assert found.format == known_as
    assert found.bank.names == ("shop",)
    assert pairs_of(found.bank["shop"]) == Counter(PAIRS)


def test_data_without_splits_are_split_alike_each_time_or_not_at_all(make):
    path = make("shop.csv", as_csv([(f"{text} {n}", label) for n in range(10) for text, label in PAIRS]))
    once, twice = (import_tasks(path).bank["shop"] for _ in range(2))
    assert once == twice
    assert (len(once.train), len(once.valid), len(once.test)) == (38, 10, 12)
    whole = import_tasks(path, split=False).bank["shop"]
    assert (len(whole.train), len(whole.valid), len(whole.test)) == (60, 0, 0)


def test_columns_can_have_any_names(make):
    csv = make("a.csv", as_csv(PAIRS, "Body,Queue"))
    jsonl = make("b.jsonl", as_jsonl(PAIRS, "body", "queue"))
    write_parquet(jsonl.with_name("c.parquet"), {"body": [t for t, _ in PAIRS], "queue": [q for _, q in PAIRS]})
    for path in (csv, jsonl, jsonl.with_name("c.parquet")):
        found = import_tasks(path, text_column="body", label_column="queue", name="shop")
        assert (found.format, pairs_of(found.bank["shop"])) == (path.suffix[1:], Counter(PAIRS))


def test_a_column_divides_a_table_into_tasks_and_bad_ones_are_left_out(make):
    rows = [{"text": t, "label": label, "client": c} for c in ("Acme / EU", "Bolt") for t, label in PAIRS]
    rows += [{"text": "alone", "label": "only", "client": "Zed"}]
    path = make("all.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(TaskLeftOut, match="'Zed' is left out.*only the label 'only'"):
        found = import_tasks(path, task_column="client")
    assert found.bank.names == ("Acme-EU", "Bolt")
    assert [left.name for left in found.bank.left_out] == ["Zed"]
    rows = [{**row, "client": row["client"].replace("Bolt", "acme-eu")} for row in rows]
    path = make("all.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(TaskLeftOut) as caught:
        import_tasks(path, task_column="client")
    assert "two tasks would both be called 'acme-eu'" in str(caught[1].message)


def test_a_column_of_splits_is_kept(make):
    rows = [{"text": f"{t} {s}", "label": label, "split": s} for s in ("train", "dev", "test") for t, label in PAIRS]
    task = import_tasks(make("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))).bank["a"]
    assert [text.split()[-1] for part in (task.train, task.valid, task.test) for text in part.texts[:1]] == [
        "train",
        "dev",
        "test",
    ]
    rows[7]["split"] = "fold 3"
    path = make("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(TaskFormatError, match=r"line 8: the split is 'fold 3', expected train, valid or test"):
        import_tasks(path)


def test_clu_keeps_its_division_into_train_and_test(make):
    task = import_tasks(make("shop.json", CLU)).bank["shop"]
    assert list(zip(task.train.texts, task.train.labels, strict=True)) == PAIRS
    assert list(zip(task.test.texts, task.test.labels, strict=True)) == PAIRS[1:4]


def test_dialogflow_joins_the_pieces_and_takes_the_intents_names(dialogflow):
    found = import_tasks(dialogflow, name="shop")
    assert found.format == "dialogflow"
    assert pairs_of(found.bank["shop"]) == Counter(
        [
            ("where is my parcel", "track"),
            ("track it", "track"),
            ("refund please", "refund"),
            ("money back please", "refund"),
            ("quero reembolso", "refund"),
        ]
    )


def test_agents_of_long_ago_keep_phrases_inside_the_intent(make):
    for name in ("track", "refund"):
        make(f"old/intents/{name}.json", {"name": name, "userSays": [phrase(name, " it"), phrase("please ", name)]})
    found = import_tasks(make("old/agent.json", {}).parent)
    assert pairs_of(found.bank["old"])["please refund", "refund"] == 1


def test_a_rasa_project_is_one_task_of_all_its_files(make):
    make("bot/domain.yml", "intents: [track, refund]\n")
    make("bot/config.yml", "pipeline: []\n")
    make("bot/data/nlu/track.yml", RASA_YAML)
    make("bot/data/nlu/refund.md", "## intent:refund\n- refund please\n- money back\n")
    found = import_tasks(make("bot/data/stories.yml", "stories: []\n").parents[1])
    assert (found.format, found.bank.names) == ("rasa", ("bot",))
    assert pairs_of(found.bank["bot"])["where is my parcel", "track"] == 1
    assert sum(pairs_of(found.bank["bot"]).values()) == 4


def test_a_rasa_json_file_is_a_task_of_a_bank_too(make):
    folder = make("bank/shop.json", RASA).parent
    assert pairs_of(load_tasks(folder, strict=True)["shop"]) == Counter(PAIRS)


NUMBERED = {"text": [text for text, _ in PAIRS], "label": [0, 0, 0, 1, 1, 1]}


def test_numbers_of_classes_become_names_from_the_parquet_file_itself(tmp_path):
    for name, rows in (
        ("train-00000-of-00002", slice(0, 4)),
        ("train-00001-of-00002", slice(4, 6)),
        ("test", slice(6)),
    ):
        write_parquet(
            tmp_path / "shop" / "data" / f"{name}.parquet",
            {column: values[rows] for column, values in NUMBERED.items()},
            names=["track", "refund"],
        )
    found = import_tasks(tmp_path / "shop")
    assert (found.format, found.bank.names) == ("huggingface", ("shop",))
    task = found.bank["shop"]
    assert list(zip(task.train.texts, task.train.labels, strict=True)) == PAIRS
    assert (task.test, len(task.valid)) == (task.train, 0)


def test_numbers_of_classes_become_names_from_the_card(make):
    make("shop/train.csv", as_csv([(text, str(number)) for text, number in zip(*NUMBERED.values(), strict=True)]))
    for name, content in (
        ("README.md", CARD),
        ("dataset_infos.json", {"default": {"features": {"label": {"names": ["track", "refund"]}}}}),
        ("dataset_info.json", {"features": {"label": {"names": ["track", "refund"], "_type": "ClassLabel"}}}),
    ):
        path = make(f"shop/{name}", content)
        task = import_tasks(path.parent).bank["shop"]
        assert list(zip(task.train.texts, task.train.labels, strict=True)) == PAIRS
        path.unlink()


def test_numbers_without_names_stay_and_unlabelled_rows_are_left_out(make):
    make("shop/train.jsonl", as_jsonl([(text, number) for text, number in zip(*NUMBERED.values(), strict=True)]))
    folder = make("shop/test.jsonl", as_jsonl([("what now", -1)])).parent
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="label '-1' in test but not in train"):
            import_tasks(folder)
    make("shop/README.md", CARD)
    with pytest.warns(TaskLeftOut, match=r"1 row is left out.*test\.jsonl, line 1: the class is -1, which means"):
        task = import_tasks(folder).bank["shop"]
    assert (task.labels, len(task.test)) == (("refund", "track"), 0)
    make("shop/test.jsonl", as_jsonl([("what now", 2)]))
    with pytest.raises(TaskFormatError, match=r"test\.jsonl, line 1: there is no class 2, only 0 to 1"):
        import_tasks(folder)


def test_each_config_of_a_data_set_is_a_task(make):
    for config, split in [("en-US", "train"), ("en-US", "validation"), ("de-DE", "train")]:
        make(f"massive/{config}/{split}.jsonl", as_jsonl(PAIRS))
    found = import_tasks(make("massive/.cache/x.jsonl", "broken").parents[1])
    assert found.bank.names == ("de-DE", "en-US")
    assert [len(task.valid) for task in found.bank] == [0, 6]


CUT = json.dumps(CLU)[:200]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", r"found no examples in it"),
        ("a.csv", "text,label\n", r"a\.csv: found no examples in it, read as csv\. Check the export"),
        (
            "a.csv",
            "body,queue\nx,a\ny,b\n",
            r"line 1: found the columns 'body', 'queue', and cannot tell",
        ),
        ("a.csv", "a,x\nb,x\nc\n", r"line 3: found 1 field, expected example,intent"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"', r"line 2: this is not a JSON object"),
        (
            "a.jsonl",
            '{"txt": "a", "label": "x"}\n',
            r"found the columns 'txt', 'label', expected 'text' or .*--text-column",
        ),
        ("a.jsonl", '{"text": "a", "tag": "x"}\n', r"expected 'label' or .* for the label.*--label-column"),
        ("a.jsonl", "", r"found no examples in it, read as jsonl"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n', r"only the label 'x' in train"),
        ("a.json", "", r"this is not JSON"),
        ("a.json", CUT, r"a\.json, line 1: this is not JSON"),
        ("a.json", "[" * 100_000, r"this is not JSON \(too large or too deep\)"),
        ("a.json", json.dumps(CLU).encode("utf-16-le"), r"this looks like utf-16-le without a byte order mark"),
        ("a.json", {"intents": []}, r"cannot tell what this is\. Say it with --format"),
        ("a.json", {"assets": {"utterances": []}}, r"found no examples in it, read as clu"),
        ("a.json", {"assets": {"utterances": {}}}, r"found no list 'assets\.utterances'"),
        ("a.json", {"assets": {"utterances": ["hi"]}}, r"utterance 1: this is a string, expected an object"),
        ("a.json", {"rasa_nlu_data": {"common_examples": []}}, r"found no examples in it, read as rasa"),
        ("a.json", {"rasa_nlu_data": []}, r"found no 'rasa_nlu_data'"),
        ("a.json", {"rasa_nlu_data": {"common_examples": {}}}, r"'common_examples' is an object, expected a list"),
        ("a.json", {"rasa_nlu_data": {"common_examples": [7]}}, r"common_examples 1: this is a number"),
        ("a.md", "# nothing here\n", r"found no examples in it, read as rasa"),
        ("a.zip", b"PK", r"archives are not opened\. Unpack it"),
        ("a.doc", "hello", r"cannot tell what this is"),
    ],
)
def test_a_broken_file_is_refused_in_a_sentence(make, name, content, message):
    with pytest.raises(InputError, match=message):
        import_tasks(make(name, content))


def test_a_broken_folder_is_refused_in_a_sentence(make, dialogflow):
    with pytest.raises(InputError, match="there is no such file or folder"):
        import_tasks(dialogflow / "gone")
    with pytest.raises(InputError, match="found neither tables"):
        import_tasks(make("empty/notes.txt", "hello").parent)
    with pytest.raises(InputError, match="this is a bank already"):
        import_tasks(make("bank/a.train.tsv", "a\tb\n").parent)
    phrases = make("agent/intents/refund_usersays_en.json", [{"data": [{"meta": "@x"}]}])
    with pytest.raises(TaskFormatError, match=r"usersays_en\.json, phrase 1: it has no list 'data'"):
        import_tasks(dialogflow)
    phrases.write_text("[{")
    with pytest.raises(TaskFormatError, match=r"usersays_en\.json, line 1: this is not JSON"):
        import_tasks(dialogflow)
    phrases.write_text('{"data": []}')
    with pytest.raises(TaskFormatError, match="this is an object, expected a list of phrases"):
        import_tasks(dialogflow)
    for path in (dialogflow / "intents").glob("*usersays*"):
        path.unlink()
    with pytest.raises(TaskFormatError, match="found no examples in it, read as dialogflow"):
        import_tasks(dialogflow)


def test_a_format_that_does_not_fit_is_refused(make):
    path = make("a.csv", as_csv(PAIRS))
    for options, message in (
        ({"format": "excel"}, "no format 'excel'. Known are csv"),
        ({"format": "dialogflow"}, "this is a file, and dialogflow comes as a folder"),
        ({"format": "watson", "text_column": "x"}, "watson has no columns to name"),
        ({"text_column": "body"}, "expected 'body' for the text"),
        ({"task_column": "client"}, "expected 'client' for the task"),
        ({"name": "///"}, "the task's name '///' has no letter"),
    ):
        with pytest.raises(InputError, match=message):
            import_tasks(path, **options)


def run(*words):
    from manymetrics.cli import main

    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words])


def test_the_commands_import_into_a_bank_and_export_it_again(make, dialogflow, tmp_path):
    result = run("import", make("shop.csv", WATSON), tmp_path / "bank")
    assert result.exit_code == 0, result.output
    assert "shop.csv as watson; wrote" in result.stderr
    assert result.stdout.splitlines()[-1].split()[:2] == ["shop", "2"]
    about = json.loads(run("import", dialogflow, tmp_path / "bank", "--no-split", "--json").stdout)
    sizes = {"labels": 2, "train": 5, "valid": 0, "test": 0, "duplicates": 0, "counter_examples": 0}
    assert about["tasks"] == [{"name": "agent", **sizes}]
    assert about["read_as"] == "dialogflow"
    lines = run("export", tmp_path / "bank").stdout
    assert len(lines.splitlines()) == 11
    copied = run("import", make("out.jsonl", lines), tmp_path / "copy", "--task-column", "task")
    assert copied.exit_code == 0, copied.output
    assert mm.load_tasks(tmp_path / "copy").fingerprint == mm.load_tasks(tmp_path / "bank").fingerprint
    again = run("import", make("shop.csv", WATSON), tmp_path / "bank")
    assert again.exit_code == 2
    assert "has a task 'shop' already" in again.stderr
    assert "Traceback" not in again.output


def test_an_import_of_nothing_writes_nothing(make, tmp_path):
    result = run("import", make("a.jsonl", ""), tmp_path / "bank")
    assert (result.exit_code, result.stdout) == (2, "")
    assert not (tmp_path / "bank").exists()
