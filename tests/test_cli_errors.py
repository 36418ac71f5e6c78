"""What goes wrong at the command line: one clear line, the right exit code, and never a traceback."""

import errno
import json
import multiprocessing
import os
import pty
import signal
import subprocess
import sys
import time
import warnings

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main

GOOD = "yes please\tyes\nno thanks\tno\nsure\tyes\nnever\tno\n"


@pytest.fixture
def place(tmp_path, monkeypatch, model):
    """A folder to work in, with a model, a bank of three tasks and the examples of a new one."""
    monkeypatch.chdir(tmp_path)
    model.save("model")
    fill("bank", {f"{name}.{part}.tsv": GOOD for name in "abc" for part in ("train", "test")})
    (tmp_path / "shots.tsv").write_text(GOOD)
    return tmp_path


def fill(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)


def run(*words, **options):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, list(words), **options)


def assert_refused(result, message, *, code=2):
    """One line on stderr that holds the message, nothing on stdout, the exit code."""
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    *before, last = result.stderr.splitlines()
    assert all(line.startswith("manymetrics: warning: ") for line in before)
    assert last.startswith("manymetrics: ")
    assert message in last


def test_an_empty_folder(place):
    fill("nothing", {})
    for words in (
        ("learn", "nothing", "--out", "new"),
        ("inspect", "nothing"),
        ("evaluate", "model", "--targets", "nothing"),
    ):
        assert_refused(run(*words), "nothing: the folder is empty. Name the files <task>.train.tsv")


def test_a_folder_that_is_not_there_or_is_a_file(place):
    assert_refused(run("learn", "gone", "--out", "new"), "gone: there is no such folder. Check the path; you are in")
    assert_refused(run("inspect", "gone"), "gone: there is no such folder.")
    assert_refused(run("learn", "shots.tsv", "--out", "new"), "shots.tsv: this is a file, expected a folder of tasks.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "bad.tsv: Found no examples. A classifier needs examples of at least two labels."),
        ("a\tx\nb\tx\n", "bad.tsv: Found 2 examples of one label, 'x'."),
        ("a\tx\n", "of one label, 'x'. A classifier needs examples of at least two labels."),
        ("a\tx\nb x\n", "bad.tsv, line 2: found 1 field, expected text<TAB>label. Check the separator."),
        (b"caf\xe9\tx\n", "bad.tsv, line 1: the byte 0xe9 is not UTF-8"),
    ],
    ids=["empty", "one class", "one example", "no tab", "encoding"],
)
@pytest.mark.parametrize("command", ["predict", "adapt"])
def test_examples_that_cannot_be_used(place, command, content, message):
    fill(".", {"bad.tsv": content})
    texts = ["hello"] if command == "predict" else []
    assert_refused(run(command, "model", "--examples", "bad.tsv", *texts), message)


