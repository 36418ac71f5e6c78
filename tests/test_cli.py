"""The command line end to end: write a bank, inspect it, learn from it, adapt the model, use and evaluate it."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

import manymetrics as mm
from command_line import assert_refused, done, printed_json, printed_rows, run, write_shots
from manymetrics.cli.demo import planted_agreement
from manymetrics.cli.evaluate import SCOPE_COLUMNS
from python_process import run_python

TRAINING = ["banking-01", "banking-02", "health-01", "health-02"]
TARGETS = ["banking-new", "health-new"]
TINY = (
    'encoder = "words"\nevidence = "transfer"\np1 = 0.5\np2 = 0.5\n'
    'vectors = "random"\nown_steps = 5\nprojection_steps = 50\n'
)
COMMANDS = ["demo", "import", "export", "inspect", "vectors", "encoders", "recipe", "learn", "adapt", "doctor",
            "predict", "explain", "suggest", "evaluate", "report", "serve", "service"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a bank, a recipe and the examples of a new task."""
    folder = tmp_path_factory.mktemp("cli")
    bank = mm.sample_bank(0)
    mm.write_bank(bank.only([*TRAINING, *TARGETS]), folder / "bank")
    (folder / "tiny.toml").write_text(TINY)
    write_shots(folder / "shots.tsv", bank["banking-new"].train)
    return folder


@pytest.fixture(scope="module")
def learning(folder):
    """The words of a `learn` command and its result."""
    words = ["learn", folder / "bank", "--out", folder / "model", "--run", folder / "run"]
    words += ["--recipe", folder / "tiny.toml", "--workers", 1, "--seed", 3, "--clusters", 2]
    return words, done(*words)


@pytest.fixture(scope="module")
def learned(folder, learning):
    return folder / "model"


@pytest.fixture
def task(folder, model_folder):
    """The words that name the hand-made model and the examples."""
    return model_folder, "--examples", folder / "shots.tsv"


def test_help_is_quick_and_imports_nothing_heavy():
    code = "import sys; from manymetrics.cli import main; print({'numpy', 'rich', 'torch', 'numba'} & set(sys.modules))"
    assert run_python(code) == "set()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-m", "manymetrics", "--help"], check=True, capture_output=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 0.5, "seconds of processor time"


def test_help_lists_the_commands_and_exit_codes():
    page = done("-h").stdout
    positions = [page.index(f"\n  {command} ") for command in COMMANDS]
    assert positions == sorted(positions)
    codes = ("0  done", "1  unexpected", "2  bad input", "3  no result", "4  a requirement", "130  interrupted")
    assert [code for code in codes if code not in page] == []
    assert [command for command in COMMANDS if "-h, --help" not in done(command, "--help").stdout] == []
    assert done("--version").stdout == f"manymetrics, version {mm.__version__}\n"


def test_a_help_page_has_options_under_headings_and_examples():
    lines = done("learn", "--help").stdout.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Output:", "Method:", "Execution:", "Examples:"]
    options = lines[lines.index("Execution:") : lines.index("Examples:")]
    assert any(line.startswith("  --job-timeout SECONDS ") for line in options)
    assert lines[-1].startswith("  manymetrics recipe > my.toml")


def test_the_printed_recipe_is_the_default_one_with_explanations():
    assert done("recipe").stdout == mm.Recipe().as_toml(explained=True)


def test_learn_prints_clusters_on_stdout_and_times_on_stderr(learning):
    _, result = learning
    first, second = result.stdout.splitlines()[:2]
    assert first == "4 tasks in 2 clusters."
    assert second == "4 metrics: 2 of single clusters, 2 others (projection, word-vectors)."
    assert all(name in result.stdout for name in TRAINING)
    assert not any(name in result.stdout for name in TARGETS)
    assert all(message in result.stderr for message in ("measure-models 4/4", ", specialize ", "total"))


def test_learn_resumes_its_run_and_gives_the_same_model(learning, learned):
    words, _ = learning
    before = (learned / "predictor.safetensors").read_bytes()
    result = done(*words, "--replace", "--json")
    summary = json.loads(result.stdout)
    assert (summary["format"], summary["model"]) == (1, str(learned))
    assert sorted(name for cluster in summary["clusters"] for name in cluster) == TRAINING
    assert {row["name"] for row in summary["metrics"]} == {"cluster-0", "cluster-1", "projection", "word-vectors"}
    assert {"measure-models", "measure-transfer", "specialize", "total"} <= summary["seconds"].keys()
    assert "measure-models 4/4, 4 were there already" in result.stderr
    assert (learned / "predictor.safetensors").read_bytes() == before


