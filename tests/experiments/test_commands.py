"""The experiments' command line: a table on stdout, progress on stderr, JSON on request, going on after a stop."""

import json

import pytest
from click.testing import CliRunner
from experiments.page import STORED

import manymetrics as mm
from experiments import commands, page, reproduction
from manymetrics.values import TaskBank

NETWORKS = 'encoder = "words"\nrepresentation = "convolution"\nvectors = "random"\n'
TINY = NETWORKS + "clusters = 2\nshots = 2\n[convolution]\ntask_steps = 5\nmetric_steps = 5\nwidth = 8\nwindow = 3\n"


def run(*words):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(commands.main, [str(word) for word in words])


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
    for text in (
        "Single-task CNN",
        "34.5",
        "Majority class",
        "python -m experiments reproduce intent --data bank --quick",
    ):
        assert text in result.stdout
    assert "measure-models 5/5" in result.stderr
    assert f"Everything is in {place / 'out'}." in result.stderr
    again = run(*words, "--json")
    assert json.loads(again.stdout) == json.loads((place / "out" / "results.json").read_text("utf-8"))
    assert "measure-models 5/5, 5 were there already" in again.stderr


def test_an_interruption_says_how_to_go_on(words, place, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "reproduce", interrupt)
    result = run(*words)
    assert result.exit_code == 130
    assert "Interrupted. Finished jobs are saved; resume with: python -m experiments reproduce intent" in result.stderr


@pytest.mark.parametrize(
    ("option", "file", "told"),
    [
        ("--compared", ("comparison.json", '{"rows": []}'), "lacks bank, recipe_name. Give `compare` again"),
        ("--held-out", ("held-out.json", "[]"), "lacks rows, bank, recipe_name"),
        ("--amazon", ("results.json", '{"rows": ['), "is damaged"),
    ],
)
def test_results_that_cannot_be_shown_are_refused_and_nothing_is_kept(tmp_path, monkeypatch, option, file, told):
    name, content = file
    (tmp_path / name).write_text(content)
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(page, "STORED", kept)
    result = run("page", option, tmp_path, "--out", tmp_path / "page.md")
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert not list(kept.iterdir())
    assert not (tmp_path / "page.md").exists()


def test_what_was_given_is_stored_and_shown(tmp_path, monkeypatch):
    kept, given, out = tmp_path / "kept", tmp_path / "given", tmp_path / "page.md"
    monkeypatch.setattr(page, "STORED", kept)
    given.mkdir()
    (given / "results.json").write_bytes((STORED / "amazon.json").read_bytes())
    compared = json.loads((STORED / "compare-intent-default.json").read_text())
    (given / "comparison.json").write_text(json.dumps({**compared, "recipe_name": "my/own.toml"}))
    result = run("page", "--amazon", given, "--compared", given, "--out", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in kept.iterdir()} == {"amazon.json", "compare-intent-own.json"}
    assert json.loads((kept / "amazon.json").read_text()) == json.loads((STORED / "amazon.json").read_text())
    written = out.read_text(encoding="utf-8")
    assert "recipe my/own.toml" in written
    assert "## Amazon reviews" in written
    assert "## Intents of chatbots\n" not in written
    result = run("page", "--intent", tmp_path / "nowhere", "--out", out)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "There are no results in" in result.stderr
    assert out.read_text(encoding="utf-8") == written
