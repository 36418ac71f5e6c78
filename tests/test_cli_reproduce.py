"""`reproduce` on the command line: a table on stdout, progress on stderr, JSON on request, going on after a stop."""

import json

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.values import TaskBank

TINY = 'vectors = "random"\ntask_steps = 5\nmetric_steps = 5\nwidth = 8\nwindow = 3\nclusters = 2\nshots = 2\n'


def run(*words):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory, make_bank):
    folder = tmp_path_factory.mktemp("reproduce")
    mm.write_bank(TaskBank(make_bank(3).tasks, {"colour-2": "target"}), folder / "bank")
    (folder / "tiny.toml").write_text(TINY)
    return folder


@pytest.fixture(scope="module")
def words(place):
    pytest.importorskip("torch")
    found = ["reproduce", "intent", "--data", place / "bank", "--out", place / "out", "--quick", "--workers", 1]
    return [*found, "--recipe", place / "tiny.toml"]


def test_the_table_is_on_stdout_and_progress_on_stderr(words, place):
    result = run(*words)
    assert result.exit_code == 0, result.output
    for text in ("Single-task CNN", "34.5%", "Majority class", "manymetrics reproduce intent --data bank --quick"):
        assert text in result.stdout
    assert "measure-models 5/5" in result.stderr
    assert f"Everything is in {place / 'out'}." in result.stderr
    assert (place / "out" / "results.json").is_file()


def test_given_again_it_writes_the_same_as_json(words, place):
    run(*words)
    result = run(*words, "--json")
    assert json.loads(result.stdout) == json.loads((place / "out" / "results.json").read_text("utf-8"))
    assert "measure-models 5/5, 5 were there already" in result.stderr


def test_an_interruption_says_how_to_go_on(words, place, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mm, "reproduce", interrupt, raising=False)
    result = run(*words)
    assert result.exit_code == 130
    assert "Interrupted. What is finished is kept; go on with: manymetrics reproduce intent" in result.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--with", "bert"], "There is no extra method 'bert'. Choose among sentence, setfit."),
        (["--data", "nowhere"], "nowhere: there is no such folder."),
        (["--recipe", "nowhere.toml"], "Cannot read the recipe nowhere.toml"),
    ],
)
def test_bad_requests_get_one_line(words, change, told):
    result = run(*words, *change)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.output
