"""Exports of chatbot services: every format as it is written, and texts that belong to no intent."""

import json

import pytest
from tests.collect.conftest import PAIRS, REFUND, TRACK, as_jsonl, entries, pairs, pairs_of

from manymetrics.collect import add_to_bank, import_tasks, inspect_bank, load_tasks
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped

SMALL_TALK = ["how is the weather", "tell me a joke"]
NONE_PAIRS = [*PAIRS, *((text, "None") for text in SMALL_TALK)]

LUIS = {
    "luis_schema_version": "7.0.0",
    "name": "shop",
    "intents": [{"name": "None"}, {"name": "track"}, {"name": "refund"}],
    "utterances": entries(NONE_PAIRS, label="intent", entities=[]),
}
CLU = {
    "projectFileVersion": "2023-04-01",
    "metadata": {"projectKind": "Conversation", "projectName": "shop", "language": "en-us"},
    "assets": {
        "intents": [{"category": "None"}, {"category": "track"}, {"category": "refund"}],
        "utterances": entries(NONE_PAIRS, label="intent", dataset="Train"),
    },
}
NLU = "nlu:\n- intent: track\n  examples: |\n{}- intent: refund\n  examples: |\n{}"


def nlu(track, refund):
    return NLU.format(*("".join(f"    - {text}\n" for text in texts) for texts in (track, refund)))


def phrase(*pieces, key="data"):
    return {"id": "0a", key: [{"text": piece, "userDefined": False} for piece in pieces], "isTemplate": False}


@pytest.fixture
def dialogflow(make):
    """A Dialogflow ES agent as its export is unpacked."""
    make("agent/agent.json", {"displayName": "shop", "language": "en"})
    make("agent/intents/Track order.json", {"id": "1", "name": "track", "auto": True, "fallbackIntent": False})
    make("agent/intents/Track order_usersays_en.json", [phrase("where is my ", "parcel"), phrase("track it")])
    make("agent/intents/refund.json", {"id": "2", "name": "refund", "auto": True})
    make("agent/intents/refund_usersays_en.json", [phrase("refund please"), phrase("money ", "back", " please")])
    make("agent/intents/refund_usersays_pt-BR.json", [phrase("quero reembolso")])
    make("agent/intents/Fallback_usersays_en.json", [phrase(text) for text in SMALL_TALK])
    return make("agent/intents/Fallback.json", {"name": "Fallback", "fallbackIntent": True}).parents[1]


@pytest.mark.parametrize(("content", "format_name"), [(LUIS, "luis"), (CLU, "clu")])
def test_a_json_export_is_recognised_and_texts_of_no_intent_are_counter_examples(make, content, format_name):
    result = import_tasks(make("shop.json", content))
    assert result.format == format_name
    assert pairs_of(result.bank["shop"]) == sorted(PAIRS)
    assert dict(result.counter_examples) == {"shop": tuple(SMALL_TALK)}
    assert result.notes == ("Texts that belong to no label become counter-examples: 2 (shop.counter.jsonl 2).",)


def test_clu_keeps_its_division_into_train_and_test(make):
    utterances = entries(PAIRS, label="intent", dataset="Train")
    utterances += entries(PAIRS[1:4], label="intent", dataset="Test")
    task = import_tasks(make("shop.json", {"assets": {"utterances": utterances}})).bank["shop"]
    assert (pairs(task.train), pairs(task.valid), pairs(task.test)) == (PAIRS, [], PAIRS[1:4])


def test_a_dialogflow_es_agent_gives_its_phrases_under_the_names_of_the_intents(dialogflow):
    result = import_tasks(dialogflow, name="shop")
    assert result.format == "dialogflow"
    refund = [(text, "refund") for text in ("money back please", "quero reembolso", "refund please")]
    assert pairs_of(result.bank["shop"]) == [*refund, ("track it", "track"), ("where is my parcel", "track")]
    assert dict(result.counter_examples) == {"shop": tuple(SMALL_TALK)}


@pytest.mark.parametrize("inside", [None, "trainingPhrases", "userSays"])  # the key of phrases inside an intent
def test_a_dialogflow_cx_or_older_agent_gives_its_phrases_in_all_languages(make, inside):
    def intent(name, *phrases, fallback=False):
        content = {inside or "trainingPhrases": [phrase(*pieces, key="parts") for pieces in phrases]}
        if not inside:
            make(f"shop/intents/{name}/trainingPhrases/en.json", content)
        header = {"name": f"uuid of {name}", "displayName": name, "isFallback": fallback}
        return make(f"shop/intents/{name}/{name}.json", {**header, **content} if inside else header)

    intent("track", ["where is my ", "parcel"], ["track it"])
    intent("refund", ["money back"])
    intent("no phrases")
    path = intent("Default Negative Intent", *([text] for text in SMALL_TALK), fallback=True)
    make("shop/intents/refund/trainingPhrases/de.json", {"trainingPhrases": [phrase("Geld zurück", key="parts")]})
    make("shop/flows/Default/Default.json", {"name": "x"})
    result = import_tasks(path.parents[2], split=False)
    assert (result.format, result.bank.names) == ("dialogflow", ("shop",))
    refund = [("Geld zurück", "refund"), ("money back", "refund")]
    assert pairs_of(result.bank["shop"]) == [*refund, ("track it", "track"), ("where is my parcel", "track")]
    assert dict(result.counter_examples) == {"shop": tuple(SMALL_TALK)}


