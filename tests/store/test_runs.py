import json

import pytest

from manymetrics.engine import Engine
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import Run
from manymetrics.values import Job

UNITS = [Job(name, {"k": 1}) for name in "abc"]
RAN, FAILING = [], set()  # names of jobs


@pytest.fixture(autouse=True)
def _reset():
    RAN.clear()
    FAILING.clear()


def run_jobs(job, shared):
    RAN.append(job.name)
    if job.name in FAILING:
        raise ValueError(f"{job.name} fails")
    return f"{shared} {job.name}".encode()


def work_on_parts(job, shared):
    RAN.append(sorted(job.parts))
    return json.dumps({name: len(mark) for name, mark in job.parts.items()}).encode()


def key(job, do=run_jobs):
    return Run.key("stage", job, code_fingerprint(do))


def run_stage(folder, jobs=UNITS, do=run_jobs, *, finish=False, recipe="seed = 0\n"):
    with Run.open(folder, recipe) as run, Engine("shared", run=run) as engine:
        results = engine("stage", do, jobs)
        if finish:
            run.finish()
    return results


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_stopped_run_is_resumed(tmp_path):
    with Run.open(tmp_path) as run:
        run.put("stage", key(UNITS[1]), UNITS[1], b"stored")
    reports = []
    with Run.open(tmp_path) as run, Engine("shared", run=run, report=reports.append) as engine:
        assert engine("stage", run_jobs, UNITS)["b"] == b"stored"
    assert RAN == ["a", "c"]
    assert [(report.done, report.kept, report.total) for report in reports] == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]


def test_a_job_with_a_damaged_result_or_that_of_another_job_is_run_again(tmp_path):
    run_stage(tmp_path)
    path, other = (next(tmp_path.glob(f"jobs/stage/*/{key(job)}")) for job in UNITS[1:])
    raw = path.read_bytes()
    for damaged in (raw[:-1], bytes([raw[0] ^ 1]) + raw[1:], b"", other.read_bytes()):
        RAN.clear()
        path.write_bytes(damaged)
        assert run_stage(tmp_path)["b"] == run_stage(tmp_path)["b"] == b"shared b"
        assert RAN == ["b"]
        assert path.read_bytes() == raw


def test_the_key_of_a_job_depends_on_its_content_stage_and_code_only():
    spec, inputs = {"k": 1, "l": [2]}, (b"x",)
    same = [Job("a", spec, inputs), Job("a", {"l": [2], "k": 1}, inputs), Job("a", spec, inputs, {"part": "hash"})]
    others = [Job("b", spec, inputs), Job("a", {**spec, "k": 2}, inputs)]
    others += [Job("a", spec, other) for other in ((b"y",), (b"x", b"x"), ())]
    assert len({Run.key("s", job, "code") for job in same}) == 1
    found = {Run.key("s", job, "code") for job in [same[0], *others]}
    assert len(found | {Run.key("t", same[0], "code"), Run.key("s", same[0], "other code")}) == 8


def test_a_finished_run_has_a_manifest_and_the_recipe_and_its_jobs_are_not_run_again(tmp_path):
    results = [run_stage(tmp_path, finish=True, recipe="seed = 5\n") for _ in range(2)]
    assert RAN == ["a", "b", "c"]
    assert results == [{name: f"shared {name}".encode() for name in "abc"}] * 2
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(manifest["stage"]) == sorted(key(job) for job in UNITS)
    assert (tmp_path / "recipe.toml").read_text() == "seed = 5\n"


def test_the_manifest_of_a_resumed_run_equals_that_of_an_uninterrupted_one(tmp_path):
    for folder, order in (("straight", [UNITS]), ("stopped", [UNITS[2:], UNITS])):
        for jobs in order:
            run_stage(tmp_path / folder, jobs, finish=True)
    left, right = ((tmp_path / folder / "manifest.json").read_bytes() for folder in ("straight", "stopped"))
    assert left == right


# --- jobs with parts


def row(*parts):
    return Job("row", {"k": 1}, (), {part: f"hash of {part}" for part in parts})


def test_only_the_missing_parts_of_a_job_are_computed(tmp_path):
    run_stage(tmp_path, [row("a", "b")], work_on_parts)
    assert json.loads(run_stage(tmp_path, [row("a", "b", "cc")], work_on_parts)["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert json.loads(run_stage(tmp_path, [row("b")], work_on_parts)["row"]) == {"b": 9}
    assert json.loads(run_stage(tmp_path, [row("a", "b", "cc")], work_on_parts)["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert RAN == [["a", "b"], ["cc"]]
    assert len(list(tmp_path.glob("jobs/stage/*/*"))) == 1


def test_the_manifest_covers_the_requested_parts_only(tmp_path):
    found = {}
    for folder, asked in (("grown", ["ab", "abc", "bc"]), ("straight", ["bc"])):
        for parts in asked:
            run_stage(tmp_path / folder, [row(*parts)], work_on_parts, finish=True)
        found[folder] = (tmp_path / folder / "manifest.json").read_bytes()
    assert found["grown"] == found["straight"]
    run_stage(tmp_path / "straight", [row("b")], work_on_parts, finish=True)
    assert (tmp_path / "straight" / "manifest.json").read_bytes() != found["straight"]


# --- failures


def test_a_job_that_failed_is_run_again_on_resuming(tmp_path):
    FAILING.add("b")
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"stage of 'b' failed: ValueError: b fails .*It is skipped"):
            assert set(run_stage(tmp_path)) == {"a", "c"}
    FAILING.clear()
    assert run_stage(tmp_path)["b"] == b"shared b"
    assert RAN.count("b") == 3


def test_temporary_files_of_a_killed_process_are_removed(tmp_path):
    run_stage(tmp_path)
    temporary = next(tmp_path.glob("jobs/stage/*")) / ".temporary.123.tmp"
    temporary.write_bytes(b"temporary")
    run_stage(tmp_path)
    assert not temporary.exists()


def test_a_failed_write_is_tried_once_more(tmp_path, monkeypatch):
    tries = []

    def fail_once(path, payload):
        tries.append(path)
        if len(tries) == 1:
            raise EnvironmentProblem("the disk failed")

    monkeypatch.setattr("manymetrics.store.runs.SECOND_TRY", 0.0)
    with Run.open(tmp_path) as run:
        monkeypatch.setattr("manymetrics.store.runs.write_atomically", fail_once)
        run.put("stage", "key", UNITS[0], b"payload")
    assert len(tries) == 2


def test_a_folder_that_is_neither_empty_but_for_a_lock_nor_a_run_is_refused_and_unchanged(tmp_path):
    with Run.open(tmp_path / "locked"):
        (tmp_path / "locked" / "run.json").unlink()
    with Run.open(tmp_path / "locked"):
        assert json.loads((tmp_path / "locked" / "run.json").read_text())["kind"] == "run"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file, and a run is a folder"):
        Run.open(tmp_path / "file")
    bank = tmp_path / "bank"
    (bank / "task").mkdir(parents=True)
    (bank / "task" / "train.tsv").write_text("text\tlabel\n")
    (bank / "manifest.json").write_text('{"roles": {"task": "target"}}')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text('{"library": "other", "kind": "run"}')
    for folder in (bank, tmp_path / "other"):
        before = content(folder)
        with pytest.raises(InputError, match=r"is there already and is not a run of this version\. Give a new folder"):
            Run.open(folder, "seed = 0\n")
        assert content(folder) == before
