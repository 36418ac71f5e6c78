"""The documents cannot rot: their code runs, what they name exists, and what exists is named."""

import importlib
import inspect
import pydoc
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import manymetrics as mm
import readme_blocks
from manymetrics.classifier.examples import MAX_LABELS
from manymetrics.collect.readers import records
from manymetrics.encode.tokens import MAX_TOKENS
from tiny_sentence import write_folder

PACKAGE = Path(mm.__file__).parent
PROJECT = PACKAGE.parents[1]
DOCS = PROJECT / "docs"
README, MAP, PAPER, REFERENCE, FORMATS = (
    PROJECT / "README.md",
    *(DOCS / f"{name}.md" for name in ("map", "paper-to-code", "reference", "formats")),
)
DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))
GUIDES = {path.stem: path for path in readme_blocks.PAGES if path != README}
TELLING = [README, *GUIDES.values(), MAP, PAPER, REFERENCE, DOCS / "serving.md", DOCS / "experiments.md"]
PAGES = [*TELLING, FORMATS, *DECISIONS, DOCS / "results.md", DOCS / "accuracy.md",
         PROJECT / "CONTRIBUTING.md", PROJECT / "CHANGELOG.md"]  # fmt: skip
README_LINES = 125  # three screens
SMALL = {"own_steps": 5, "projection_steps": 50}
EXPERIMENTS = "experiments"  # beside the package, importable from the root of the repository


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


def quoted(page: Path) -> list[str]:
    """What stands between single backticks, outside of code blocks."""
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", prose)


def words_of(*pages: Path) -> set[str]:
    return {word for page in pages for name in quoted(page) for word in re.findall(r"\w+", name)}


def dotted(page: Path) -> list[str]:
    """Names given from the package downwards, such as `partition.pairs`, or `experiments.plan`."""
    places = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith(("_", "."))} | {EXPERIMENTS}
    names = [name.removesuffix("()") for name in quoted(page) if re.fullmatch(r"[a-z]\w*(\.\w+)+(\(\))?", name)]
    files = (".py", ".json", ".safetensors")
    return [name for name in names if name.split(".")[0] in places and not name.endswith(files)]


def exists(name: str) -> bool:
    """Whether a name can be followed from the package to a module, a function, a class, or a part of a class."""
    path = name if name.startswith(f"{EXPERIMENTS}.") else f"manymetrics.{name}"
    owner, _, part = path.rpartition(".")
    return pydoc.locate(path) is not None or part in getattr(pydoc.locate(owner), "__dataclass_fields__", ())