def test_examples_that_are_not_there(place):
    assert_refused(run("predict", "model", "--examples", "gone.tsv", "hi"), "gone.tsv: cannot be opened (No such file")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x.train.tsv": ""}, "Task 'x' has no examples in train."),
        ({"x.train.tsv": "a\tl\nb\tl\n"}, "Task 'x' has only the label 'l' in train."),
        ({"x.train.tsv": "a l\n"}, "line 1: found 1 field, expected text<TAB>label."),
        ({"x.train.tsv": b"caf\xe9\tl\n"}, "line 1: the byte 0xe9 is not UTF-8"),
        ({"x.train.tsv": GOOD, "x.train.csv": "text,label\na,x\nb,y\n"}, "both claim to be task 'x'."),
        (
            {"x.train.tsv": GOOD, "x.valid.tsv": "hm\tmaybe\n"},
            "Task 'x' has the label 'maybe' in valid but not in train.",
        ),
    ],
    ids=["empty", "one class", "no tab", "encoding", "named twice", "unseen label"],
)
def test_a_bad_task_is_refused_alone_or_strictly_and_else_left_out(place, files, message):
    fill("bad", files)
    assert_refused(run("learn", "bad", "--out", "new"), message)
    fill("bank", files)
    assert_refused(run("learn", "bank", "--out", "new", "--strict"), message)
    result = run("evaluate", "model", "--targets", "bank", "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("manymetrics: warning: 'x' is left out. ")
    assert message in result.stderr
    assert ".py:" not in result.stderr
    assert len(result.stderr.splitlines()) == 2, "the warning, and that the model knows tasks of these names"


def test_inspect_shows_a_folder_of_bad_tasks_and_fails(place):
    fill("bad", {"x.train.tsv": "no tab\n"})
    result = run("inspect", "bad")
    assert result.stdout.startswith("left out: x: ")
    assert (result.exit_code, result.stderr) == (
        2,
        "manymetrics: bad: none of it can be used as a task. See what is said of each.\n",
    )
    assert json.loads(run("inspect", "bad", "--json").stdout)["tasks"] == []


def test_too_few_tasks(place):
    pytest.importorskip("torch")
    fill("one", {"x.train.tsv": GOOD})
    fill(".", {"tiny.toml": 'encoder = "words"\nvectors = "random"\n'})
    result = run("learn", "one", "--out", "new", "--recipe", "tiny.toml")
    assert_refused(result, "Found 1 task to learn from. Metrics are learned from at least two.")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("command", [("predict", "--examples", "shots.tsv", "hi"), ("adapt", "--examples", "shots.tsv"),
                                     ("evaluate", "--targets", "bank")], ids=lambda words: words[0])  # fmt: skip
def test_a_model_that_is_missing_damaged_or_foreign(place, command):
    name, *options = command
    for foreign, told in (("gone", "There is no model folder"), ("bank", "is not a saved model: it has no checksums.")):
        result = run(name, foreign, *options)
        assert_refused(result, told)
        assert foreign in result.stderr
    flip_a_bit(place / "model" / "serving.safetensors")
    assert_refused(
        run(name, "model", *options), "serving.safetensors is damaged: its content does not match its checksum."
    )


def test_a_recipe_that_is_none(place):
    fill(".", {"bad.toml": "cluster = 3\n", "odd.toml": "clusters 3\n"})
    words = ("learn", "bank", "--out", "new", "--recipe")
    assert_refused(run(*words, "bad.toml"), "There is no knob 'cluster' in bad.toml. Did you mean 'clusters'?")
    assert_refused(run(*words, "odd.toml"), "odd.toml is not TOML: ")
    assert_refused(run(*words, "gone.toml"), "Cannot read the recipe gone.toml: ")
    assert_refused(
        run("learn", "bank", "--out", "new", "--clusters", "0"), "The knob clusters is 0. Set it to a number"
    )
    assert_refused(run("learn", "bank", "--out", "new", "--seed", "-1"), "The knob seed is -1. Set it to a number")


def test_vectors_nobody_knows_and_vectors_that_are_not_here(place, monkeypatch):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(place / "cache"))
    assert_refused(
        run("vectors", "get", "nope"), "There is nothing to fetch for 'nope'. Known are wordllama, glove-100d."
    )
    fill(".", {"nope.toml": 'encoder = "words"\nvectors = "nope"\n'})
    result = run("learn", "bank", "--out", "new", "--recipe", "nope.toml")
    assert_refused(result, "There are no word vectors 'nope': it is neither a file nor one of")
    result = run("learn", "bank", "--out", "new", "--recipe", "fast")
    assert_refused(result, "Fetch once with: manymetrics vectors get wordllama", code=4)
    result = run("learn", "bank", "--out", "new")
    assert_refused(result, "Fetch once with: manymetrics encoders get bge-small", code=4)


def test_a_place_for_the_model_is_looked_at_before_learning(place, monkeypatch):
    monkeypatch.setattr(mm, "load_tasks", None, raising=False)
    told = "is there already and is not a model. Give a new folder, or move what is in it."
    assert_refused(run("learn", "bank", "--out", "bank"), f"bank {told}")
    assert_refused(run("learn", "bank", "--out", "shots.tsv"), "shots.tsv is there already and is not a folder.")
    assert_refused(run("learn", "bank", "--out", "shots.tsv/model"), "Nothing can be written to", code=4)
    assert sorted(os.listdir("bank")) == [f"{name}.{part}.tsv" for name in "abc" for part in ("test", "train")]


