import json

import pytest

from manymetrics.engine import Engine
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import Run
from manymetrics.values import Unit

UNITS = [Unit(name, {"k": 1}) for name in "abc"]
DONE, ILL = [], set()  # what was worked on, and what cannot be


@pytest.fixture(autouse=True)
def _nothing_done_yet():
    DONE.clear()
    ILL.clear()


def work(unit, shared):
    DONE.append(unit.name)
    if unit.name in ILL:
        raise ValueError(f"{unit.name} is ill")
    return f"{shared} {unit.name}".encode()


def work_on_parts(unit, shared):
    DONE.append(sorted(unit.parts))
    return json.dumps({name: len(mark) for name, mark in unit.parts.items()}).encode()


def key(unit, do=work):
    return Run.key("stage", unit, code_fingerprint(do))


def go(folder, units=UNITS, do=work, *, finish=False, recipe="seed = 0\n"):
    with Run.open(folder, recipe) as run, Engine("shared", run=run) as engine:
        results = engine("stage", do, units)
        if finish:
            run.finish()
    return results


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_finished_units_are_not_done_again(tmp_path):
    first = go(tmp_path / "run")
    again = go(tmp_path / "run")
    assert DONE == ["a", "b", "c"]
    assert first == again == {name: f"shared {name}".encode() for name in "abc"}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    with Run.open(tmp_path) as run:
        run.put("stage", key(UNITS[1]), UNITS[1], b"kept")
    reports = []
    with Run.open(tmp_path) as run, Engine("shared", run=run, report=reports.append) as engine:
        assert engine("stage", work, UNITS)["b"] == b"kept"
    assert DONE == ["a", "c"]
    assert [(report.done, report.kept, report.total) for report in reports] == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]


def test_a_damaged_unit_is_done_again(tmp_path):
    go(tmp_path)
    (path,) = tmp_path.glob(f"units/stage/*/{key(UNITS[1])}")
    raw = path.read_bytes()
    for damaged in (raw[:-1], bytes([raw[0] ^ 1]) + raw[1:], b""):
        DONE.clear()
        path.write_bytes(damaged)
        assert go(tmp_path)["b"] == go(tmp_path)["b"] == b"shared b"
        assert DONE == ["b"]


def test_two_whole_units_that_were_exchanged_are_done_again(tmp_path):
    go(tmp_path)
    first, second = (next(tmp_path.glob(f"units/stage/*/{key(unit)}")) for unit in UNITS[:2])
    ours, theirs = first.read_bytes(), second.read_bytes()
    first.write_bytes(theirs)
    second.write_bytes(ours)
    assert go(tmp_path) == {name: f"shared {name}".encode() for name in "abc"}
    assert DONE == ["a", "b", "c", "a", "b"]
    assert (first.read_bytes(), second.read_bytes()) == (ours, theirs)


def test_a_units_key_is_made_of_all_it_depends_on_and_nothing_else():
    same = [
        Unit("a", {"k": 1, "l": [2]}, (b"x",)),
        Unit("a", {"l": [2], "k": 1}, (b"x",)),
        Unit("a", {"k": 1, "l": [2]}, (b"x",), {"part": "hash"}),
    ]
    others = [
        Unit("b", {"k": 1, "l": [2]}, (b"x",)),
        Unit("a", {"k": 2, "l": [2]}, (b"x",)),
        Unit("a", {"k": 1, "l": [2]}, (b"y",)),
        Unit("a", {"k": 1, "l": [2]}, (b"x", b"x")),
        Unit("a", {"k": 1, "l": [2]}),
    ]
    assert len({Run.key("s", unit, "code") for unit in same}) == 1
    found = {Run.key("s", unit, "code") for unit in [same[0], *others]}
    assert len(found | {Run.key("t", same[0], "code"), Run.key("s", same[0], "other code")}) == 8


def test_a_finished_run_lists_its_units_and_the_recipe(tmp_path):
    go(tmp_path, finish=True, recipe="seed = 5\n")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(manifest["stage"]) == sorted(key(unit) for unit in UNITS)
    assert (tmp_path / "recipe.toml").read_text() == "seed = 5\n"
    assert len(list((tmp_path / "manifests").iterdir())) == 1


