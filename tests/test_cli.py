"""The command line end to end: a bank is written, learned from, looked at, adapted to, asked and scored."""

import json
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.cli.output import name_tasks

PAST = ["banking-01", "banking-02", "health-01", "health-02"]
NEW = ["banking-new", "health-new"]
TINY = (
    'encoder = "words"\nevidence = "transfer"\np1 = 0.5\np2 = 0.5\n'
    'vectors = "random"\ntask_steps = 20\nmetric_steps = 20\nwidth = 16\n'
)


def run(*words, **options):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words], **options)


def done(*words, **options):
    """Run a command that must succeed."""
    result = run(*words, **options)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a bank, a recipe and the examples of a new task."""
    folder = tmp_path_factory.mktemp("cli")
    bank = mm.sample_bank(0)
    mm.write_bank(bank.only([*PAST, *NEW]), folder / "bank")
    (folder / "tiny.toml").write_text(TINY)
    shots = bank["banking-new"].train
    lines = (f"{text}\t{label}\n" for text, label in zip(shots.texts, shots.labels, strict=True))
    (folder / "shots.tsv").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def learning(place):
    """The bank learned from, once for all tests; the words of the command and its result."""
    pytest.importorskip("torch")
    words = ["learn", place / "bank", "--out", place / "model", "--run", place / "run"]
    words += ["--recipe", place / "tiny.toml", "--workers", 1, "--seed", 3, "--clusters", 2]
    return words, done(*words)


@pytest.fixture(scope="module")
def learned(place, learning):
    return place / "model"


@pytest.fixture(scope="module")
def handmade(tmp_path_factory, model):
    """A model that nothing was trained for."""
    path = tmp_path_factory.mktemp("handmade") / "model"
    model.save(path)
    return path


def test_help_is_quick_and_loads_nothing_heavy():
    code = "import sys; from manymetrics.cli import main; print({'numpy', 'rich', 'torch', 'numba'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-m", "manymetrics.cli", "--help"], check=True, capture_output=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert spent < 0.5, "seconds of its own, however busy the machine is"


def test_help_tells_the_exit_codes_and_every_command():
    told = done("-h").stdout
    for line in (
        "0  done",
        "1  unexpected failure",
        "2  bad input or usage",
        "4  the machine lacks",
        "130  interrupted",
    ):
        assert line in told
    for command in (
        "demo",
        "import",
        "export",
        "inspect",
        "vectors",
        "recipe",
        "learn",
        "runs",
        "adapt",
        "doctor",
        "predict",
        "explain",
        "evaluate",
        "report",
    ):
        assert f"\n  {command} " in told
        assert "-h, --help" in done(command, "--help").stdout


def test_version_is_that_of_the_package():
    assert done("--version").stdout == f"manymetrics, version {mm.__version__}\n"


def test_the_printed_recipe_is_the_default_one(tmp_path):
    told = done("recipe").stdout
    (tmp_path / "my.toml").write_text(told)
    assert mm.Recipe.load(tmp_path / "my.toml") == mm.Recipe()
    assert "# Examples of each label of an episode.\n# A whole number from 1 to 1,000.\nshots = 5\n" in told


def test_learn_shows_clusters_on_stdout_and_times_on_stderr(learning):
    _, result = learning
    first, second = result.stdout.splitlines()[:2]
    assert first == "4 tasks in 2 clusters."
    assert second == "5 metrics: 2 of single clusters, 3 others (tuned-vectors, word-vectors, letters)."
    assert all(name in result.stdout for name in PAST)
    assert not any(name in result.stdout for name in NEW)
    assert "measure-models 4/4" in result.stderr
    assert "manymetrics: measure-models " in result.stderr
    assert "total" in result.stderr


def test_learn_goes_on_from_its_run_and_gives_the_same_model(place, learning, learned):
    words, _ = learning
    before = (learned / "serving.safetensors").read_bytes()
    result = done(*words, "--json")
    about = json.loads(result.stdout)
    assert about["format"] == 1
    assert sorted(name for cluster in about["clusters"] for name in cluster) == PAST
    names = {"cluster-0", "cluster-1", "tuned-vectors", "word-vectors", "letters"}
    assert {metric["name"] for metric in about["metrics"]} == names
    assert {"measure-models", "measure-transfer", "specialize", "total"} <= about["seconds"].keys()
    assert "measure-models 4/4, 4 were there already" in result.stderr
    assert (learned / "serving.safetensors").read_bytes() == before


def test_flags_override_the_recipe_and_quiet_is_quiet(learning, learned):
    assert mm.load_model(learned).recipe == mm.Recipe.fast(
        vectors="random", task_steps=20, metric_steps=20, width=16, seed=3, clusters=2
    )
    words, _ = learning
    result = done(*words, "--quiet")
    assert all(line.startswith("manymetrics: warning: ") for line in result.stderr.splitlines())
    assert "cluster-0" in result.stdout


def test_tasks_held_out_by_name_are_not_learned_from(place, monkeypatch, model):
    learned = []
    monkeypatch.setattr(mm, "learn_metrics", lambda bank, *_, **__: learned.append(bank.names) or model, raising=False)
    words = ["learn", place / "bank", "--out", place / "held", "-q", "--hold-out", "banking-01"]
    done(*words)
    done(*words, "--hold-out", "health")
    assert learned == [("banking-02", "health-01", "health-02"), ("banking-02",)]


def test_predict_answers_as_the_library_does(place, learned):
    texts = ["please cancel my card", "order a new one", "\tlock it\nnow"]
    shots = mm.read_examples(place / "shots.tsv")
    classifier = mm.load_model(learned).adapt(shots.texts, shots.labels)
    rows = [
        line.split("\t")
        for line in done("predict", learned, "--examples", place / "shots.tsv", *texts).stdout.splitlines()
    ]
    assert [label for label, _, _ in rows] == list(classifier.predict(texts))
    best = classifier.predict_proba(texts).max(axis=1)
    assert [float(chance) for _, chance, _ in rows] == pytest.approx(best, abs=1e-4)
    assert [text for _, _, text in rows] == ["please cancel my card", "order a new one", "lock it now"]


def test_predict_reads_a_file_or_stdin_line_by_line(place, handmade, tmp_path):
    lines = "turn it on\r\n\nune lampe allumée, s'il vous plaît\n"
    (tmp_path / "texts.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    words = ("predict", handmade, "--examples", place / "shots.tsv")
    from_file = done(*words, "--input", tmp_path / "texts.txt")
    assert done(*words, input=lines).stdout == done(*words, "--input", "-", input=lines).stdout == from_file.stdout
    assert [line.split("\t")[2] for line in from_file.stdout.splitlines()] == [
        "turn it on",
        "",
        "une lampe allumée, s'il vous plaît",
    ]
    assert done(*words, input="").stdout == ""
    assert len(done(*words, input="again\n" * 1500).stdout.splitlines()) == 1500


def test_predict_writes_one_json_object_a_line(place, handmade):
    result = done("predict", handmade, "--examples", place / "shots.tsv", "--json", "tab\there", "two")
    first, second = map(json.loads, result.stdout.splitlines())
    assert list(first) == ["text", "label", "probability", "scope", "rejected", "reason", "probabilities"]
    assert (first["rejected"], first["reason"]) == (False, None)
    assert 0 < first["scope"] < 1
    assert (first["text"], second["text"]) == ("tab\there", "two")
    assert first["probabilities"][first["label"]] == first["probability"] == max(first["probabilities"].values())
    assert sum(first["probabilities"].values()) == pytest.approx(1)


def test_predict_can_show_every_probability(place, handmade):
    head, row = done("predict", handmade, "--examples", place / "shots.tsv", "--proba", "hi").stdout.splitlines()
    labels = sorted(set(mm.read_examples(place / "shots.tsv").labels))
    assert head.split("\t") == ["label", "probability", *labels, "text"]
    cells = dict(zip(head.split("\t"), row.split("\t"), strict=True))
    assert cells["probability"] == cells[cells["label"]] == max(cells[label] for label in labels)


def test_a_fallback_is_told_and_can_be_forbidden(place, tmp_path, make_model):
    make_model(threshold=2.0).save(tmp_path / "strict")
    words = ("predict", tmp_path / "strict", "--examples", place / "shots.tsv", "hi")
    assert done(*words).stderr.startswith("manymetrics: No cluster fits this task")
    assert done(*words, "--no-fallback").stderr == ""
    adapted = ("adapt", *words[1:4])
    assert "No cluster fits this task" in done(*adapted).stdout
    assert "The weights below are not used." in done(*adapted).stdout
    assert "The metrics below answer together." in done(*adapted, "--no-fallback").stdout
    assert done(*words, "--no-fallback", "--mix", "paper").stdout != ""


def test_evaluating_does_not_load_scikit_learn():
    code = "import sys; import manymetrics as mm; mm.evaluate; print('sklearn' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_adapt_shows_the_weights_from_heavy_to_light(place, handmade):
    words = ("adapt", handmade, "--examples", place / "shots.tsv")
    about = json.loads(done(*words, "--json").stdout)
    weights = [row["weight"] for row in about["weights"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert about["examples"] == sum(about["labels"].values()) == 25
    assert {row["metric"]: row["tasks"] for row in about["weights"]}["cluster-0"] == ["a", "b"]
    assert 0 <= about["left_out_accuracy"] <= 1
    assert (about["format"], about["fallback"]) == (1, None)
    told = done(*words).stdout
    assert told.startswith("25 examples of 5 labels: ")
    assert f"answered from the others: {about['left_out_accuracy']:.0%} right" in told
    assert "cluster-0      learned" in told


def test_of_many_tasks_some_are_named_and_the_others_counted():
    assert name_tasks(["b", "a\n"]) == "b, a\\n"
    told = name_tasks([f"task-{number}" for number in range(1200)])
    assert told.startswith("task-0, task-1, ")
    assert told.endswith(", task-11 and 1,188 more")


def test_adapt_does_not_try_examples_that_are_the_only_ones_of_their_label(handmade, tmp_path):
    (tmp_path / "one.tsv").write_text("a\tx\nb\ty\n")
    assert (
        json.loads(done("adapt", handmade, "--examples", tmp_path / "one.tsv", "--json").stdout)["left_out_accuracy"]
        is None
    )
    assert "not tried" in done("adapt", handmade, "--examples", tmp_path / "one.tsv").stdout


def test_evaluate_scores_the_marked_targets(place, learned):
    found = json.loads(done("evaluate", learned, "--targets", place / "bank", "--json").stdout)
    assert [target["task"] for target in found["targets"]] == NEW
    result = done("evaluate", learned, "--targets", place / "bank")
    assert "warning" not in result.stderr
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == "task labels shots texts accuracy balanced accuracy macro-F1 majority"
    assert max(map(len, lines)) <= 120
    assert "\x1b" not in result.stdout
    mean = found["mean"]["accuracy"]
    assert f"{mean['value']:.1%} [{100 * mean['low']:.1f}, {100 * mean['high']:.1f}]" in lines[-3]
    assert lines[-3].split()[0] == "mean"
    assert lines[-2].split()[0] == "majority"
    assert lines[-1].startswith("expected calibration error ")


def test_evaluate_takes_names_and_warns_of_tasks_it_learned_from(place, learned):
    result = done("evaluate", learned, "--targets", place / "bank", "--target", "health", "--mix", "paper", "--json")
    assert [target["task"] for target in json.loads(result.stdout)["targets"]] == [
        "health-01",
        "health-02",
        "health-new",
    ]
    assert result.stderr == (
        "manymetrics: warning: the model was learned from tasks of the same name (health-01, health-02), "
        "so their scores flatter it.\n"
    )


def test_evaluate_without_roles_takes_every_task_with_tests(place, handmade, tmp_path):
    for name in ("banking-new", "health-new"):
        for part in ("train", "test"):
            file = f"{name}.{part}.tsv"
            (tmp_path / file).write_bytes((place / "bank" / file).read_bytes())
    (tmp_path / "untested.train.tsv").write_text("a\tx\nb\ty\n")
    found = json.loads(done("evaluate", handmade, "--targets", tmp_path, "--json", "--no-fallback").stdout)
    assert [target["task"] for target in found["targets"]] == NEW


def test_inspect_shows_what_is_there_and_what_is_not(tmp_path):
    (tmp_path / "good.train.tsv").write_text("a\tx\na\ty\nb\ty\n")
    (tmp_path / "good.test.tsv").write_text("b\ty\n")
    (tmp_path / "bad.train.tsv").write_text("no tab\n")
    (tmp_path / "[bold]notes.txt").write_text("hello")
    report = json.loads(done("inspect", tmp_path, "--json").stdout)
    assert report == mm.inspect_bank(tmp_path).as_dict()
    lines = done("inspect", tmp_path).stdout.splitlines()
    assert " ".join(lines[2].split()) == "good meta-train 2 3 0 1 67% 1 1 1"
    assert lines[3].startswith("left out: bad: ")
    assert "expected text<TAB>label" in lines[3]
    assert lines[4] == "not a task file: [bold]notes.txt"
    assert lines[5].startswith("The tasks to learn from are too few to say how diverse they are: 1 ")


def test_vectors_are_listed_and_fetched_only_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path))
    assert "wordllama\tto be fetched with: manymetrics vectors get wordllama\n" in done("vectors", "list").stdout
    kept = tmp_path / "vectors" / "wordllama"
    kept.mkdir(parents=True)
    (kept / "checksums.json").write_text("{}")
    assert "wordllama\there\n" in done("vectors", "list").stdout
    known = json.loads(done("vectors", "list", "--json").stdout)
    assert known["vectors"][:2] == [{"name": "random", "here": True}, {"name": "wordllama", "here": True}]
    result = done("vectors", "get", "wordllama")
    assert (result.stdout, result.stderr) == (f"{kept}\n", "")


def test_encoders_are_listed_with_their_cards_and_fetched_only_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path))
    to_fetch, card = "to be fetched with: manymetrics encoders get bge-small", mm.describe_encoder("bge-small")
    assert f"bge-small\t{to_fetch}\t{card}\n" in done("encoders", "list").stdout
    kept = tmp_path / "encoders" / "bge-small"
    kept.mkdir(parents=True)
    (kept / "checksums.json").write_text("{}")
    first = json.loads(done("encoders", "list", "--json").stdout)["encoders"][0]
    assert first == {"name": "bge-small", "here": True, "card": card}
    result = done("encoders", "get", "bge-small")
    assert (result.stdout, result.stderr) == (f"{kept}\n", f"manymetrics: {card}\n")


def test_an_encoder_that_is_fetched_is_announced(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path))
    monkeypatch.setattr(mm, "get_encoder", lambda name, folder=None: tmp_path / name, raising=False)
    assert "manymetrics: Fetching the sentence encoder minilm, once ...\n" in done("encoders", "get", "minilm").stderr
    assert "Fetching" not in done("encoders", "get", "minilm", "--from", tmp_path).stderr


def test_the_demo_can_write_its_bank_and_stop(tmp_path):
    result = done("demo", "--bank-only", tmp_path / "bank", "--seed", 5)
    assert result.stdout == f"{tmp_path / 'bank'}\n"
    assert mm.load_tasks(tmp_path / "bank").fingerprint == mm.sample_bank(5).fingerprint
    named = {entry["name"]: entry.get("family") for entry in json.loads(
        (tmp_path / "bank" / "manifest.json").read_text())["tasks"]}  # fmt: skip
    assert named == {name: mm.planted_family(name) for name in mm.sample_bank(5).names}
    again = run("demo", "--bank-only", tmp_path / "bank")
    assert (again.exit_code, again.stderr) == (
        2,
        f"manymetrics: {tmp_path / 'bank'} is there already and is not empty. Give a new folder.\n",
    )


def test_the_demo_fetches_its_encoder_compares_methods_and_says_what_it_found(monkeypatch, model):
    half, fetched = mm.Estimate(0.5, 0.4, 0.6), []
    row = SimpleNamespace(method="RobustTC", accuracy=half, balanced_accuracy=half, seconds=75.0)
    found = SimpleNamespace(
        rows=(row,),
        gain=mm.Estimate(0.031, -0.002, 0.06),
        agreement=0.876,
        model=model,
        targets=(("t", "cluster-0", 0.7), ("u", "together", 0.6)),
    )
    monkeypatch.setattr(mm, "run_demo", lambda **options: found, raising=False)
    monkeypatch.setattr(mm, "list_encoders", lambda: {"bge-small": False}, raising=False)
    monkeypatch.setattr(mm, "get_encoder", fetched.append, raising=False)
    result = done("demo")
    assert fetched == ["bge-small"]
    assert "manymetrics: Fetching the sentence encoder bge-small, once ...\n" in result.stderr
    assert "RobustTC   50.0% [40.0, 60.0]   50.0% [40.0, 60.0]   1 min 15 s" in result.stdout
    assert "RobustTC over one metric for all: +3.1 points [-0.2, +6.0]\n" in result.stdout
    assert "clusters against planted families: adjusted Rand index 0.88\n" in result.stdout
    heaviest = [line.split() for line in result.stdout.splitlines()[-2:]]
    assert heaviest == [["t", "cluster-0", "a,", "b", "0.70"], ["u", "together", "0.60"]]
    about = json.loads(done("demo", "--json", "--seed", 2).stdout)
    assert (about["format"], about["seed"], about["agreement"]) == (1, 2, 0.876)
    assert about["rows"][0]["accuracy"] == {"value": 0.5, "low": 0.4, "high": 0.6}


def test_explain_tells_why(place, handmade):
    text = (place / "shots.tsv").read_text().split("\t")[0]
    words = ["explain", handmade, "--examples", place / "shots.tsv", text, "0123 !!!"]
    told = done(*words).stdout
    assert "The examples that decided:" in told
    assert "Its similarity is its cosine with the text, averaged over the metrics by\ntheir weights." in told
    assert "learned from 2 tasks: a, b" in told or "No cluster fits" in told
    first, second = json.loads(done(*words, "--json").stdout)["explanations"]
    assert first["text"] == text
    assert first["scope"] > second["scope"]
    assert first["examples"][0]["share"] > 0
    assert run("explain", handmade, "--examples", place / "shots.tsv").exit_code == 2


def test_doctor_looks_the_examples_over(handmade, tmp_path):
    (tmp_path / "odd.tsv").write_text("on\tlamp\noff\tlamp\non\tmusic\nplay\tmusic\nquack\tduck\n")
    words = ["doctor", handmade, "--examples", tmp_path / "odd.tsv"]
    assert "Contradiction: 'on' has the labels lamp, music." in done(*words).stdout
    found = json.loads(done(*words, "--json").stdout)
    assert found["contradictions"] == [["on", ["lamp", "music"]]]
    assert found["tried"] == 4
    (tmp_path / "few.tsv").write_text("on\tlamp\nplay\tmusic\n")
    few = json.loads(done("doctor", handmade, "--examples", tmp_path / "few.tsv", "--json").stdout)
    assert few["accuracy"] is None


def test_evaluate_scores_what_is_taken_for_in_scope(place, handmade):
    words = ["evaluate", handmade, "--targets", place / "bank", "--scope", "--seed", 5]
    found = json.loads(done(*words, "--json").stdout)
    assert (found["seed"], found["classifiers"]) == (5, 2)
    assert {row["task"] for row in found["tasks"]} == set(NEW)
    told = done(*words).stdout
    assert "expected calibration error of the targets" in told
    assert f"{found['targets']['auroc']:.1%}" in told
    assert {row["threshold"] for row in found["tasks"]} == {0.5}
    shared = json.loads(done(*words, "--reject-share", 0.05, "--json").stdout)
    assert len({row["threshold"] for row in shared["tasks"]}) == 2, "each task has a threshold of its own"
    assert json.loads(done(*words, "--reject", 0, "--json").stdout)["all"]["in_scope_kept"] == 1
    told = " ".join(done("evaluate", "--help").stdout.split())
    for column in ("AUROC:", "kept:", "accuracy:", "without rejection:", "out of scope rejected:", "at 0.9:"):
        assert column in told


def test_the_package_run_as_a_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "manymetrics", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"manymetrics, version {mm.__version__}"
