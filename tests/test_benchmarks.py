"""The benchmarks count right, say what they missed, and run: each theme at a size of a second or two, without peers."""

import importlib
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import manymetrics as mm

PROJECT = mm.__file__.rsplit("/src/", 1)[0]
THEMES = ("encoder", "prediction", "adaptation", "transfer", "completion", "startup")


@pytest.fixture
def bench(monkeypatch):
    """A module of the benchmarks, which are not installed with the package."""
    monkeypatch.syspath_prepend(PROJECT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def harness(bench):
    return bench("harness")


@pytest.fixture
def page(bench):
    return bench("page")


def test_the_two_sides_alternate_and_the_warm_up_is_not_counted(harness):
    order = []

    def judge(ours, peer):
        return ours < peer, f"{ours} against {peer}"

    def side(name):
        return lambda: order.append(name) or len(order)

    assert harness.Ratio.of((1.0, 2.0, 4.0), (10.0, 40.0, 20.0)) == harness.Ratio(median=10.0, low=5.0, high=20.0)
    assert harness.seconds([0.010, 0.011, 0.030]) == "11 ms [10 ms, 30 ms]"
    row = harness.race("what", side("ours"), side("peer"), harness.Options(rounds=2), write=len, judge=judge)
    assert order == ["ours", "peer"] * 3
    assert (row.ours, row.peer, row.sound, row.note) == (2, 2, True, "5 against 6")
    alone = harness.race("what", side("ours"), None, harness.Options(rounds=2))
    assert (alone.peer, alone.ratio) == ("peer not installed", None)


@pytest.mark.parametrize(
    ("median", "target", "others", "verdict"),
    [
        (20.0, 20, {}, "met"),
        (19.9, 20, {}, "MISSED"),
        (30.0, 20, {"sound": False}, "MISSED"),
        (30.0, 20, {"value": 2.0}, "MISSED"),
        (3.0, None, {}, ""),
        (None, 20, {"peer": "peer not installed"}, "not measured"),
    ],
)
def test_a_row_says_whether_its_target_is_met(harness, median, target, others, verdict):
    ratio = median and harness.Ratio(median, 1.0, 30.0)
    row = harness.Row("what", "1 s", ratio=ratio, target=target and harness.Target(target, "×"), **others)
    assert row.verdict == verdict


def results(harness, page, *, what="torch", verdict_ratio=10.0):
    row = harness.Row(
        f"texts | {what}", "1 s", "20 s", harness.Ratio(verdict_ratio, 9.0, 31.0), harness.Target(20, "×"), note="once"
    )
    when = datetime(2024, 2, 3, 4, 5, tzinfo=UTC)
    return page.record([row], harness.Options(rounds=7, seed=3), command="python -m benchmarks x", now=when)


def test_the_page_says_plainly_what_was_missed(harness, page):
    text = page.write_page({"encoder": results(harness, page)})
    assert "0 of 1 targets met." in text
    assert "- encoder: strings to embeddings: texts | torch" in text
    assert "| texts \\| torch [1] | 1 s | 20 s | 10 × [9, 31] | ≥ 20 × | **MISSED** |" in text
    assert "[1] once." in text
    assert "| Encoder: strings to embeddings: texts \\| torch | ≥ 20 × | 10 × [9, 31] | **MISSED** |" in text
    assert "2024-02-03, `python -m benchmarks x`, seed 3, 7 rounds" in text
    assert page.STALE in text
    digest = page.sources_digest(["partition"])
    fresh = page.write_page({"encoder": {**results(harness, page), "sources": ["partition"], "digest": digest}})
    assert page.STALE not in fresh


def test_a_theme_that_was_not_run_keeps_its_results(harness, page, tmp_path):
    file = tmp_path / "build" / "bench.json"
    page.keep(file, {"encoder": results(harness, page, what="old"), "startup": results(harness, page)}, quick=False)
    merged = page.keep(file, {"encoder": results(harness, page, what="new")}, quick=False)
    assert [theme["rows"][0]["what"] for theme in merged.values()] == ["texts | new", "texts | torch"]
    assert json.loads(file.read_text(encoding="utf-8"))["themes"] == merged
    assert list(page.keep(file, {"startup": results(harness, page)}, quick=True)) == ["startup"]


def test_the_page_of_scale_is_reckoned_from_sizes_that_are_measured_once(bench, tmp_path, monkeypatch):
    scale, measured = bench("scale"), []

    def measure(run_jobs, size, *seed):
        measured.append(size)
        row = {"tasks": size, "pairs": {100: 4950}.get(size, 40_000), "share": 0.08, "kept": 0.3, "alike": 0.06,
               "clusters": 14, "rand": 0.98, "seconds": dict.fromkeys(scale.STAGES, size / 2), "run_files": 2 * size,
               "run_mib": 1.1 * size, "model_mib": 1.0 * size, "observed": 7, "complete_seconds": 1.0,
               "adjusted_rand": 1.0}  # fmt: skip
        return SimpleNamespace(result=row, peak=100.0)

    monkeypatch.setattr(scale, "in_fresh_process", measure)
    places = [f"--out={tmp_path / 'scale.json'}", f"--page={tmp_path / 'scale.md'}"]
    assert "Nothing was measured yet" in CliRunner().invoke(scale.main, places).output
    for words in (["100"], ["100", "1000"], ["100", "--again"]):
        result = CliRunner().invoke(scale.main, [*words, *places])
        assert result.exit_code == 0, result.output
    assert measured == [100, *scale.COMPLETED, 1000, 100]
    text = (tmp_path / "scale.md").read_text(encoding="utf-8")
    assert "| measure-models | n^1.0 | 500.0 |" in text
    assert "one job for each task, 0.50 s: 14 core hours" in text
    assert "takes 6.2 ms for each cell" in text
    assert "| 3,000 | 38 |" in text, "all of it, and minutes on two cores: half of three stages and the other three"
    assert "{" not in text
    assert scale.exponent([10, 20], [0.1, 0.4]) is None, "too short to tell"


def test_a_result_is_stale_when_the_code_that_it_measures_has_changed(bench, tmp_path):
    page = bench("page")
    for name in ("encode/one.py", "weigh/two.py", "learn.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# {name}", encoding="utf-8")
    sources = ["encode", "learn.py"]
    result = {"sources": sources, "digest": page.sources_digest(sources, tmp_path)}
    (tmp_path / "weigh" / "two.py").write_text("other", encoding="utf-8")
    assert not page.is_stale(result, tmp_path), "not among its sources"
    (tmp_path / "encode" / "new.py").write_text("", encoding="utf-8")
    assert page.is_stale(result, tmp_path)
    assert page.is_stale({"rows": []}, tmp_path), "does not say what it measured"


def test_a_completion_is_judged_by_the_objective_of_the_paper(bench):
    completion = bench("completion")
    truth, pairs = completion.planted(20, clusters=5, share=0.4, wrong=(0.0, 0.0))
    same = (truth[:, None] == truth).astype(float)
    assert completion.objective(same, pairs, 0.3) == pytest.approx(20.0)
    assert completion.objective(0 * same, pairs, 0.3) == pytest.approx(0.3 * pairs.similar.sum())
    found = completion.complete(40)()
    assert found["adjusted_rand"] <= 1
    assert found["observed"] == completion.complete(40)()["observed"]


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_runs_at_its_quick_size_without_peers(bench, harness, page, theme):
    assert tuple(page.TITLES) == THEMES
    rows = bench(theme).run(harness.Options(rounds=1, quick=True, peers=False))
    assert rows
    assert all(row.what and row.ours for row in rows)
    assert page.write_page(
        {theme: page.record(rows, harness.Options(), command="x", now=datetime.now(UTC))}, quick=True
    )


def test_the_time_of_every_stage_of_a_learning_is_counted(bench, tiny_bank):
    clock = bench("scale").Clock()
    recipe = mm.Recipe.fast(vectors="random", own_steps=5, projection_steps=20)
    mm.learn_metrics(tiny_bank, recipe, report=clock)
    assert min(clock.spent.values()) >= 0
    assert min(clock.spent["measure-models"], clock.spent["specialize"]) > 0
