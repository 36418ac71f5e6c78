"""Errors at the command line: one clear line, the right exit code, and never a traceback."""

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
from pathlib import Path

import pytest

import manymetrics as mm
from command_line import assert_refused, assert_usage_error, run
from manymetrics.measure import transfer

GOOD = "yes please\tyes\nno thanks\tno\nsure\tyes\nnever\tno\n"
PROGRAM = [sys.executable, "-m", "manymetrics"]
SHOTS = ("--examples", "shots.tsv")
LEARN = ("learn", "bank", "--out", "new")
NOT_A_MODEL = "is there already and is not a model."
NOT_A_FOLDER = "is there already and is not a folder."
FILES = {  # in the working directory
    "bank": {f"{name}.{split}.tsv": GOOD for name in "abc" for split in ("train", "test")},
    "marked": {"a.train.tsv": GOOD, "manifest.json": '{"tasks": [{"name": "a", "role": "meta-train"}]}'},
    "untested": {"x.train.tsv": GOOD},
    "nothing": {},
    ".": {
        "shots.tsv": GOOD,
        "one.tsv": "a\tx\nb\tx\n",
        "latin.tsv": b"caf\xe9\tx\n",
        "blank.txt": "\n \n",
        "tiny.toml": 'encoder = "words"\nrepresentation = "convolution"\nvectors = "random"\nclusters = 2\npairs = 15\n'
        "[convolution]\ntask_steps = 10\nmetric_steps = 10\nwidth = 8\n",
    },
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, model):
    """The working directory, with a model, a bank of three tasks and the examples of a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MANYMETRICS_CACHE", "cache")
    model.save("model")
    for name, files in FILES.items():
        fill(name, files)
    return tmp_path


@pytest.fixture
def no_loading(monkeypatch):
    """Fails if tasks are read or fetched."""
    monkeypatch.setattr(mm, "load_tasks", None, raising=False)
    monkeypatch.setattr(mm, "Client", None, raising=False)


def fill(folder, files):
    Path(folder).mkdir(exist_ok=True)
    for name, content in files.items():
        Path(folder, name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("inspect nothing", "nothing: the folder is empty. Name the files <task>.train.tsv"),
        ("evaluate model --targets bank --target z", "No task is named 'z' or begins with it."),
        ("evaluate model --targets untested", "untested: none of its 1 tasks has test texts. Add files <task>.test"),
        ("evaluate model --targets marked", "No task of this bank has the role 'target'."),
        ("evaluate model --targets untested --target x --scope", "The task 'x' has no test examples. Add x.test.tsv"),
        ("learn gone --out new", "gone: cannot be listed (No such file or directory). Give a folder of tasks; you"),
        ("learn --out new", "There is nothing to learn from. Give a folder of tasks, or --from-service URL."),
        ("learn bank --out new --recipe gone.toml", "There is no recipe and no file gone.toml."),
        ("learn bank --out new --recipe speedy", "Give default, tuned, fast, paper, or the path of a TOML file."),
        ("learn bank --out new --clusters 0", "The setting clusters is 0. Set it to an integer"),
        ("learn nothing --out new --run nothing", "The run nothing is the folder of the tasks. Give the run a folder"),
        ("adapt model --examples gone.tsv", "gone.tsv: cannot be opened (No such file or directory)."),
        ("adapt model --examples one.tsv", "one.tsv: Found 2 examples of one label, 'x'."),
        ("adapt model --examples latin.tsv", "latin.tsv, line 1: the byte 0xe9 is not UTF-8"),
        ("adapt model --examples shots.tsv --counter-examples blank.txt", "blank.txt: found no counter-examples."),
        ("predict model --examples shots.tsv --input gone.txt", "gone.txt: cannot be opened (No such file or direct"),
        ("predict model --examples shots.tsv caf\udce9", "Text 1 of the command line is not UTF-8."),
        ("predict model --examples shots.tsv --input latin.tsv", "latin.tsv, line 1: the byte 0xe9 is not UTF-8"),
        ("suggest model --examples shots.tsv --input blank.txt", "Found no texts to choose from"),
    ],
)
def test_bad_input_is_refused_in_one_line(command, message):
    assert_refused(run(*command.split()), message)


def test_texts_from_stdin_that_are_not_utf8_are_refused():
    message = "stdin, line 1: the byte 0xe9 is not UTF-8. Save the texts as UTF-8."
    assert_refused(run("predict", "model", *SHOTS, input=b"caf\xe9\n"), message)


def test_a_bad_task_is_refused_alone_or_with_strict_and_otherwise_skipped():
    fill("bad", {"x.train.tsv": "a l\n"})
    message = "line 1: found 1 field, expected text<TAB>label."
    assert_refused(run("learn", "bad", "--out", "new"), message)
    fill("bank", {"x.train.tsv": "a l\n"})
    assert_refused(run(*LEARN, "--strict"), message)
    result = run("evaluate", "model", "--targets", "bank", "--json", "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("manymetrics: warning: 'x' is left out. ")
    assert message in result.stderr
    assert ".py:" not in result.stderr
    assert len(result.stderr.splitlines()) == 2, "the second warns that the model knows tasks of these names"


def test_inspect_prints_a_folder_of_bad_tasks_and_fails():
    fill("bad", {"x.train.tsv": "no tab\n"})
    result = run("inspect", "bad")
    assert result.stdout.startswith("skipped: x: ")
    assert result.exit_code == 2
    assert result.stderr == "manymetrics: bad: no usable task. The lines above give the reasons.\n"
    assert json.loads(run("inspect", "bad", "--json").stdout)["tasks"] == []


def test_a_model_that_is_missing_damaged_or_foreign_is_refused(folder):
    assert_refused(run("predict", "gone", *SHOTS, "hi"), "There is no model folder")
    assert_refused(run("adapt", "bank", *SHOTS), "is not a saved model: it has no checksums.")
    path = folder / "model" / "predictor.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    message = "predictor.safetensors is damaged: its content does not match its checksum."
    assert_refused(run("evaluate", "model", "--targets", "bank"), message)


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (("--out", "bank"), f"bank {NOT_A_MODEL} Give a new folder, or move what is in it.", 2),
        (("--out", "looks"), f"looks {NOT_A_MODEL}", 2),
        (("--out", "shots.tsv"), f"shots.tsv {NOT_A_FOLDER}", 2),
        (("--out", "dangling"), f"dangling {NOT_A_FOLDER}", 2),
        (("--out", "shots.tsv/model"), "Nothing can be written to", 4),
        (("--out", "dangling/model"), "dangling is a link to nothing.", 2),
        (("--out", "new", "--run", "dangling/run"), "dangling is a link to nothing.", 2),
        (("--out", "model"), "model holds a model already. Add --replace to replace it, or give another folder.", 2),
        (("--out", "new", "--run", "new"), "The model new and the run new would lie in one another.", 2),
        (("--out", "new", "--run", "sub/../new"), "would lie in one another. Give each its own folder.", 2),
        (("--out", "kept/model", "--run", "kept"), "would lie in one another. Give each its own folder.", 2),
        (("--out", "new", "--run", "new/run"), "would lie in one another. Give each its own folder.", 2),
        (("--out", "target/model", "--run", "link"), "would lie in one another. Give each its own folder.", 2),
        (("--out", "new", "--run", "bank"), "bank is there already and is not a run of this version.", 2),
        (("--out", "new", "--run", "shots.tsv"), "shots.tsv is a file, and a run is a", 2),
    ],
)
@pytest.mark.parametrize("source", [("bank",), ("--from-service", "http://127.0.0.1:9")], ids=["bank", "service"])
@pytest.mark.usefixtures("no_loading")
def test_output_folders_are_checked_before_tasks_are_read_or_fetched(folder, source, options, message, code):
    fill("looks", {"checksums.json": "{}"})
    os.symlink("nowhere", "dangling")
    os.mkdir("target")
    os.symlink("target", "link")
    before = sorted(folder.rglob("*"))
    assert_refused(run("learn", *source, *options), message, code=code)
    assert sorted(folder.rglob("*")) == before, "nothing was written"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict model hi", "The new task is missing. Give --examples FILE, or --classifier FOLDER."),
        ("predict model --examples shots.tsv hi --reject 2", "2.0 is not in the range 0<=x<=1."),
        ("predict model --examples shots.tsv hi --reject 0.3 --reject-share 0.1", "--reject or --reject-share, not b"),
        ("predict model --examples shots.tsv hi --input shots.tsv", "Give texts as arguments or with --input, not bo"),
        ("predict model --examples shots.tsv hi --text-column a", "names a column of a table. Give the table with"),
        ("predict model --examples shots.tsv --input - --text-column a", "names a column of a table. Give the table"),
        ("predict model --examples shots.tsv hi --class-prior lamp", "such as refund=0.2"),
        ("predict model --examples shots.tsv hi --class-prior lamp=much", "such as refund=0.2"),
        ("predict model --examples shots.tsv hi --class-prior lamp=1 --class-prior lamp=2", "twice for 'lamp'."),
        ("predict model --examples shots.tsv hi --steps many", "not a number of steps. Give a number such as 20, or"),
        ("explain model --examples shots.tsv", "There is no text to explain. Give at least one."),
        ("explain model --classifier saved hi --examples shots.tsv", "A saved classifier has its own examples."),
        ("explain model --classifier saved hi --no-fallback", "A saved classifier has its own examples."),
        ("evaluate model", "Give --targets FOLDER, or --leave-one-out and --bank FOLDER."),
        ("evaluate model --targets bank --shots 3", "--shots is an option of --leave-one-out."),
        ("evaluate model --targets bank --reject 0.3", "--reject is an option of --scope."),
        ("evaluate --leave-one-out", "Give --bank FOLDER and no MODEL."),
        ("evaluate --leave-one-out --bank b --target a", "--target is an option of evaluate MODEL"),
        ("evaluate --leave-one-out --scope", "Give --leave-one-out or --scope, not both."),
    ],
)
def test_options_that_cannot_be_used_are_refused(command, message):
    assert_usage_error(run(*command.split()), message)


def test_missing_encoders_and_vectors_name_the_command_that_fetches_them():
    assert_refused(run(*LEARN, "--recipe", "fast"), "Fetch once with: manymetrics vectors get wordllama", code=4)
    assert_refused(run(*LEARN), "Fetch once with: manymetrics encoders get bge-small", code=4)


def test_predict_does_not_wait_for_a_keyboard():
    controller, terminal = pty.openpty()
    words = [*PROGRAM, "predict", "model", *SHOTS]
    result = subprocess.run(words, stdin=terminal, capture_output=True, text=True, timeout=60, check=False)
    os.close(controller)
    os.close(terminal)
    message = "manymetrics: There are no texts. Give them as arguments, with --input FILE, or on stdin.\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message)


def fail_with(error):
    def learn_metrics(*_, **__):
        raise error

    return learn_metrics


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "run/x: No space left on device. Fix this"),
        (PermissionError(errno.EACCES, "Permission denied", "new"), "new: Permission denied. Fix this"),
        (OSError("odd"), "odd. Fix this and run the same command again."),
        (MemoryError(), "Out of memory. Use less data at once, or fewer --workers."),
        (mm.EnvironmentProblem("A worker\nprocess died."), "A worker\\nprocess died."),
    ],
)
def test_a_missing_requirement_is_exit_code_4(monkeypatch, error, message):
    monkeypatch.setattr(mm, "learn_metrics", fail_with(error), raising=False)
    assert_refused(run(*LEARN), message, code=4)


def test_an_unexpected_error_is_not_hidden(monkeypatch):
    monkeypatch.setattr(mm, "learn_metrics", fail_with(ZeroDivisionError("odd")), raising=False)
    result = run(*LEARN)
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


def test_an_interruption_says_how_to_resume(monkeypatch):
    monkeypatch.setattr(mm, "learn_metrics", fail_with(KeyboardInterrupt()), raising=False)
    message = "Finished jobs are saved; resume with: manymetrics learn bank --out new --run 'my run'"
    assert_refused(run(*LEARN, "--run", "my run"), message, code=130)
    assert_refused(run(*LEARN), "Nothing was saved. With --run FOLDER, the same command resumes.", code=130)
    monkeypatch.setattr(mm, "load_model", fail_with(KeyboardInterrupt()), raising=False)
    assert_refused(run("adapt", "model", *SHOTS), "manymetrics: Interrupted.", code=130)


def test_a_warning_is_one_line_without_a_file_name(monkeypatch, model):
    def learn_metrics(*_, **__):
        warnings.warn("It stopped early.", mm.DidNotConverge, stacklevel=1)
        return model

    monkeypatch.setattr(mm, "learn_metrics", learn_metrics, raising=False)
    result = run(*LEARN, "-q")
    assert (result.exit_code, result.stderr) == (0, "manymetrics: warning: It stopped early.\n")


def test_a_closed_stdout_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([*PROGRAM, "recipe"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert result.stderr == ""


def test_an_interruption_does_not_wait_for_workers(monkeypatch):
    workers = []

    def learn_metrics(*_, **__):
        workers.append(multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,)))
        workers[0].start()
        raise KeyboardInterrupt

    monkeypatch.setattr(mm, "learn_metrics", learn_metrics, raising=False)
    assert_refused(run(*LEARN), "Interrupted", code=130)
    workers[0].join(30)
    assert workers[0].exitcode == -signal.SIGTERM


@pytest.fixture
def learn_with_failure(make_bank, monkeypatch):
    """The words that learn from a bank in which one task cannot be trained."""
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    mm.write_bank(make_bank(3), "six")
    train = transfer.fit_single_task

    def train_most(job, bank):
        if job.name == "colour-1":
            raise ValueError("nothing to say")
        return train(job, bank)

    monkeypatch.setattr(transfer, "fit_single_task", train_most)
    return ["learn", "six", "--out", "new", "--run", "run", "--recipe", "tiny.toml", "--workers", 1]


def test_learn_prints_failed_jobs_and_how_to_try_again(learn_with_failure):
    result = run(*learn_with_failure, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert ([failure["job"] for failure in summary["failures"]], summary["pairs"]) == (["colour-1"], 10)
    assert "colour-1" not in [name for group in summary["clusters"] for name in group]
    assert "manymetrics: warning: measure-models of 'colour-1' failed: ValueError: nothing to say" in result.stderr
    (retry,) = [line for line in result.stderr.splitlines() if "Try again with: " in line]
    skipped = "manymetrics: 1 job failed and was skipped: measure-models of 'colour-1'. "
    assert retry.startswith(f"{skipped}Try again with: manymetrics learn")
    assert retry.endswith(" --replace")


def test_strict_accepts_no_failure(learn_with_failure, folder):
    result = run(*learn_with_failure, "--strict")
    assert result.exit_code == 3
    assert "1 job failed. With --strict, no model is saved." in result.stderr
    assert not (folder / "new").exists()
    assert run(*learn_with_failure, "--quiet").exit_code == 0, "the run resumes: no model was saved"
    assert (folder / "new").is_dir()


def test_the_options_limit_what_a_job_may_take(monkeypatch):
    given = []
    monkeypatch.setattr(mm, "learn_metrics", lambda *_, **options: given.append(options["limits"]), raising=False)
    run(*LEARN, "--job-timeout", 6, "--job-memory", 200)
    assert given == [mm.Limits(seconds=6, memory=200 * 2**20)]
