"""The documents cannot rot: their code runs, what they name exists, and what exists is named."""

import importlib
import inspect
import re
import shlex
import tomllib
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import click
import pytest

import manymetrics as mm
from manymetrics.collect.formats import MAX_LABELS
from manymetrics.encode.tokens import LONGEST
from manymetrics.weigh.examples import MOST_LABELS

HOUSE = Path(mm.__file__).parent
PROJECT = HOUSE.parents[1]
README, MAP, PAPER = PROJECT / "README.md", PROJECT / "docs" / "map.md", PROJECT / "docs" / "paper-to-code.md"
DECISIONS = sorted((PROJECT / "docs" / "decisions").glob("*.md"))
FORMATS = PROJECT / "docs" / "formats.md"
PAGES = [
    README,
    MAP,
    PAPER,
    FORMATS,
    PROJECT / "CHANGELOG.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "docs" / "results.md",
    *DECISIONS,
]
SMALL = {"vectors": "random", "width": 16, "task_steps": 15, "metric_steps": 15}  # instead of minutes, seconds

page_of = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def quoted(page: Path) -> list[str]:
    """What stands between single backticks, outside of code blocks."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", prose)


def places() -> set[str]:
    return {path.stem for path in HOUSE.iterdir() if not path.name.startswith(("_", "."))}


def dotted(page: Path) -> list[str]:
    """Names given from the package downwards, such as `partition.pairs`."""
    whole = [name.removesuffix("()") for name in quoted(page) if re.fullmatch(r"[a-z]\w*(\.\w+)+(\(\))?", name)]
    return [name for name in whole if name.split(".")[0] in places() and not name.endswith(".py")]


def exists(name: str) -> bool:
    """Whether a name can be followed from the package to a module, a function, a class, or a part of a class."""
    parts, found = name.split("."), importlib.import_module("manymetrics")
    for part in parts:
        if inspect.ismodule(found) and (HOUSE.parent / Path(*found.__name__.split("."))).is_dir():
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
                continue
            except ModuleNotFoundError:
                pass
        if is_dataclass(found) and part in found.__dataclass_fields__:
            return part == parts[-1]
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, its head left out."""
    _, _, after = page.read_text(encoding="utf-8").partition(f"## {heading}\n")
    assert after, f"{page.name} has no section {heading!r}"
    lines = [line for line in after.split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture
def small_world(tmp_path, monkeypatch):
    """A folder with a small bank in it, and recipes that take seconds."""
    whole = mm.sample_bank(0, tasks=16)
    past, new = whole.split_off()
    kept = [*past.names, *new.names[:2]]
    mm.write_bank(whole.only(kept), tmp_path / "bank")
    full = mm.Recipe
    monkeypatch.setitem(vars(mm), "Recipe", lambda **knobs: full(**{**SMALL, **knobs}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_blocks(page: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), names)  # noqa: S102 - our own pages
    return names


def test_the_code_of_the_readme_runs(small_world):
    names = run_blocks(README)
    assert isinstance(names["model"], mm.MetricModel)
    assert isinstance(names["classifier"], mm.FewShotClassifier)
    assert len(names["model"].clusters) == 5
    assert (small_world / "model" / "config.json").is_file()


def test_the_code_of_the_map_runs(small_world):
    names = run_blocks(MAP)
    assert len(names["metrics"]) == len(names["clusters"]) == 5


def test_the_code_of_the_page_on_formats_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.csv").write_text("body,queue\nmy money back,refund\nwhere is it,track\n")
    run_blocks(FORMATS)
    assert mm.load_tasks("bank", strict=True).names == ("tickets",)


def test_the_readme_comes_to_the_point():
    first = blocks(README, "python")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 20
    assert README.read_text(encoding="utf-8").index(first) < 2000


@page_of
def test_every_name_in_a_page_exists(page):
    missing = [name for name in dotted(page) if not exists(name)]
    assert not missing


def test_names_that_do_not_exist_would_be_found():
    assert exists("partition.pairs.keep_reliable_pairs")
    assert exists("values.TransferMatrix.scores")
    assert exists("values.TaskBank.split_off")
    assert not exists("partition.pairs.keep_all_pairs")
    assert not exists("values.TransferMatrix.score_of")
    assert not exists("partition.nowhere")


@pytest.mark.parametrize(
    "heading",
    [
        "Symbols",
        "Equations",
        "Algorithm 2, the clustering of tasks",
        "Algorithm 1, few-shot learning with clusters",
        "The main table",
    ],
)
def test_every_row_that_ties_paper_to_code_names_code(heading):
    known = set(dotted(PAPER))
    rows = table_rows(PAPER, heading)
    assert rows
    for row in rows:
        last = re.findall(r"`([^`]+)`", row[-1])
        assert known & set(last), row


def test_every_difference_from_the_paper_names_code():
    _, _, after = PAPER.read_text(encoding="utf-8").partition("## Where we differ, and why\n")
    paragraphs = [paragraph for paragraph in after.split("\n\n") if paragraph.strip()]
    assert paragraphs
    for paragraph in paragraphs:
        assert any(f"`{name}`" in paragraph for name in dotted(PAPER)), paragraph


def test_equations_named_in_the_code_are_those_of_the_page():
    label = re.compile(r"eqn:\w+")
    in_code = {found for path in HOUSE.rglob("*.py") for found in label.findall(path.read_text(encoding="utf-8"))}
    in_page = {found for row in table_rows(PAPER, "Equations") for found in label.findall(row[0])}
    assert in_code == in_page


def test_every_public_name_is_in_a_page():
    told = {word for page in (README, MAP, PAPER) for name in quoted(page) for word in re.findall(r"\w+", name)}
    missing = set(mm.__all__) - told
    assert not missing


def test_the_map_shows_every_module():
    told = {word for name in quoted(MAP) for word in re.findall(r"\w+", name)}
    modules = {path.stem for path in HOUSE.rglob("*.py")} - {"__init__", "__main__"}
    missing = modules - told
    assert not missing


@page_of
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_decisions_are_numbered_and_have_their_four_parts():
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for page in DECISIONS:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. ")
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        assert parts == ["Question", "Choice", "Reason", "Price"], page.name


def test_the_readme_gives_a_reason_for_every_dependency():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [package for packages in project["optional-dependencies"].values() for package in packages]
    needed = {re.split(r"[<>=!~ \[]", package)[0] for package in [*project["dependencies"], *extras]}
    rows = table_rows(README, "Dependencies")
    assert {row[0].split("`")[1] for row in rows} == needed
    assert all(row[-1] for row in rows)


def test_the_readme_tells_the_exit_codes_and_the_limits():
    errors = [getattr(mm, name) for name in mm._HOMES["errors"]]
    codes = {error.exit_code for error in errors if issubclass(error, mm.ManyMetricsError)}
    assert {0, *codes} <= {int(row[0].strip("`")) for row in table_rows(README, "Exit codes")}
    limits = README.read_text(encoding="utf-8").split("## Limits\n")[1].split("\n## ")[0]
    assert f"first {LONGEST} tokens" in limits
    assert MAX_LABELS == MOST_LABELS
    assert f"{MOST_LABELS:,} labels" in limits


def command_lines() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if re.match(r"\$ (.*\| *)?manymetrics ", line)]


@pytest.mark.parametrize("line", command_lines())
def test_commands_in_the_pages_are_commands_of_the_program(line):
    from manymetrics import cli

    words = shlex.split(line, comments=True)
    words = words[words.index("manymetrics") + 1 :]
    command: click.Command = next(
        value for value in vars(cli).values() if isinstance(value, click.Group) and "learn" in value.commands
    )
    settings = command.context_settings  # what a command keeps of its first context must be what the program gives it
    while isinstance(command, click.Group):
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    with click.Context(command, resilient_parsing=True, **settings) as context:
        command.parse_args(context, words)
    options = {name for parameter in command.params for name in parameter.opts}
    assert not {word.split("=")[0] for word in words if word.startswith("--")} - options