def test_the_manifest_is_the_same_whether_the_run_was_stopped_or_not(tmp_path):
    for folder, order in (("straight", [UNITS]), ("stopped", [UNITS[2:], UNITS])):
        for units in order:
            go(tmp_path / folder, units, finish=True)
    left, right = ((tmp_path / folder / "manifest.json").read_bytes() for folder in ("straight", "stopped"))
    assert left == right


# --- units with parts


def row(*parts):
    return Unit("row", {"k": 1}, (), {part: f"hash of {part}" for part in parts})


def test_of_a_unit_with_parts_only_the_missing_ones_are_done(tmp_path):
    go(tmp_path, [row("a", "b")], work_on_parts)
    assert json.loads(go(tmp_path, [row("a", "b", "cc")], work_on_parts)["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert json.loads(go(tmp_path, [row("b")], work_on_parts)["row"]) == {"b": 9}
    assert json.loads(go(tmp_path, [row("a", "b", "cc")], work_on_parts)["row"]) == {"a": 9, "b": 9, "cc": 10}
    assert DONE == [["a", "b"], ["cc"]]
    assert len(list(tmp_path.glob("units/stage/*/*"))) == 1


def test_the_manifest_knows_the_parts_asked_for_and_no_others(tmp_path):
    found = {}
    for folder, asked in (("grown", ["ab", "abc", "bc"]), ("straight", ["bc"])):
        for parts in asked:
            go(tmp_path / folder, [row(*parts)], work_on_parts, finish=True)
        found[folder] = (tmp_path / folder / "manifest.json").read_bytes()
    assert found["grown"] == found["straight"]
    go(tmp_path / "straight", [row("b")], work_on_parts, finish=True)
    assert (tmp_path / "straight" / "manifest.json").read_bytes() != found["straight"]


# --- what goes wrong


def test_a_failure_is_kept_apart_and_tried_again_on_the_next_start(tmp_path):
    ILL.add("b")
    for attempt in (1, 2):
        with pytest.warns(UserWarning, match=r"stage of 'b' failed: ValueError: b is ill .*The others go on"):
            assert set(go(tmp_path)) == {"a", "c"}
        (path,) = (tmp_path / "failed").iterdir()
        told = json.loads(path.read_text())
        assert (path.stem, told["stage"], told["unit"]) == (key(UNITS[1]), "stage", "b")
        assert told["error"].startswith("ValueError: b is ill")
        assert told["attempts"] == attempt
    ILL.clear()
    assert go(tmp_path)["b"] == b"shared b"
    assert list((tmp_path / "failed").iterdir()) == []
    assert DONE.count("b") == 3


def test_what_a_killed_writer_left_half_written_is_swept_away(tmp_path):
    go(tmp_path)
    half = next(tmp_path.glob("units/stage/*")) / ".half.123.tmp"
    half.write_bytes(b"half")
    go(tmp_path)
    assert not half.exists()


def test_a_write_that_fails_once_is_tried_again(tmp_path, monkeypatch):
    tries = []

    def fail_once(path, payload):
        tries.append(path)
        if len(tries) == 1:
            raise EnvironmentProblem("the disk stumbled")

    monkeypatch.setattr("manymetrics.store.runs.SECOND_TRY", 0.0)
    with Run.open(tmp_path) as run:
        monkeypatch.setattr("manymetrics.store.runs.write_atomically", fail_once)
        run.put("stage", "key", UNITS[0], b"payload")
    assert len(tries) == 2


def test_what_is_not_a_run_is_refused_and_unchanged(tmp_path):
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


def test_a_folder_that_is_empty_or_was_only_locked_becomes_a_run(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / ".lock").write_text("")
    for name in ("empty", "locked"):
        with Run.open(tmp_path / name):
            assert json.loads((tmp_path / name / "run.json").read_text())["kind"] == "run"
        with Run.open(tmp_path / name):
            pass