def test_a_model_and_a_run_that_would_lie_in_one_another_are_refused_before_learning(place, monkeypatch):
    monkeypatch.setattr(mm, "load_tasks", None, raising=False)
    told = "would lie in one another. Give each its own folder."
    for out, kept in (("new", "new"), ("new", "sub/../new"), ("kept/model", "kept"), ("new", "new/run")):
        assert_refused(run("learn", "bank", "--out", out, "--run", kept), f"The model {out} and the run {kept} {told}")
    os.symlink("kept", "link")
    os.mkdir("kept")
    assert_refused(run("learn", "bank", "--out", "kept/model", "--run", "link"), told)
    assert not os.listdir("kept")


def test_a_run_is_not_put_where_something_else_is(place, monkeypatch):
    monkeypatch.setattr(mm, "load_tasks", None, raising=False)
    told = "bank is there already and is not a run of this version. Give a new folder, or the one of a run."
    assert_refused(run("learn", "bank", "--out", "new", "--run", "bank"), told)
    os.mkdir("nothing")
    told = "The run nothing is the folder of the tasks. Give the run a folder of its own."
    assert_refused(run("learn", "nothing", "--out", "new", "--run", "nothing"), told)
    assert_refused(run("learn", "bank", "--out", "new", "--run", "shots.tsv"), "shots.tsv is a file, and a run is a")
    assert os.listdir("nothing") == []


def test_a_link_to_nothing_is_no_place_for_a_model(place, monkeypatch):
    monkeypatch.setattr(mm, "load_tasks", None, raising=False)
    os.symlink("nowhere", "dangling")
    assert_refused(run("learn", "bank", "--out", "dangling"), "dangling is there already and is not a folder.")
    told = "dangling is a link to nothing. Mend it, or choose another place for"
    assert_refused(run("learn", "bank", "--out", "dangling/model"), f"{told} model.")
    assert_refused(run("learn", "bank", "--out", "new", "--run", "dangling/run"), f"{told} run.")


def test_tasks_to_hold_out_must_be_there(place):
    result = run("learn", "bank", "--out", "new", "--hold-out", "z")
    assert_refused(result, "No task is named 'z' or begins with it.")


