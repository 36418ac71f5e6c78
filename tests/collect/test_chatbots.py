"""What chatbot services export: every kind as it is written, and texts that belong to no intent kept apart."""

import json
import random
import warnings
from collections import Counter

import pytest

from manymetrics.collect import import_tasks, load_tasks
from manymetrics.errors import InputError, TaskFormatError, TaskLeftOut

TRACK = ["where is my parcel", "has it shipped, or not", "track my order"]
REFUND = ["i want my money back", "refund please", 'they said "no refund"']
PAIRS = [(text, "track") for text in TRACK] + [(text, "refund") for text in REFUND]
SMALL_TALK = ["how is the weather", "tell me a joke"]

SKILL = {
    "name": "shop",
    "language": "en",
    "intents": [
        {"intent": name, "description": "", "examples": [{"text": text} for text in texts]}
        for name, texts in (("track", TRACK), ("refund", REFUND))
    ],
    "entities": [{"entity": "item", "values": []}],
    "counterexamples": [{"text": text} for text in SMALL_TALK],
    "dialog_nodes": [],
}
LUIS = {
    "luis_schema_version": "7.0.0",
    "name": "shop",
    "intents": [{"name": "None"}, {"name": "track"}, {"name": "refund"}],
    "entities": [],
    "utterances": [
        {"text": text, "intent": label, "entities": []}
        for text, label in [*PAIRS, *((text, "None") for text in SMALL_TALK)]
    ],
    "patterns": [],
}
TOLD = "Texts that belong to no label, kept apart from the examples as counter-examples: 2 (shop.counter.jsonl 2)."
CLU = {
    "assets": {
        "intents": [],
        "utterances": [
            {"text": text, "intent": label, "dataset": "Train"}
            for text, label in [*PAIRS, *((text, "None") for text in SMALL_TALK)]
        ],
    }
}


