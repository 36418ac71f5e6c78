"""The experiments end to end on a bank of a few tasks, and the protocol: targets' test labels reach nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from experiments import plan, reproduction
from manymetrics.errors import InputError
from manymetrics.model import load_origin
from manymetrics.values import Examples, Task, TaskBank

pytest.importorskip("torch")

GOOD, BAD = ["sweet", "crisp", "fresh", "ripe"], ["stale", "burnt", "bland", "soggy"]
FAST, SLOW = ["quick", "swift", "rapid", "brisk"], ["slow", "late", "tardy", "idle"]
FILLER = ["the", "a", "it", "was", "so", "very", "then", "here"]
ESTIMATES = ("accuracy", "balanced_accuracy", "macro_f1")


def review_task(name, words, *, sizes, seed):
    """Reviews whose one telling word decides between two labels that all tasks share."""
    rng = np.random.default_rng(seed)

    def examples(good, bad):
        pairs = [("good", words[0])] * good + [("bad", words[1])] * bad
        texts = tuple(" ".join(rng.permutation([*rng.choice(FILLER, 3), rng.choice(those)])) for _, those in pairs)
        return Examples(texts, tuple(label for label, _ in pairs))

    return Task(name, *(examples(*size) for size in sizes))


@pytest.fixture(scope="module")
def reviews():
    """Six past tasks of two families and two targets, whose test texts are three quarters good."""
    whole, few = ((12, 12), (5, 5), (0, 0)), ((3, 3), (0, 0), (15, 5))
    tasks = [review_task(f"food.{at}", (GOOD, BAD), sizes=whole, seed=at) for at in range(3)]
    tasks += [review_task(f"post.{at}", (FAST, SLOW), sizes=whole, seed=10 + at) for at in range(3)]
    tasks += [review_task("food.new", (GOOD, BAD), sizes=few, seed=20)]
    tasks += [review_task("post.new", (FAST, SLOW), sizes=few, seed=21)]
    return TaskBank(tuple(tasks), {"food.new": "target", "post.new": "target"})


@pytest.fixture(scope="module")
def reproduce(network_recipe, with_networks, vectors, tmp_path_factory):
    def run(bank, *, out=None, experiment="amazon", **options):
        out = out or tmp_path_factory.mktemp("experiment") / "out"
        options = {"recipe": with_networks(network_recipe, task_steps=10, metric_steps=10), **options}
        return out, reproduction.reproduce(experiment, bank, out, vectors=vectors, quick=True, **options)

    return run


@pytest.fixture(scope="module")
def amazon(reviews, reproduce):
    return reproduce(reviews)


def model_files(out):
    return {path.name: path.read_bytes() for path in (out / "learned").iterdir()}


def answers(out, *, of_majority=False):
    found = {path.name: json.loads(path.read_text("utf-8"))["targets"] for path in (out / "answers").iterdir()}
    return {
        name: {task: one["answers"] for task, one in targets.items()}
        for name, targets in found.items()
        if name.startswith("majority") == of_majority
    }


def test_every_row_of_the_paper_and_of_today_is_there(amazon):
    _, results = amazon
    rows = {row["method"]: row for row in results["rows"]}
    assert list(rows) == [row.method for row in plan.ROWS]
    assert all(row["applies"] for row in rows.values())
    assert rows["RobustTC-FSL"]["paper"] == 0.8312
    assert rows["RobustTC-FSL"]["gain"] is None
    assert [rows["Majority class"][score]["value"] for score in ESTIMATES[:2]] == [0.75, 0.5]
    assert rows["TF-IDF + LR over all tasks"]["accuracy"]["value"] > 0.9, "the past tasks know every telling word"
    for row in (row for row in [*rows.values(), *results["ablations"]] if row["applies"]):
        for score in ESTIMATES:
            assert 0 <= row[score]["low"] <= row[score]["value"] <= row[score]["high"] <= 1, row["method"]
        draws = plan.QUICK_RANDOM_DRAWS if row["method"] == plan.RANDOM_ABLATION else 1
        assert [one["seed"] for one in row["per_seed"]] == list(range(draws))


def test_numbers_are_those_of_the_answers(amazon):
    out, results = amazon
    rows = {row["method"]: row for row in results["rows"]}
    kept = json.loads((out / "answers" / "robusttc-fsl-seed-0.json").read_text("utf-8"))
    shares = [np.mean(np.array(one["answers"]) == one["truth"]) for one in kept["targets"].values()]
    assert rows["RobustTC-FSL"]["accuracy"]["value"] == pytest.approx(np.mean(shares))
    assert (
        kept["command"] == results["command"] == "python -m experiments reproduce amazon --data BANK --quick --out OUT"
    )
    assert (kept["data"], kept["version"], kept["seed"]) == (results["data"], mm.__version__, 0)
    assert json.loads((out / "results.json").read_text("utf-8")) == results
    origin = load_origin(out / "learned")
    assert [cluster["tasks"] for cluster in results["clusters"]] == [list(group) for group in origin.clusters]
    by_target = {target["task"]: target["accuracy"]["RobustTC-FSL"] for target in results["targets"]}
    assert by_target == pytest.approx(dict(zip(kept["targets"], shares, strict=True)))


def test_the_figure_and_the_ablations_are_there(amazon):
    _, results = amazon
    points = [(point["method"], point["clusters"]) for point in results["by_clusters"]]
    assert points == [
        (method, count) for method in ("RobustTC-FSL", "ASAP-style", "RobustTC-FSL, paper mix") for count in (1, 2)
    ]
    assert results["by_clusters"][0]["over_one"]["value"] == 0
    names = [row["method"] for row in results["ablations"]]
    assert names == [
        plan.WHOLE, *plan.TAKEN_OUT, plan.RAW_ABLATION, *plan.PARTITION_ABLATIONS, plan.RANDOM_ABLATION,
    ]  # fmt: skip


def test_the_same_call_again_computes_nothing(amazon, reviews, reproduce):
    out, before = amazon
    events = []
    _, after = reproduce(reviews, out=out, report=events.append)
    assert events
    kept = [event for event in events if not event.stage.startswith(("partition", "weigh"))]
    assert all(event.kept == event.total for event in kept)
    assert {**after, "seconds": 0} == {**before, "seconds": 0}


def test_an_interrupted_experiment_goes_on(amazon, reviews, reproduce, tmp_path):
    def stop(progress):
        if progress.stage.startswith("Fine-tuned"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(reviews, out=tmp_path / "out", report=stop)
    assert not (tmp_path / "out" / "results.json").exists()
    events = []
    _, results = reproduce(reviews, out=tmp_path / "out", report=events.append)
    first = next(event for event in events if event.stage == "measure-models")
    assert first.kept == first.total
    for row, same in zip(results["rows"], amazon[1]["rows"], strict=True):
        assert row == same


def with_other_tests(bank, change):
    return TaskBank(tuple(replace(task, test=change(task.test)) for task in bank), bank.roles)


def test_test_labels_of_targets_reach_neither_model_nor_answers(amazon, reviews, reproduce):
    """The protocol: with every test label of the targets changed, every byte and every answer stays."""
    out, results = amazon
    other = {"good": "bad", "bad": "good"}
    changed = with_other_tests(reviews, lambda test: Examples(test.texts, tuple(other[label] for label in test.labels)))
    elsewhere, found = reproduce(changed)
    assert model_files(elsewhere) == model_files(out), "clusters, metrics, matrices: all that is learned or chosen"
    assert answers(elsewhere) == answers(out)
    assert answers(elsewhere, of_majority=True) != answers(out, of_majority=True), "or the labels were not changed"
    assert found["data"] != results["data"]
    for target, same in zip(found["targets"], results["targets"], strict=True):
        assert (target["weights"], target["fallback"]) == (same["weights"], same["fallback"])


def test_test_texts_of_targets_reach_no_model(amazon, reviews, reproduce):
    changed = with_other_tests(reviews, lambda test: Examples(("something else",) * len(test), test.labels))
    elsewhere, _ = reproduce(changed)
    assert model_files(elsewhere) == model_files(amazon[0])


def test_what_does_not_apply_says_so(reproduce, make_bank):
    bank = make_bank(3)
    tasks = TaskBank(bank.tasks, {"colour-2": "target", "animal-2": "target"})
    _, results = reproduce(tasks, experiment="intent", seeds=2)
    rows = {row["method"]: row for row in [*results["rows"], *results["ablations"]]}
    assert rows[plan.ASAP]["note"] == "does not apply: the tasks do not all choose between the same two labels"
    pooled = rows["TF-IDF + LR over all tasks"]
    assert (pooled["note"], pooled["accuracy"]) == ("does not apply: the tasks do not share their labels", None)
    assert "Without the classifier over shared labels" not in rows
    assert rows["Adaptive RobustTC-FSL"]["paper"] == 0.4297
    assert [one["seed"] for one in rows["RobustTC-FSL"]["per_seed"]] == [0, 1]
    seeds = rows["RobustTC-FSL"]["over_seeds"]["accuracy"]
    assert seeds["low"] <= seeds["value"] <= seeds["high"]


def test_what_cannot_be_run_is_refused_at_once(reviews, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds no experiment. Give a new folder"):
        reproduction.reproduce("amazon", reviews, tmp_path)
    with pytest.raises(InputError, match=r"The paper's rows are convolution networks. Take a recipe of such"):
        reproduction.reproduce("amazon", reviews, tmp_path / "out", recipe=mm.Recipe.fast())
    with pytest.raises(InputError, match="No task of this bank has the role 'target'"):
        reproduction.reproduce("amazon", TaskBank(reviews.tasks), tmp_path / "out")
    assert not (tmp_path / "out").exists()