def test_the_split_of_a_rasa_project_is_used_and_no_example_is_read_twice(make):
    make("bot/data/nlu.yml", nlu(TRACK, REFUND))
    make("bot/train_test_split/training_data.yml", nlu(TRACK[:2], REFUND[:2]))
    path = make("bot/train_test_split/test_data.yml", nlu(TRACK[2:], REFUND[2:]))
    make("bot/train_test_split/training_nlg_data.yml", "responses: {}\n")
    for source in (path.parents[1], path.parent):
        result = import_tasks(source, name="bot")
        task = result.bank["bot"]
        assert (task.train.texts, task.test.texts) == ((*TRACK[:2], *REFUND[:2]), (*TRACK[2:], *REFUND[2:]))
        assert len(task.valid) == 0
        assert "train_test_split: used as the split in train and test" in result.notes[0]
    path.unlink()  # half a split is only a copy
    result = import_tasks(path.parents[1])
    assert (result.format, result.bank.names) == ("rasa", ("bot",))
    assert pairs_of(result.bank["bot"]) == sorted(PAIRS)


@pytest.mark.parametrize("label", ["oos", "OOS", "out_of_scope", "out-of-scope", "Out of scope", "NO_NODES_DETECTED"])
def test_texts_out_of_scope_are_counter_examples_of_a_table(make, label):
    out_of_scope = [(text, label) for text in (*SMALL_TALK, f" {SMALL_TALK[1].upper()}!")]
    rows = entries([*PAIRS, *out_of_scope], split="train") + entries([("is it raining", label)], split="test")
    result = import_tasks(make("shop.jsonl", as_jsonl(rows)))
    assert pairs_of(result.bank["shop"]) == sorted(PAIRS)
    assert result.counter_examples["shop"] == (*SMALL_TALK, "is it raining")


def test_none_is_a_label_of_a_table_and_out_of_scope_is_one_if_only_one_other_label_is_there(make):
    path = make("shop.jsonl", as_jsonl(entries(NONE_PAIRS)))
    assert import_tasks(path).bank["shop"].labels == ("None", "refund", "track")
    result = import_tasks(make("shop.jsonl", as_jsonl(entries([*PAIRS[:3], ("hm", "out_of_scope")]))))
    assert result.bank["shop"].labels == ("out_of_scope", "track")
    assert dict(result.counter_examples) == {}


def test_counter_examples_are_written_beside_the_task_and_are_not_a_task(make, tmp_path):
    result = import_tasks(make("shop.json", LUIS))
    files = add_to_bank(result.bank, tmp_path / "bank", counter_examples=result.counter_examples)
    assert files[-1].name == "shop.counter.jsonl"
    lines = files[-1].read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": text} for text in SMALL_TALK]
    assert load_tasks(tmp_path / "bank", strict=True).names == ("shop",)
    assert inspect_bank(tmp_path / "bank").counter_files == ("shop.counter.jsonl",)
    for path in files[:-1]:
        path.unlink()
    files[-1].write_text('{"text": "mine"}\n')
    (tmp_path / "bank" / "other.train.tsv").write_text("a\tx\nb\ty\n")
    with pytest.raises(InputError, match=r"has a file 'shop\.counter\.jsonl' already\. Move it away"):
        add_to_bank(result.bank, tmp_path / "bank", counter_examples=result.counter_examples)


@pytest.mark.parametrize(
    ("content", "format_name", "message"),
    [
        ({"intents": []}, None, r"the format is unclear\. Name it with --format"),
        ({"utterances": {}, "intents": []}, None, "utterances: this is an object, expected a list"),
        ({"assets": {"utterances": []}}, None, "found no examples in it, read as clu"),
        ({"assets": {"utterances": {}}}, None, "utterances: this is an object, expected a list"),
        ({}, "clu", "utterances: this is missing, expected a list"),
    ],
)
def test_a_broken_export_is_refused_in_a_sentence(make, content, format_name, message):
    with pytest.raises(InputError, match=message):
        import_tasks(make("a.json", content), format=format_name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"data": [{"meta": "@x"}]}], r"usersays_en\.json, phrase 1: it has no list 'data'"),
        ("[{", r"usersays_en\.json, line 1: this is not JSON"),
        ({"data": []}, "this is an object, expected a list of phrases"),
    ],
)
def test_a_broken_or_empty_dialogflow_agent_is_refused_in_a_sentence(make, dialogflow, content, message):
    make("agent/intents/refund_usersays_en.json", content)
    with pytest.raises(TaskFormatError, match=message):
        import_tasks(dialogflow)
    for path in (dialogflow / "intents").glob("*usersays*"):
        path.unlink()
    with pytest.raises(TaskFormatError, match="found no examples in it, read as dialogflow"):
        import_tasks(dialogflow)


def test_blank_utterances_are_left_out_and_strict_refuses_them(make):
    utterances = [*LUIS["utterances"], {"text": "hm"}, {"text": " ", "intent": "track"}, {"text": "hm", "intent": None}]
    path = make("shop.json", {**LUIS, "utterances": utterances})
    message = r"utterance 9, utterance 11: the label is blank.*utterance 10: the text is"
    with pytest.warns(TaskSkipped, match=rf"3 rows are left out.*{message}"):
        result = import_tasks(path)
    assert result.rows_left_out == 3
    assert pairs_of(result.bank["shop"]) == sorted(PAIRS)
    with pytest.raises(TaskFormatError, match=message):
        import_tasks(path, strict=True)
