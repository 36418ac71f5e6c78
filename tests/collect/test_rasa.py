"""Rasa NLU files: examples without markup; everything else is ignored."""

import re

import pytest
from tests.collect.conftest import pairs as pairs_in

from manymetrics.collect.importers import rasa
from manymetrics.collect.importers.tables import ImportOptions
from manymetrics.collect.readers.records import UNSPLIT, ReadLog, TableOptions, collect_examples
from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples

YAML = """\
version: "3.1"
nlu:
- intent: greet
  examples: |
    - hello
    - hi   [Anna](name),
      how are you

    # - not this one
    - good [morning]{"entity": "time", "value": "am"}
- synonym: anna
  examples: |
    - Ann
- lookup: city
  examples: |
    - Rome
- regex: zip
  examples: |
    - \\d+
- intent: faq/ask_price
  examples:
  - text: |
      what does
      it cost
    metadata: {sentiment: neutral}
  - text: 'the [blue][{"entity": "color"}, {"entity": "sort"}] one?'
  - plain words
- intent: yes
  examples:
  - yes
  - 5
- intent: silent
"""
TEXTS = {
    "greet": ["hello", "hi Anna, how are you", "good morning"],
    "faq/ask_price": ["what does it cost", "the blue one?", "plain words"],
    "yes": ["yes", "5"],
}
YAML_PAIRS = [(text, label) for label, texts in TEXTS.items() for text in texts]


def read_rasa(path, log=None):
    log = log or ReadLog()
    records = rasa.read_rasa(path, ImportOptions("rasa", "bot", "", TableOptions(), log))
    return collect_examples(records, log).get("bot", {}).get(UNSPLIT, Examples())


def is_rasa(path):
    return path in rasa.rasa_files(path.parent)


def pairs(path):
    return pairs_in(read_rasa(path))


def test_yaml_gives_the_planted_examples(make):
    for end in ("\n", "\r\n"):
        assert pairs(make("bot.yml", YAML.replace("\n", end))) == YAML_PAIRS
        assert pairs(make("bot.yaml", YAML.replace("\n", end))) == YAML_PAIRS


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("bot.yml", YAML, True),
        ("bot.yaml", "\ufeffnlu:\n", True),
        ("bot.yml", "{'nlu': []}", True),
        ("domain.yml", "intents:\n- nlu\n", False),
        ("bot.txt", YAML, False),
    ],
)
def test_a_rasa_file_is_recognised_by_its_ending_and_its_content(make, name, content, expected):
    assert is_rasa(make(name, content)) is expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nlu: yes\n", "bot.yml: 'nlu' is not a list. Write '- intent: name' and 'examples: |' under 'nlu:'."),
        ("", "bot.yml: 'nlu' is not a list."),
        ("nlu:\n- intent: a\n  examples: [\n", "bot.yml, line 4: this is not YAML ("),
        ("nlu:\n- intent: a\n   examples: b\n", "bot.yml, line 3: this is not YAML (mapping values are not allowed"),
        ("nlu: *gone\n", "this is not YAML (found undefined alias). Check the indentation and quotes."),
        ("nlu:\n- intent: [a]\n", "bot.yml, line 2: the intent is not a name. Write 'intent: name'."),
        ("nlu:\n- intent: !!python/object/apply:os.getcwd []\n", "bot.yml, line 2: the intent is not a name."),
        ("nlu:\n- intent: a\n  examples: {b: c}\n", "bot.yml, line 3: the examples are not a list. Write"),
        ("nlu:\n- intent: a\n  examples:\n  - {b: c}\n", "bot.yml, line 4: an example has no text. Write '- text"),
        ("nlu:\n- intent: a\n  examples: |\n    b\n", "bot.yml, line 4: an example begins without a dash. Write '- '"),
        ("nlu: " + "[" * 100_000, "bot.yml, line 1: nested more than 50 deep. Correct it."),
        ("nlu: a\0\n", "bot.yml: this is not YAML ("),
    ],
)
def test_an_unreadable_file_is_refused_with_line_and_cure(make, content, message):
    with pytest.raises(TaskFormatError, match=re.escape(message)):
        read_rasa(make("bot.yml", content))


def test_examples_of_an_intent_without_a_name_are_left_out(make):
    log = ReadLog()
    path = make("bot.yml", "nlu:\n- intent: ''\n  examples: |\n    - b\n    - c\n- intent: a\n  examples: |\n    - d\n")
    assert read_rasa(path, log).texts == ("d",)
    assert log.message() == f"{path}, line 4, line 5: the label is blank. Give every text a label, or remove the row."


def test_only_the_first_bytes_of_a_file_are_searched(make, monkeypatch):
    monkeypatch.setattr(rasa, "HEAD_BYTES", 100)
    assert is_rasa(make("bot.yml", "x: 1\n" * 10 + YAML))
    assert not is_rasa(make("bot.yml", "x: 1\n" * 30 + YAML))


def test_a_file_of_too_many_values_is_refused(make, monkeypatch):
    monkeypatch.setattr(rasa, "MAX_VALUES", 1_000)
    assert len(pairs(make("bot.yml", YAML))) == len(YAML_PAIRS)
    with pytest.raises(TaskFormatError, match=r"bot\.yml: found more than 1,000 values\. Take a sample, or split it"):
        read_rasa(make("bot.yml", "nlu: [" + "[]," * 1_000 + "]"))


def test_files_made_to_be_slow_are_read(make):
    start = "nlu:\n- intent: a\n  examples: |\n    - b "
    assert pairs(make("bot.yml", start + "[" * 400_000))
    assert pairs(make("bot.yml", start + "[a](" * 100_000 + "[a][{" * 100_000))
    assert not is_rasa(make("bot.yml", "\n \t{" * 300_000))