@pytest.fixture
def make(tmp_path):
    """Writes a file of JSON, or of text, and gives its path."""

    def make(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return make


def pairs_of(task):
    parts = (task.train, task.valid, task.test)
    return Counter(pair for part in parts for pair in zip(part.texts, part.labels, strict=True))


@pytest.mark.parametrize(
    ("content", "known_as"),
    [
        (SKILL, "watson"),
        ({"name": "shop", "type": "dialog", "workspace": SKILL}, "watson"),
        ({"assistant_skills": [{"type": "action", "workspace": SKILL}]}, "watson"),
        (LUIS, "luis"),
        (CLU, "clu"),
    ],
)
def test_a_json_export_is_known_by_its_look_and_texts_of_no_intent_are_kept_apart(make, content, known_as):
    found = import_tasks(make("shop.json", content))
    assert found.format == known_as
    assert pairs_of(found.bank["shop"]) == Counter(PAIRS)
    assert dict(found.counter_examples) == {"shop": tuple(SMALL_TALK)}
    assert found.notes == (TOLD,)


@pytest.mark.parametrize("inside", [False, True])
def test_a_dialogflow_cx_agent_gives_its_phrases_in_all_languages(make, inside):
    def intent(name, phrases, *, fallback=False):
        pieces = [{"id": "", "parts": [{"text": piece} for piece in phrase], "repeatCount": 1} for phrase in phrases]
        about = {"name": f"uuid of {name}", "displayName": name, "isFallback": fallback}
        if not inside:
            make(f"shop/intents/{name}/trainingPhrases/en.json", {"trainingPhrases": pieces})
        return make(f"shop/intents/{name}/{name}.json", {**about, "trainingPhrases": pieces} if inside else about)

    intent("track", [["where is my ", "parcel"], ["track it"]])
    intent("refund", [["money back"]])
    intent("no phrases", [])
    path = intent("Default Negative Intent", [[text] for text in SMALL_TALK], fallback=True)
    german = {"trainingPhrases": [{"parts": [{"text": "Geld zurück"}], "languageCode": "de"}]}
    make("shop/intents/refund/trainingPhrases/de.json", german)
    make("shop/flows/Default/Default.json", {"name": "x"})
    found = import_tasks(path.parents[2], split=False)
    assert (found.format, found.bank.names) == ("dialogflow", ("shop",))
    expected = [
        ("where is my parcel", "track"),
        ("track it", "track"),
        ("money back", "refund"),
        ("Geld zurück", "refund"),
    ]
    assert pairs_of(found.bank["shop"]) == Counter(expected)
    assert dict(found.counter_examples) == {"shop": tuple(SMALL_TALK)}


def test_phrases_of_a_fallback_intent_of_dialogflow_es_are_counter_examples(make):
    def phrases(*texts):
        return [{"data": [{"text": text}]} for text in texts]

    for name in ("track", "refund"):
        make(f"shop/intents/{name}.json", {"name": name})
        make(f"shop/intents/{name}_usersays_en.json", phrases(f"{name} it", f"please {name}"))
    make("shop/intents/Fallback_usersays_en.json", phrases(*SMALL_TALK))
    path = make("shop/intents/Fallback.json", {"name": "Fallback", "fallbackIntent": True})
    found = import_tasks(path.parents[1])
    assert found.bank["shop"].labels == ("refund", "track")
    assert dict(found.counter_examples) == {"shop": tuple(SMALL_TALK)}


@pytest.mark.parametrize("label", ["oos", "OOS", "out_of_scope", "out-of-scope", "Out of scope", "NO_NODES_DETECTED"])
def test_texts_out_of_scope_are_no_label_of_a_table(make, label):
    rows = [*PAIRS, (SMALL_TALK[0], label), (SMALL_TALK[1], label), (f" {SMALL_TALK[1].upper()}!", label)]
    lines = [json.dumps({"text": text, "label": name, "split": "train"}) for text, name in rows]
    lines.append(json.dumps({"text": "is it raining", "label": label, "split": "test"}))
    found = import_tasks(make("shop.jsonl", "\n".join(lines)))
    assert pairs_of(found.bank["shop"]) == Counter(PAIRS)
    assert set(found.counter_examples["shop"]) == {*SMALL_TALK, "is it raining"}


def test_a_label_none_stays_in_a_table_and_out_of_scope_stays_where_nothing_else_is_told(make):
    rows = [*PAIRS, *((text, "None") for text in SMALL_TALK)]
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    assert import_tasks(make("shop.jsonl", lines)).bank["shop"].labels == ("None", "refund", "track")
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows[:3])
    lines += '{"text": "hm", "label": "out_of_scope"}\n'
    found = import_tasks(make("shop.jsonl", lines))
    assert found.bank["shop"].labels == ("out_of_scope", "track")
    assert dict(found.counter_examples) == {}


def test_counter_examples_are_written_beside_the_task_and_are_no_task(make, tmp_path):
    from manymetrics.collect import add_to_bank, inspect_bank

    found = import_tasks(make("shop.json", LUIS))
    files = add_to_bank(found.bank, tmp_path / "bank", counter_examples=found.counter_examples)
    assert files[-1].name == "shop.counter.jsonl"
    lines = files[-1].read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": text} for text in SMALL_TALK]
    assert load_tasks(tmp_path / "bank", strict=True).names == ("shop",)
    assert inspect_bank(tmp_path / "bank").not_tasks == ("shop.counter.jsonl",)
    for path in files[:-1]:
        path.unlink()
    files[-1].write_text('{"text": "mine"}\n')
    (tmp_path / "bank" / "other.train.tsv").write_text("a\tx\nb\ty\n")
    with pytest.raises(InputError, match=r"has a file 'shop\.counter\.jsonl' already\. Move it away"):
        add_to_bank(found.bank, tmp_path / "bank", counter_examples=found.counter_examples)