def test_predict_answers_as_the_library_does(folder, learned):
    texts = ["please cancel my card", "order a new one", "\tlock it\nnow"]
    shots = mm.read_examples(folder / "shots.tsv")
    classifier = mm.load_model(learned).adapt(shots.texts, shots.labels)
    rows = printed_rows("predict", learned, "--examples", folder / "shots.tsv", *texts)
    assert [label for label, _, _ in rows] == list(classifier.predict(texts))
    best = classifier.predict_proba(texts).max(axis=1)
    assert [float(probability) for _, probability, _ in rows] == pytest.approx(best, abs=1e-4)
    assert [text for _, _, text in rows] == ["please cancel my card", "order a new one", "lock it now"]


def test_predict_reads_a_file_or_stdin_line_by_line(task, tmp_path):
    lines = "turn it on\r\n\nune lampe allumée, s'il vous plaît\n"
    (tmp_path / "texts.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    rows = printed_rows("predict", *task, "--input", tmp_path / "texts.txt")
    assert [text for _, _, text in rows] == ["turn it on", "", "une lampe allumée, s'il vous plaît"]
    assert printed_rows("predict", *task, input=lines) == printed_rows("predict", *task, "--input", "-", input=lines)
    assert printed_rows("predict", *task, input=lines) == rows
    assert [len(printed_rows("predict", *task, input="again\n" * count)) for count in (0, 1500)] == [0, 1500]


def test_predict_prints_one_json_object_per_line(task):
    result = done("predict", *task, "--json", "tab\there", "two")
    first, second = map(json.loads, result.stdout.splitlines())
    assert list(first) == ["text", "label", "probability", "scope", "rejected", "reason", "probabilities"]
    assert (first["rejected"], first["reason"]) == (False, None)
    assert 0 < first["scope"] < 1
    assert (first["text"], second["text"]) == ("tab\there", "two")
    assert first["probabilities"][first["label"]] == first["probability"] == max(first["probabilities"].values())
    assert sum(first["probabilities"].values()) == pytest.approx(1)


def test_a_fallback_is_reported_and_can_be_switched_off(model_folder, tmp_path):
    texts = [f"{number} {word}" for number, word in enumerate(("lamp", "music", "rain", "door") * 4)]
    lines = (f"{text}\t{'yes' if number % 8 < 4 else 'no'}\n" for number, text in enumerate(texts))
    (tmp_path / "random.tsv").write_text("".join(lines))
    task = (model_folder, "--examples", tmp_path / "random.tsv")
    assert "This could be chance: add examples, or clearer ones." in done("adapt", *task).stdout
    assert all(printed_json(command, *task)["chance"] is True for command in ("adapt", "doctor"))
    message = done("predict", *task, "hi").stderr
    assert message.startswith("manymetrics: No metric fits this task: its 16 examples answer one another")
    assert done("predict", *task, "hi", "--no-fallback").stderr == ""
    assert "No metric fits this task" in done("adapt", *task).stdout
    weights = {row["metric"]: row["weight"] for row in printed_json("adapt", *task)["weights"]}
    assert weights == {"word-vectors": 1.0, "cluster-0": 0.0, "cluster-1": 0.0}
    assert "The metrics are combined with these weights:" in done("adapt", *task, "--no-fallback").stdout


def test_adapt_prints_weights_and_accuracy(task):
    summary = printed_json("adapt", *task)
    weights = [row["weight"] for row in summary["weights"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert summary["examples"] == sum(summary["labels"].values()) == 25
    assert {row["metric"]: row["tasks"] for row in summary["weights"]}["cluster-0"] == ["a", "b"]
    assert (summary["format"], summary["fallback"]) == (1, None)
    text = done("adapt", *task).stdout
    assert text.startswith("25 examples of 5 labels: ")
    assert f"Cross-validated accuracy: {summary['left_out_accuracy']:.0%}." in text
    assert "cluster-0      learned" in text


def test_without_two_examples_of_a_label_accuracy_and_thresholds_are_unknown(model_folder, tmp_path):
    (tmp_path / "one.tsv").write_text("a\tx\nb\ty\n")
    task = (model_folder, "--examples", tmp_path / "one.tsv")
    summary = printed_json("adapt", *task)
    assert (summary["left_out_accuracy"], set(summary["thresholds"].values())) == (None, {None})
    message = "fewer than two can be. Give labels two different examples, or a threshold of your own."
    assert_refused(run("predict", *task, "hi", "--reject-share", 0.05), message)
    assert "Cross-validated accuracy: unknown" in done("adapt", *task).stdout
    assert printed_json("doctor", *task)["accuracy"] is None


def test_evaluate_scores_the_marked_targets(folder, learned):
    words = ["evaluate", learned, "--targets", folder / "bank"]
    evaluation = printed_json(*words)
    assert [target["task"] for target in evaluation["targets"]] == TARGETS
    result = done(*words)
    assert ("evaluate 2/2" in result.stderr, "warning" in result.stderr) == (True, False)
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == "task labels shots texts accuracy balanced accuracy macro-F1 majority"
    assert max(map(len, lines)) <= 120
    assert "\x1b" not in result.stdout
    mean, rows = evaluation["mean"]["accuracy"], {line.split()[0]: line for line in lines if line}
    assert f"{mean['value']:.1%} [{100 * mean['low']:.1f}, {100 * mean['high']:.1f}]" in rows["mean"]
    over = "manymetrics over logistic regression on the "
    starts = [f"{over}frozen encoder: ", "  in balanced accuracy: ", f"{over}shared metric: ", "  in", "Expected cal"]
    assert [start for start, line in zip(starts, lines[-5:], strict=True) if not line.startswith(start)] == []


def test_evaluate_takes_names_and_warns_of_tasks_of_the_model(folder, learned):
    result = done("evaluate", learned, "--targets", folder / "bank", "--target", "health", "--json")
    names = [target["task"] for target in json.loads(result.stdout)["targets"]]
    assert names == ["health-01", "health-02", "health-new"]
    message = "the model was learned from tasks of the same name (health-01, health-02), so their scores are too high."
    assert result.stderr.startswith(f"manymetrics: warning: {message}\n")


def test_evaluate_scope_scores_rejections(folder, model_folder):
    words = ["evaluate", model_folder, "--targets", folder / "bank", "--scope", "--seed", 5]
    evaluation, text = printed_json(*words), done(*words).stdout
    assert evaluation["seed"] == 5
    assert {row["task"] for row in evaluation["tasks"]} == set(TARGETS)
    assert "Expected calibration error on the texts in scope: " in text
    assert f"{evaluation['targets']['auroc']:.1%}" in text
    assert {row["threshold"] for row in evaluation["tasks"]} == {0.5}
    thresholds = {row["threshold"] for row in printed_json(*words, "--reject-share", 0.05)["tasks"]}
    assert len(thresholds) == 2, "each task has its own threshold"
    assert printed_json(*words, "--reject", 0)["targets"]["in_scope_kept"] == 1
    page = " ".join(done("evaluate", "--help").stdout.split())
    assert [column for column in SCOPE_COLUMNS if f"{column}:" not in page] == []


def test_inspect_prints_tasks_and_what_cannot_be_used(tmp_path):
    (tmp_path / "good.train.tsv").write_text("a\tx\na\ty\nb\ty\n")
    (tmp_path / "good.test.tsv").write_text("b\ty\n")
    (tmp_path / "bad.train.tsv").write_text("no tab\n")
    (tmp_path / "[bold]notes.txt").write_text("hello")
    assert printed_json("inspect", tmp_path) == mm.inspect_bank(tmp_path).as_dict()
    lines = done("inspect", tmp_path).stdout.splitlines()
    assert " ".join(lines[2].split()) == "good meta-train 2 3 0 1 67% 1 1 1"
    assert lines[4].startswith("labels: number of labels. train, valid, test: number of examples. largest: ")
    assert lines[8].startswith("skipped: bad: ")
    assert "expected text<TAB>label" in lines[8]
    assert lines[9] == "not a task file: [bold]notes.txt"


@pytest.mark.parametrize(
    ("kind", "name", "folder"), [("vectors", "wordllama", "vectors"), ("encoders", "bge-small", "sentence-encoders")]
)
def test_encoders_and_vectors_are_listed_and_fetched_only_once(tmp_path, monkeypatch, kind, name, folder):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path))
    card = {"card": mm.describe_encoder(name)} if kind == "encoders" else {}
    assert [name, f"fetch with: manymetrics {kind} get {name}", *card.values()] in printed_rows(kind, "list")
    path = tmp_path / folder / name
    path.mkdir(parents=True)
    (path / "checksums.json").write_text("{}")
    assert [name, "here", *card.values()] in printed_rows(kind, "list")
    assert {"name": name, "here": True, **card} in printed_json(kind, "list")[kind]
    result = done(kind, "get", name)
    messages = "".join(f"manymetrics: {text}\n" for text in card.values())
    assert (result.stdout, result.stderr) == (f"{path}\n", messages)


def test_demo_can_write_its_bank_and_stop(tmp_path):
    path = tmp_path / "bank"
    assert done("demo", "--bank-only", path, "--seed", 5).stdout == f"{path}\n"
    assert mm.load_tasks(path).fingerprint == mm.sample_bank(5).fingerprint
    assert_refused(run("demo", "--bank-only", path), f"{path} already exists and is not empty. Give a new folder.")


def test_demo_fetches_its_encoder_and_evaluates(monkeypatch, model, folder, model_folder):
    evaluation, fetched = mm.evaluate(model_folder, folder / "bank"), []
    replaced = {
        "learn_metrics": lambda *_, **__: model,
        "evaluate": lambda *_, **__: evaluation,
        "list_encoders": lambda: {"bge-small": False},
        "get_encoder": fetched.append,
    }
    for name, function in replaced.items():
        monkeypatch.setattr(mm, name, function, raising=False)
    monkeypatch.setattr("manymetrics.cli.demo.planted_agreement", lambda clusters: 0.876)
    monkeypatch.setattr(mm.FewShotClassifier, "take_steps", lambda classifier, *_: classifier)  # takes a minute
    output = done("demo")
    assert fetched == ["bge-small"]
    assert "manymetrics: Fetching the sentence encoder bge-small ...\n" in output.stderr
    assert "The starter model, adapted to 30 examples of 5 labels:" in output.stdout
    assert "'my package still has not come' -> track order" in output.stdout
    assert "manymetrics over logistic regression on the frozen encoder: " in output.stdout
    assert "clusters against planted families: adjusted Rand index 0.88\n" in output.stdout
    assert output.stdout.endswith(f"bank f00d, seed 0, manymetrics {mm.__version__}\n")


def test_in_the_agreement_a_task_without_a_family_counts_as_a_family_by_itself():
    names = ("banking-01", "banking-02", "health-01", "other-chess-talk")
    agreements = [planted_agreement(mm.Clusters(names, np.array(labels))) for labels in ([0, 0, 1, 2], [0, 0, 1, 1])]
    assert agreements == [1, pytest.approx(0.571, abs=1e-3)]


def test_gradient_steps_show_their_progress_and_need_a_sentence_encoder(monkeypatch, task):
    words = ["predict", *task, "hi", "--steps"]
    assert_refused(run(*words, 5), "Gradient steps need a sentence encoder")
    plain = done(*words, "auto").stdout

    def take_steps(classifier, steps, on_step):
        assert steps == 5
        on_step(0, 5)
        on_step(5, 5)
        return classifier

    monkeypatch.setattr(mm.FewShotClassifier, "take_steps", take_steps)
    result = done(*words, 5)
    assert result.stdout == plain
    assert "steps 5/5" in result.stderr


def test_explain_prints_examples_and_metrics(folder, task):
    text = (folder / "shots.tsv").read_text().split("\t")[0]
    page = done("explain", *task, text, "0123 !!!").stdout
    assert "The examples that decided:" in page
    assert "Its similarity is a weighted sum of its cosines with the text under each encoder." in " ".join(page.split())
    assert "learned from 2 tasks: a, b" in page or "No cluster fits" in page
    first, second = printed_json("explain", *task, text, "0123 !!!")["explanations"]
    assert first["text"] == text
    assert first["scope"] > second["scope"]
    assert first["examples"][0]["share"] > 0


def test_doctor_finds_contradictions(model_folder, tmp_path):
    (tmp_path / "odd.tsv").write_text("on\tlamp\noff\tlamp\non\tmusic\nplay\tmusic\nquack\tduck\n")
    task = (model_folder, "--examples", tmp_path / "odd.tsv")
    assert "Contradiction: 'on' has the labels lamp, music." in done("doctor", *task).stdout
    diagnosis = printed_json("doctor", *task)
    assert diagnosis["contradictions"] == [["on", ["lamp", "music"]]]
    assert diagnosis["tried"] == 4