def section_of(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of the same or of a higher level."""
    level = len(re.match("#+", heading)[0])
    _, _, after = text_of(page).partition(f"\n{heading}\n")
    assert after, f"{page.name} has no section {heading!r}"
    return re.split(rf"^#{{1,{level}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, its head left out."""
    lines = [line for line in section_of(page, heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines[2:]]


def by_page(find, pages=PAGES) -> dict[str, list[str]]:
    """What is wrong in each page, by its name; pages in which nothing is wrong are left out."""
    found = {str(page.relative_to(PROJECT)): list(find(page)) for page in pages}
    return {page: wrong for page, wrong in found.items() if wrong}


@pytest.fixture(scope="module")
def small_starter(tmp_path_factory):
    """A model that takes the place of the starter model, whose encoder may not be on this machine."""
    folder = tmp_path_factory.mktemp("starter")
    past, _ = mm.sample_bank(0, tasks=16).split_off()
    encoder = str(write_folder(folder / "tiny", pooling="mean"))
    mm.learn_metrics(past, mm.Recipe(**SMALL, encoder=encoder, clusters=5)).save(folder / "model")
    return folder / "model"


@pytest.fixture
def small_world(tmp_path, monkeypatch, small_starter):
    """A folder with a small bank in it, recipes that take seconds, and a small starter model."""
    monkeypatch.setattr("manymetrics.model.origin.STARTER_FOLDER", small_starter)
    whole = mm.sample_bank(0, tasks=16)
    past, new = whole.split_off()
    kept = [*past.names, *new.names[:2]]
    mm.write_bank(whole.only(kept), tmp_path / "bank")
    full = mm.Recipe
    small = {**SMALL, "encoder": str(write_folder(tmp_path / "tiny", pooling="mean"))}  # instead of minutes, seconds
    monkeypatch.setitem(vars(mm), "Recipe", lambda **settings: full(**{**small, **settings}))
    monkeypatch.setattr(mm.Encoder, "kinds", dict(mm.Encoder.kinds))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_blocks(page: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": page.stem}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), names)  # noqa: S102 - our own pages
    return names


def test_the_code_of_the_readme_runs(small_world):
    names = run_blocks(README)
    assert mm.load_classifier(small_world / "classifier", names["model"]).classes_.tolist() == ["refund", "track"]


def test_the_code_of_the_guides_runs(small_world):
    page = text_of(GUIDES["getting-started"])
    table = re.search(r"<<'END'\n(.*?)^END$", page, re.DOTALL | re.MULTILINE)[1]
    (small_world / "tickets.csv").write_text(table, encoding="utf-8")
    names = {name: run_blocks(page) for name, page in GUIDES.items() if blocks(page, "python")}
    assert len(names["getting-started"]["examples"].texts) == 30
    assert len(names.pop("own-bank")["model"].clusters) == 5
    assert (small_world / "python-model" / "predictor.safetensors").is_file()
    assert len(names) == 4
    assert all(isinstance(of_page["classifier"], mm.FewShotClassifier) for of_page in names.values())


def test_the_readme_is_short_comes_to_the_point_and_leads_to_every_page():
    text, first = text_of(README), blocks(README, "python")[0]
    assert len(text.splitlines()) <= README_LINES
    assert len([line for line in first.splitlines() if line.strip()]) <= 20
    assert text.index(first) < 2000
    linked = {(PROJECT / target).resolve() for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text)}
    assert set(DOCS.glob("*.md")) - linked == set()


def test_the_code_of_the_map_runs(small_world):
    names = run_blocks(MAP)
    assert len(names["clusters"]) == 5
    assert names["metrics"][0].name == "projection"
    assert {metric.cluster for metric in names["metrics"][1:]} <= set(range(5))
    assert "letter-counts" in [metric.name for metric in names["model"].metrics]
    names["model"].save(small_world / "model")
    assert mm.load_model(small_world / "model").fingerprint == names["model"].fingerprint


def test_the_code_of_the_page_on_formats_runs_and_the_page_names_the_files_of_a_model(
    tmp_path, monkeypatch, small_starter
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.csv").write_text("body,queue\nmy money back,refund\nwhere is it,track\n")
    run_blocks(FORMATS)
    assert mm.load_tasks("bank", strict=True).names == ("tickets",)
    rows = table_rows(FORMATS, "## A saved model")
    assert {row[0].strip("`") for row in rows} == {path.name for path in small_starter.iterdir()}


def test_every_name_in_a_page_exists():
    assert exists("values.TransferMatrix.scores")
    assert not any(map(exists, ("values.TransferMatrix.score_of", "partition.nowhere", "experiments.plan.COLUMNS")))
    assert by_page(lambda page: [name for name in dotted(page) if not exists(name)]) == {}


def test_every_file_of_the_code_in_a_page_exists():
    def missing(page: Path) -> list[str]:
        files = [name for name in quoted(page) if re.fullmatch(r"[\w./-]+\.pyi?", name)]
        return [name for name in files if not any((root / name).is_file() for root in (PROJECT, PACKAGE))]

    assert by_page(missing) == {}


def test_links_lead_to_a_file_and_a_heading_in_it():
    def headings(page: Path) -> set[str]:
        titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
        return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}

    def broken(page: Path) -> Iterator[str]:
        for target, heading in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text_of(page)):
            file = page.parent / target if target else page
            if not file.exists() or (heading and heading not in headings(file)):
                yield f"{target}#{heading}"

    assert by_page(broken, {*PAGES, *DOCS.rglob("*.md")}) == {}


def test_every_row_and_every_difference_that_ties_paper_to_code_names_code():
    known = set(dotted(PAPER))
    headings = ("Symbols", "Equations", "Algorithm 2, the clustering of tasks",
                "Algorithm 1, few-shot learning with clusters", "The main table")  # fmt: skip
    rows = {heading: table_rows(PAPER, f"## {heading}") for heading in headings}
    assert all(rows.values())
    parts = [row[-1] for of_heading in rows.values() for row in of_heading]
    differences = section_of(PAPER, "## Where we differ, and why").split("\n\n")
    parts += [paragraph for paragraph in differences if paragraph.strip()]
    assert [part for part in parts if not known & set(re.findall(r"`([^`]+)`", part))] == []


def test_equations_named_in_the_code_are_those_of_the_page():
    label = re.compile(r"eqn:\w+")
    in_code = {found for path in PACKAGE.rglob("*.py") for found in label.findall(path.read_text(encoding="utf-8"))}
    in_page = {found for row in table_rows(PAPER, "## Equations") for found in label.findall(row[0])}
    assert in_code == in_page


def test_every_public_name_is_in_a_page_and_every_module_and_package_in_the_map():
    assert set(mm.__all__) - words_of(*TELLING) == set()
    modules = {path.stem for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in PACKAGE.rglob("__init__.py")} - {PACKAGE.name}
    assert (modules | packages) - words_of(MAP) == set()


WALKS = ("### From `manymetrics predict` to a label", "### From `manymetrics learn` to a model, one hop for each stage")
HOP = re.compile(r"`([\w/]+\.py:[\w.]+)`")


def hops(walk: str) -> list[tuple[str, str | None]]:
    """The functions of a walk, each with the one that calls it; None for what the command line calls."""
    rows = [[HOP.findall(cell) for cell in row] for row in table_rows(MAP, walk)]
    return [(function[0], caller[0] if caller else None) for _, function, caller, _ in rows]


def named_by(hop: str, *, outermost: bool = False) -> Any:
    """What `path.py:function` or `path.py:Class.method` names; `outermost`: the class instead of its method."""
    path, _, name = hop.partition(":")
    name = name.split(".")[0] if outermost else name
    found = pydoc.locate(f"manymetrics.{path.removesuffix('.py').replace('/', '.')}.{name}")
    return getattr(found, "callback", found)  # of a command


def calls(caller: str, function: str) -> bool:
    """Whether the function's name is in the code of the caller, or elsewhere in the caller's class."""
    name = re.split(r"[:.]", function)[-1]
    return re.search(rf"\b{name}\b", inspect.getsource(named_by(caller, outermost=True))) is not None


def test_each_hop_of_a_walk_is_a_function_that_the_one_before_it_calls():
    walks = [hops(walk) for walk in WALKS]
    walked = [hop for walk in walks for hop in walk]
    assert len(walked) >= 16
    assert not calls("learn.py:find_clusters", "learn.py:specialize_and_weigh")
    assert all(callable(named_by(hop)) for pair in walked for hop in pair if hop)
    assert [(caller, hop) for hop, caller in walked if caller and not calls(caller, hop)] == []
    stages = [hop.partition("/")[0] for hop, _ in walks[1] if "/" in hop]
    assert stages == ["collect", "encode", "measure", "partition", "specialize", "weigh", "classifier", "model"]


def test_a_newcomer_gets_from_predict_to_a_label_in_eight_hops_and_passes_no_function_twice():
    functions, callers = zip(*hops(WALKS[0]), strict=True)
    assert functions[0] == "cli/predict.py:predict"
    assert len(functions) == len(set(functions)) <= 8
    assert [caller for number, caller in enumerate(callers) if number and caller not in functions[:number]] == []


def test_decisions_are_numbered_and_have_their_four_parts():
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    parts = {page.name: re.findall(r"^\*\*(\w+)\.\*\*", text_of(page), re.MULTILINE) for page in DECISIONS}
    four = ["Question", "Choice", "Reason", "Price"]
    assert {name: found for name, found in parts.items() if found != four} == {}
    assert [page.name for page in DECISIONS if not text_of(page).startswith(f"# {int(page.name[:4])}. ")] == []


def test_the_reference_gives_a_reason_for_every_dependency():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [package for packages in project["optional-dependencies"].values() for package in packages]
    needed = {re.split(r"[<>=!~ \[]", package)[0] for package in [*project["dependencies"], *extras]}
    rows = table_rows(REFERENCE, "## Dependencies")
    assert {row[0].split("`")[1] for row in rows} == needed
    assert all(row[-1] for row in rows)
    extras_named = {name for row in rows for name in re.findall(r"extra `(\w+)`", row[0])}
    assert extras_named == set(project["optional-dependencies"])


def test_the_reference_has_the_exit_codes_and_the_limits():
    errors = [getattr(mm, name) for name, home in mm._HOME_OF.items() if home == "manymetrics.errors"]
    codes = {error.exit_code for error in errors if issubclass(error, mm.ManyMetricsError)}
    assert {0, *codes} <= {int(row[0].strip("`")) for row in table_rows(REFERENCE, "## Exit codes")}
    limits = section_of(REFERENCE, "## Limits")
    assert f"first {MAX_TOKENS} tokens" in limits
    assert records.MAX_LABELS == MAX_LABELS
    assert f"{MAX_LABELS:,} labels" in limits
    assert f"{MAX_LABELS:,} labels" in section_of(README, "## Limits")


def command_lines(program: str) -> Iterator[list[str]]:
    """The words after the program's name, of every line of the pages that calls it."""
    lines = [line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]
    for line in lines:
        if re.match(rf"\$ (.*\| *)?{program} ", line):
            yield shlex.split(line[line.index(program) + len(program) :], comments=True)


def what_is_wrong(command: click.Command, words: list[str]) -> str | None:
    """Why a command line is none of the program's; None where it is one."""
    settings = command.context_settings  # what a command keeps of its first context must be what the program gives it
    while isinstance(command, click.Group):
        if words[0] not in command.commands:
            return f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    with click.Context(command, resilient_parsing=True, **settings) as context:
        command.parse_args(context, list(words))
    known = {name for parameter in command.params for name in parameter.opts}
    unknown = {word.split("=")[0] for word in words if word.startswith("--")} - known
    return f"{command.name} has no {', '.join(sorted(unknown))}" if unknown else None


def test_commands_in_the_pages_are_commands_of_the_programs():
    from manymetrics.cli import main as program

    experiments = importlib.import_module("experiments.commands").main
    ours, theirs = list(command_lines("manymetrics")), list(command_lines("python -m experiments"))
    assert len(ours) > 20
    assert theirs
    problems = [(words, what_is_wrong(program, words)) for words in ours]
    problems += [(words, what_is_wrong(experiments, words)) for words in theirs]
    assert [problem for problem in problems if problem[1]] == []
    assert what_is_wrong(program, ["teach", "bank"]) == "there is no command 'teach'"
    assert what_is_wrong(program, ["learn", "bank", "--out", "model", "--cluster=auto"]) == "learn has no --cluster"
