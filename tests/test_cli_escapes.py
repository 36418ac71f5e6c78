"""Labels, texts and names from files cannot control the terminal or break a line, whichever command prints them."""

import json
import re

import pytest

import manymetrics as mm
from command_line import done, printed_json
from manymetrics.cli.output import write_json, write_tsv

EVIL = "\x1b[31mred\rover\x07\u202eevil\u2066\x9b1m"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LABELS = ("lamp", f"mu{EVIL}sic")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a task whose texts, labels and file name are hostile."""
    folder = tmp_path_factory.mktemp("escapes")
    rows = [{"text": f"turn {EVIL} {number}", "label": LABELS[number % 2]} for number in range(6)]
    rows += [{"text": "turn on", "label": label} for label in LABELS]
    (folder / f"sh{EVIL}ots.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "outside.txt").write_bytes(f"{EVIL}\n".encode())
    return folder


def test_no_command_prints_control_characters(folder, model_folder):
    shots = folder / f"sh{EVIL}ots.jsonl"
    task, saved = [model_folder, "--examples", shots], folder / f"sa{EVIL}ved"
    commands = [
        ["adapt", *task, "--counter-examples", folder / "outside.txt", "--save", saved, "--replace"],
        ["doctor", *task],
        ["explain", *task, "--margin", "1", f"say {EVIL}"],
        ["predict", *task, "--margin", "1", f"say {EVIL}"],
        ["suggest", *task, f"say {EVIL}"],
        ["predict", model_folder, "--classifier", saved, f"say {EVIL}"],
    ]
    for words in commands:
        for more in ([], ["--json"]):
            result = done(*words, *more)
            assert "evil" in result.stdout, words[0]
            assert CONTROL.findall(result.stdout + result.stderr) == [], words[0]
    answer = printed_json("predict", *task, f"say {EVIL}")
    assert answer["text"] == f"say {EVIL}", "JSON keeps all characters"
    assert set(answer["probabilities"]) == set(LABELS)


def test_targets_do_not_control_the_terminal(model, model_folder, shots):
    task = mm.Task(f"ta{EVIL}sk", shots, test=shots, source=f"sou{EVIL}rce")
    evaluation = mm.evaluate(model, mm.TaskBank((task,)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mm.evaluation, "choose_targets", lambda *_: mm.TaskBank((task,)))
        patch.setattr(mm, "evaluate", lambda *_, **__: evaluation, raising=False)
        written = done("evaluate", model_folder, "--targets", "bank").stdout
    assert "evil" in written
    assert CONTROL.findall(written) == []


def test_tsv_keeps_characters_that_are_merely_invisible(capsys):
    write_tsv("no\xa0break", "a\u200dj", "tab\tand\nline", "\x1b[31m\x85", "\ud800")
    assert capsys.readouterr().out == "no\xa0break\ta\u200dj\ttab and line\t\\x1b[31m\t\\ud800\n"
    write_json(["\u2028\x7f\ud800é"], indent=None)
    assert capsys.readouterr().out == '["\\u2028\\x7f\\ud800é"]\n'.replace("\\x7f", "\\u007f")


def test_a_label_with_a_line_break_does_not_begin_a_line(model_folder, tmp_path):
    rows = [{"text": f"{word} {number}", "label": label} for word, label in (("on", "a\nb"), ("off", "c"))
            for number in range(3)]  # fmt: skip
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = [model_folder, "--examples", tmp_path / "odd.jsonl"]
    for words in (["explain", *task, "on"], ["adapt", *task], ["doctor", *task]):
        assert not any(line.startswith("b") for line in done(*words).stdout.splitlines()), words[0]
