"""Labels, texts and names of others cannot steer the terminal or break a line, whatever a command shows of them."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.cli.output import without_breaks, write_json, write_tsv
from manymetrics.values import Unit

EVIL = "\x1b[31mred\rover\x07\u202eevil\u2066\x9b1m"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LABELS = ("lamp", f"mu{EVIL}sic")


def run(*words, **options):
    result = CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words], **options)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory, model):
    """A folder with a model and a task whose texts, labels and file name are hostile."""
    folder = tmp_path_factory.mktemp("escapes")
    model.save(folder / "model")
    rows = [{"text": f"turn {EVIL} {number}", "label": LABELS[number % 2]} for number in range(6)]
    rows.append({"text": "turn on", "label": LABELS[1]})
    rows.append({"text": "turn on", "label": LABELS[0]})
    (folder / f"sh{EVIL}ots.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "outside.txt").write_bytes(f"{EVIL}\n".encode())
    return folder


def test_no_command_lets_a_task_steer_the_terminal(place):
    shots = place / f"sh{EVIL}ots.jsonl"
    task, kept = [place / "model", "--examples", shots], place / f"ke{EVIL}pt"
    commands = {
        "adapt": ["adapt", *task, "--counter-examples", place / "outside.txt", "--save", kept],
        "doctor": ["doctor", *task],
        "explain": ["explain", *task, "--margin", "1", f"say {EVIL}"],
        "predict": ["predict", *task, "--proba", "--margin", "1", f"say {EVIL}"],
        "predict from a saved one": ["predict", place / "model", "--classifier", kept, f"say {EVIL}"],
    }
    steered = {}
    for name, words in commands.items():
        for more in ([], ["--json"]):
            result = run(*words, *more)
            assert "evil" in result.stdout, name
            if found := STEERS.findall(result.stdout + result.stderr):
                steered[name, *more] = found
    assert steered == {}


def test_json_keeps_every_sign_of_a_text(place):
    words = ["predict", place / "model", "--examples", place / f"sh{EVIL}ots.jsonl", "--json", f"say {EVIL}"]
    found = json.loads(run(*words).stdout)
    assert found["text"] == f"say {EVIL}"
    assert set(found["probabilities"]) == set(LABELS)


def test_neither_runs_nor_targets_steer_the_terminal(place, tmp_path, shots):
    def fail(unit, shared):
        raise ValueError(EVIL)

    folder = tmp_path / f"ru{EVIL}n"
    with mm.Run.open(folder) as kept, mm.Engine(None, run=kept) as engine, pytest.raises(mm.UnitsFailed):
        engine(f"sta{EVIL}ge", fail, [Unit(f"un{EVIL}it", {})])
    (folder / ".lock").write_text(json.dumps({"pid": os.getpid(), "host": EVIL, "token": "x"}))
    task = mm.Task(f"ta{EVIL}sk", shots, test=shots, source=f"sou{EVIL}rce")
    written = [run("runs", "list", tmp_path).stdout, run("runs", "show", folder).stdout]
    assert "evil" in written[0]
    assert "evil" in written[1]
    found = mm.evaluate(mm.load_model(place / "model"), mm.TaskBank((task,)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mm, "choose_targets", lambda *_: mm.TaskBank((task,)), raising=False)
        patch.setattr(mm, "evaluate", lambda *_, **__: found, raising=False)
        written.append(run("evaluate", place / "model", "--targets", "bank").stdout)
    assert "evil" in written[2]
    assert [STEERS.findall(text) for text in written] == [[], [], []]


def test_a_tsv_for_another_program_keeps_what_is_merely_invisible(capsys):
    write_tsv(["no\xa0break", "a\u200dj", "tab\tand\nline", "\x1b[31m\x85", "\ud800"])
    assert capsys.readouterr().out == "no\xa0break\ta\u200dj\ttab and line\t\\x1b[31m\t\\ud800\n"
    write_json(["\u2028\x7f\ud800é"], indent=None)
    assert capsys.readouterr().out == '["\\u2028\\x7f\\ud800é"]\n'.replace("\\x7f", "\\u007f")


def test_on_a_terminal_everything_invisible_is_shown_as_an_escape():
    ours, theirs = pty.openpty()
    code = "from manymetrics.cli.output import write_tsv; write_tsv(['no\\xa0break', '\\x1b[31m'])"
    subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    assert shown == "no\\xa0break\t\\x1b[31m\r\n"


def test_a_label_with_a_line_break_does_not_begin_a_line(place, tmp_path):
    rows = [{"text": f"{word} {number}", "label": label} for word, label in (("on", "a\nb"), ("off", "c"))
            for number in range(3)]  # fmt: skip
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = [place / "model", "--examples", tmp_path / "odd.jsonl"]
    for words in (["explain", *task, "on"], ["adapt", *task], ["doctor", *task]):
        assert not any(line.startswith("b") for line in run(*words).stdout.splitlines()), words[0]
    assert without_breaks(("a\nb", ("c\n",), 5)) == ("a\\nb", ("c\\n",), 5)
