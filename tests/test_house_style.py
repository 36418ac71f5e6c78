"""The house style as far as a program can tell: sizes, names, docstrings, and what must not be there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import manymetrics

HOUSE = Path(manymetrics.__file__).parent
PROJECT = HOUSE.parents[1]
FILES = sorted(HOUSE.rglob("*.py"))
SPOKEN = [PROJECT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]

MODULE_LINES = 400
FUNCTION_LINES = 60  # without the docstring; aim for 40
POSITIONAL = 5  # parameters that may be given by place; others are keyword-only
WORD_LISTS = {"collect/sample_words.py"}  # data, not code: as long as they need to be

VAGUE_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
UNSAFE_MODULES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "np.load", "numpy.load", "torch.load", "yaml.load", "yaml.unsafe_load", "os.system"}
ONE_MACHINE = re.compile(r"(?<![\w.<>:/-])/(?:home|mnt|root|work|Users)\b|\bshared/")

Function = ast.FunctionDef | ast.AsyncFunctionDef

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def public(tree: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes that others may use, and the public methods of public classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def calls(tree: ast.Module) -> dict[str, int]:
    return {ast.unparse(node.func): node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call)}


def length(function: Function) -> int:
    """The lines of a function, its docstring left out."""
    first = function.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) is not None else 0
    return function.end_lineno - function.lineno + 1 - docstring


@each_file
def test_a_module_can_be_read_in_one_sitting(path):
    if str(path.relative_to(HOUSE)) not in WORD_LISTS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@each_file
def test_functions_are_short_and_take_few_things_by_place(path):
    for function in functions(tree_of(path)):
        assert length(function) <= FUNCTION_LINES, f"{function.name} has {length(function)} lines"
        by_place = [*function.args.posonlyargs, *function.args.args]
        given = [argument for argument in by_place if argument.arg not in ("self", "cls", "ctx")]
        assert len(given) <= POSITIONAL, f"{function.name} takes {len(given)} things by place"


@each_file
def test_everything_public_says_what_it_is(path):
    tree = tree_of(path)
    assert ast.get_docstring(tree), "the module has no docstring"
    for node in public(tree):
        assert ast.get_docstring(node), f"{node.name} has no docstring"


@each_file
def test_every_function_says_what_it_returns(path):
    for function in functions(tree_of(path)):
        assert function.returns is not None, f"{function.name}, line {function.lineno}"


@each_file
def test_names_of_files_say_what_is_in_them(path):
    assert path.stem not in VAGUE_NAMES
    assert path.parent.name not in VAGUE_NAMES


@each_file
def test_imports_are_written_in_full(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert "*" not in [alias.name for alias in node.names], f"line {node.lineno}: import names, not everything"


@each_file
def test_only_the_command_line_prints(path):
    if path.relative_to(HOUSE).parts[0] not in ("cli", "cli.py"):
        assert "print" not in calls(tree_of(path))


@each_file
def test_nothing_read_from_a_file_can_be_executed(path):
    tree = tree_of(path)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in imported} & UNSAFE_MODULES
    assert not calls(tree).keys() & UNSAFE_CALLS


@pytest.mark.parametrize(
    "path",
    [*FILES, *SPOKEN, *sorted((PROJECT / "docs").rglob("*.md"))],
    ids=lambda path: str(path.relative_to(PROJECT)),
)
def test_no_path_of_one_machine_is_written_down(path):
    found = ONE_MACHINE.search(path.read_text(encoding="utf-8"))
    assert found is None, found


def test_the_rules_find_what_they_look_for():
    assert ONE_MACHINE.search("see /home/me/bank")
    assert ONE_MACHINE.search("cd ../shared/bank")
    assert not ONE_MACHINE.search("--workers 2, units/workers, https://example.org/home")
    assert calls(ast.parse("import yaml\nyaml.load(text)")).keys() & UNSAFE_CALLS
