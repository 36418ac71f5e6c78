import json

import pytest

from manymetrics.engine import Engine
from manymetrics.errors import InputError
from manymetrics.recipe import Recipe
from manymetrics.store import Run
from manymetrics.values import Unit

UNITS = [Unit(name, {"k": 1}) for name in "abc"]


class Counted:
    """Work that notes what it did."""

    def __init__(self):
        self.done = []

    def __call__(self, unit, shared):
        self.done.append(unit.name)
        return f"{shared} {unit.name}".encode()


def go(run, work, units=UNITS, stage="stage"):
    with Engine("shared", run=run) as engine:
        return engine(stage, work, units)


def test_finished_units_are_not_done_again(tmp_path):
    work = Counted()
    first = go(Run.open(tmp_path / "run", Recipe()), work)
    again = go(Run.open(tmp_path / "run", Recipe()), work)
    assert work.done == ["a", "b", "c"]
    assert first == again == {name: f"shared {name}".encode() for name in "abc"}


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    run = Run.open(tmp_path, Recipe())
    run.put(Run.key("stage", UNITS[1]), b"kept")
    work, reports = Counted(), []
    with Engine("shared", run=Run.open(tmp_path, Recipe()), report=reports.append) as engine:
        assert engine("stage", work, UNITS)["b"] == b"kept"
    assert work.done == ["a", "c"]
    assert [(report.done, report.kept, report.total) for report in reports] == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: bytes([raw[0] ^ 1]) + raw[1:], lambda raw: b""])
def test_a_damaged_unit_is_done_again(tmp_path, damage):
    run, work = Run.open(tmp_path, Recipe()), Counted()
    go(run, work)
    (path,) = tmp_path.glob(f"units/*/{Run.key('stage', UNITS[1])}")
    path.write_bytes(damage(path.read_bytes()))
    assert go(run, work)["b"] == b"shared b"
    assert work.done == ["a", "b", "c", "b"]
    assert go(run, work)["b"] == b"shared b"
    assert len(work.done) == 4


def test_a_units_key_is_made_of_all_it_depends_on_and_nothing_else():
    same = [Unit("a", {"k": 1, "l": [2]}, (b"x",)), Unit("a", {"l": [2], "k": 1}, (b"x",))]
    others = [
        Unit("b", {"k": 1, "l": [2]}, (b"x",)),
        Unit("a", {"k": 2, "l": [2]}, (b"x",)),
        Unit("a", {"k": 1, "l": [2]}, (b"y",)),
        Unit("a", {"k": 1, "l": [2]}, (b"x", b"x")),
        Unit("a", {"k": 1, "l": [2]}),
    ]
    assert Run.key("s", same[0]) == Run.key("s", same[1])
    assert len({Run.key("s", unit) for unit in [same[0], *others]} | {Run.key("t", same[0])}) == 7


def test_a_finished_run_lists_its_units(tmp_path):
    run = Run.open(tmp_path, Recipe(seed=5))
    go(run, Counted())
    run.finish()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sorted(manifest["units"]) == sorted(Run.key("stage", unit) for unit in UNITS)
    assert Recipe.load(tmp_path / "recipe.toml") == Recipe(seed=5)


def test_the_manifest_is_the_same_whether_the_run_was_stopped_or_not(tmp_path):
    for folder, order in (("straight", [UNITS]), ("stopped", [UNITS[2:], UNITS])):
        for units in order:
            run = Run.open(tmp_path / folder, Recipe())
            go(run, Counted(), units)
        run.finish()
    left, right = ((tmp_path / folder / "manifest.json").read_bytes() for folder in ("straight", "stopped"))
    assert left == right


def test_a_file_is_not_a_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file, and a run is a folder"):
        Run.open(tmp_path / "file", Recipe())