def usage_told(*words):
    """What is said of a command line that makes no sense."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr


def test_options_that_do_not_go_together_are_refused(place):
    shots = ("--examples", "shots.tsv")
    assert "Say what the task is: --examples FILE, or --classifier FOLDER." in usage_told("predict", "model", "hi")
    both = usage_told("predict", "model", *shots, "--reject", "0.3", "--reject-share", "0.1", "hi")
    assert "Give --reject or --reject-share, not both." in both
    for option in (shots, ("--mix", "paper"), ("--no-fallback",), ("--counter-examples", "shots.tsv")):
        told = usage_told("explain", "model", "--classifier", "saved", *option, "hi")
        assert "--classifier has examples and a mix of its own." in told
    assert "Give a MODEL and the tasks to try it on" in usage_told("evaluate", "model")
    assert "--shots is for --leave-one-out." in usage_told("evaluate", "model", "--targets", "bank", "--shots", "3")
    assert "--recipe is for --leave-one-out." in usage_told("evaluate", "model", "--targets", "bank", "--recipe", "r")
    assert "--reject is for --scope." in usage_told("evaluate", "model", "--targets", "bank", "--reject", "0.3")
    assert "--mix is not for --scope." in usage_told("evaluate", "model", "--targets", "b", "--scope", "--mix", "paper")
    assert "Give no MODEL, and the tasks as --bank" in usage_told("evaluate", "--leave-one-out")
    assert "--target is for a MODEL." in usage_told("evaluate", "--leave-one-out", "--bank", "b", "--target", "a")
    assert "Give --leave-one-out or --scope, not both." in usage_told("evaluate", "--leave-one-out", "--scope")


def test_texts_that_are_missing_or_not_utf8(place):
    words = ("predict", "model", "--examples", "shots.tsv")
    assert_refused(run(*words, "--input", "gone.txt"), "gone.txt: cannot be opened (No such file or directory).")
    assert_refused(run(*words, "caf\udce9"), "Text 1 of the command line is not UTF-8.")
    assert_refused(
        run(*words, input=b"caf\xe9\n"), "stdin, line 1: the byte 0xe9 is not UTF-8. Save the texts as UTF-8."
    )
    both = run(*words, "hi", "--input", "shots.tsv")
    assert both.exit_code == 2
    assert "Give texts as arguments or with --input, not both." in both.stderr


def test_nobody_waits_for_texts_from_a_keyboard(place):
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "manymetrics.cli", "predict", "model", "--examples", "shots.tsv"]
    found = subprocess.run(words, stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    told = "manymetrics: There are no texts to answer. Give them as arguments, with --input FILE, or on stdin.\n"
    assert (found.returncode, found.stdout, found.stderr) == (2, "", told)


def test_targets_that_cannot_be_chosen(place):
    words = ("evaluate", "model", "--targets")
    assert_refused(run(*words, "bank", "--target", "z"), "No task is named 'z' or begins with it.")
    fill("untested", {"x.train.tsv": GOOD})
    assert_refused(run(*words, "untested"), "untested: none of its 1 tasks has test texts. Add files <task>.test.tsv.")
    fill("bank", {"manifest.json": '{"tasks": [{"name": "a", "role": "meta-train"}]}'})
    assert_refused(run(*words, "bank"), "No task of this bank has the role 'target'.")


def raising(problem):
    def learn_metrics(*_, **__):
        raise problem

    return learn_metrics


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "run/x: No space left on device. Mend this"),
        (PermissionError(errno.EACCES, "Permission denied", "new"), "new: Permission denied. Mend this"),
        (OSError("odd"), "odd. Mend this and give the same command again."),
        (MemoryError(), "The memory of this machine is full."),
        (mm.EnvironmentProblem("A worker\nprocess died."), "A worker\\nprocess died."),
    ],
)
def test_what_the_machine_lacks_is_exit_code_4(place, monkeypatch, problem, message):
    monkeypatch.setattr(mm, "learn_metrics", raising(problem), raising=False)
    assert_refused(run("learn", "bank", "--out", "new"), message, code=4)


def test_an_error_nobody_foresaw_is_not_hidden(place, monkeypatch):
    monkeypatch.setattr(mm, "learn_metrics", raising(ZeroDivisionError("odd")), raising=False)
    result = run("learn", "bank", "--out", "new")
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_interruption_tells_how_to_go_on(place, monkeypatch):
    monkeypatch.setattr(mm, "learn_metrics", raising(KeyboardInterrupt()), raising=False)
    result = run("learn", "bank", "--out", "new", "--run", "my run")
    told = "What is finished is kept; go on with: manymetrics learn bank --out new --run 'my run'"
    assert_refused(result, told, code=130)
    result = run("learn", "bank", "--out", "new")
    assert_refused(result, "With --run FOLDER the same command can go on where it was stopped.", code=130)
    monkeypatch.setattr(mm, "load_model", raising(KeyboardInterrupt()), raising=False)
    assert_refused(run("adapt", "model", "--examples", "shots.tsv"), "manymetrics: Interrupted.", code=130)


def test_a_warning_is_one_line_without_a_file_name(place, monkeypatch, model):
    def learn_metrics(*_, **__):
        warnings.warn("It stopped early.", mm.DidNotConverge, stacklevel=1)
        return model

    monkeypatch.setattr(mm, "learn_metrics", learn_metrics, raising=False)
    result = run("learn", "bank", "--out", "new", "-q")
    assert (result.exit_code, result.stderr) == (0, "manymetrics: warning: It stopped early.\n")


def test_the_installed_command_shows_no_traceback(place):
    words = [sys.executable, "-m", "manymetrics.cli", "inspect", "gone"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("manymetrics: gone: there is no such folder.")
    assert len(found.stderr.splitlines()) == 1


def test_a_reader_that_leaves_early_is_no_error_of_ours(place):
    ours, theirs = os.pipe()
    os.close(ours)
    words = [sys.executable, "-m", "manymetrics.cli", "recipe"]
    found = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert found.stderr == ""


def test_leaving_does_not_wait_for_workers(place, monkeypatch):
    workers = []

    def learn_metrics(*_, **__):
        workers.append(multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,)))
        workers[0].start()
        raise KeyboardInterrupt

    monkeypatch.setattr(mm, "learn_metrics", learn_metrics, raising=False)
    assert_refused(run("learn", "bank", "--out", "new"), "Interrupted", code=130)
    workers[0].join(30)
    assert workers[0].exitcode == -signal.SIGTERM


def test_a_folder_that_only_looks_like_a_model_is_refused_before_learning(place):
    fill("looks", {"checksums.json": "{}"})
    assert_refused(run("learn", "bank", "--out", "looks"), "looks is there already and is not a model.")