@pytest.mark.parametrize(
    ("content", "known_as", "message"),
    [
        (
            {"intents": [{"intent": "a", "examples": {}}]},
            None,
            r"intent 1, examples: this is an object, expected a list",
        ),
        (
            {"intents": [{"intent": "a", "examples": ["b"]}]},
            None,
            r"intent 1, example 1: this is a string, expected an",
        ),
        ({"intents": [{"intent": "a"}, 3]}, None, r"intent 2: this is a number, expected an object"),
        ({"intents": [{"name": "a"}]}, "watson", r"found no list 'intents' with an 'intent' each"),
        ({"utterances": {}, "intents": []}, None, r"found no list 'utterances'"),
        ({"utterances": [1], "intents": []}, None, r"utterance 1: this is a number, expected an object"),
    ],
)
def test_a_broken_export_is_refused_in_a_sentence(make, content, known_as, message):
    with pytest.raises(InputError, match=message):
        import_tasks(make("a.json", content), format=known_as)


def confused(value, dice):
    """A value in which here and there something is of another type, or gone."""
    if dice.random() < 0.02:
        return dice.choice([None, True, 1, -1, 2**70, 1.5, "", "x" * 600, [], {}, [[]], {"text": 1}, "\ud800", "\0"])
    if isinstance(value, dict):
        return {key: confused(one, dice) for key, one in value.items() if dice.random() > 0.03}
    return [confused(one, dice) for one in value] if isinstance(value, list) else value


def test_exports_of_confused_types_are_read_or_refused_cleanly(make, tmp_path):
    dice = random.Random(0)
    phrases = {"trainingPhrases": [{"parts": [{"text": "a "}, {"text": "b"}]}] * 3}
    intents = {"agent/intents/a/a.json": {"displayName": "a"}, "agent/intents/b.json": {"name": "b", "userSays": []}}
    files = {"shop.json": None, "agent/intents/a/trainingPhrases/en.json": phrases, **intents}
    for name, content in intents.items():
        make(name, content)
    read = refused = 0
    for _ in range(400):
        name, content = dice.choice(list(files.items()))
        export = dice.choice([SKILL, LUIS, CLU]) if content is None else content
        path = make(name, json.dumps(confused(export, dice)))
        source = path if content is None else tmp_path / "agent"
        try:
            with warnings.catch_warnings(action="ignore"):
                import_tasks(source)
            read += 1
        except InputError:
            refused += 1
    assert read > 20
    assert refused > 20


def test_blank_utterances_are_left_out_and_strict_refuses_them(make):
    utterances = [*LUIS["utterances"], {"text": "hm"}, {"text": " ", "intent": "track"}, {"text": "hm", "intent": None}]
    path = make("shop.json", {**LUIS, "utterances": utterances})
    with pytest.warns(
        TaskLeftOut, match=r"3 rows are left out.*utterance 9, utterance 11: the label is blank.*utterance 10"
    ):
        found = import_tasks(path)
    assert found.rows_left_out == 3
    assert pairs_of(found.bank["shop"]) == Counter(PAIRS)
    with pytest.raises(
        TaskFormatError, match=r"utterance 9, utterance 11: the label is blank.*utterance 10: the text is"
    ):
        import_tasks(path, strict=True)


NLU = "nlu:\n- intent: track\n  examples: |\n{}- intent: refund\n  examples: |\n{}"


def nlu(track, refund):
    return NLU.format(*("".join(f"    - {text}\n" for text in texts) for texts in (track, refund)))


def test_the_split_of_a_rasa_project_is_kept_and_nothing_counts_twice(make):
    make("bot/data/nlu.yml", nlu(TRACK, REFUND))
    make("bot/train_test_split/training_data.yml", nlu(TRACK[:2], REFUND[:2]))
    path = make("bot/train_test_split/test_data.yml", nlu(TRACK[2:], REFUND[2:]))
    make("bot/train_test_split/training_nlg_data.yml", "responses: {}\n")
    for source in (path.parents[1], path.parent):
        found = import_tasks(source, name="bot")
        task = found.bank["bot"]
        assert (task.train.texts, task.test.texts) == ((*TRACK[:2], *REFUND[:2]), (*TRACK[2:], *REFUND[2:]))
        assert len(task.valid) == 0
        assert "train_test_split: taken as the split in train and test" in found.notes[0]
    path.unlink()  # half a split is only a copy
    assert pairs_of(import_tasks(path.parents[1]).bank["bot"]) == Counter(PAIRS)
