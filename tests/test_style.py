"""The style as far as a program can tell: sizes, names, docstrings, and what must not be there."""

import ast
import re
import statistics
from pathlib import Path

import manymetrics

PACKAGE = Path(manymetrics.__file__).parent
PROJECT = PACKAGE.parents[1]
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {path: ast.parse(source) for path, source in SOURCES.items()}
SPOKEN = [PROJECT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]

MODULE_LINES = 400
FUNCTION_LINES = 60  # without the docstring; aim for 40
POSITIONAL = 5  # parameters that may be given by place; others are keyword-only
MEDIAN_MODULE_LINES, FUNCTION_P90_LINES = 120, 18

VAGUE_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
UNSAFE_MODULES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "np.load", "numpy.load", "torch.load", "yaml.load", "yaml.unsafe_load", "os.system"}
ONE_MACHINE = re.compile(r"(?<![\w.<>:/-])/(?:home|mnt|root|work|Users)\b|\bshared/")

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
GENERATED = ("performance.md", "results.md", "scale.md")  # pages that a command writes
PRIVATE_WORDS = re.compile(
    r"\b(?:taken for|speaks? for|stands? on|told|looks?|(?<![.\"`])kept(?![=:\"`])|dealt|alike|broken|a step away|"
    r"knobs?|mend(?:s|ed|ing)?|heard|likeliest|likest|go(?:es)? on|left open|holds? together|chances|strangers?|"
    r"voices?|sharpness|front door|lost_words)\b",
    re.IGNORECASE,
)
PRIVATE_VARIABLES = {"every", "found", "made", "one", "own", "place", "said", "told", "there"}
PRIVATE_CONSTANTS = re.compile(r"_?(?:LONGEST|MOST_\w+|FEWEST\w*|LARGEST|FEW|SHOWN|TOLD|LIKEST)")
PRIVATE_CLASSES = {
    "Bounded", "Broken", "Guards", "Named", "Once", "Piece", "Places", "Replayed", "Turn", "Turns", "Watched",
}  # fmt: skip
PRIVATE_MODULES = {
    "assembling", "assembly", "gathering", "judging", "keeping", "looking", "opening", "operating", "showing", "upkeep",
}  # fmt: skip
OLDER_THAN_THE_RULE = PACKAGE / "classifier" / "confidence.py"  # fields of a saved model


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def public(tree):
    """Functions and classes that others may use, and the public methods of public classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def calls(tree):
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def length(function):
    """The lines of a function, its docstring left out."""
    first = function.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) is not None else 0
    return function.end_lineno - function.lineno + 1 - docstring


def problems(find):
    """What a rule finds in each file of the package, with its place."""
    return [f"{path.relative_to(PACKAGE)}: {problem}" for path, tree in TREES.items() for problem in find(path, tree)]


def test_modules_and_functions_are_short():
    def too_long(path, tree):
        if (lines := len(SOURCES[path].splitlines())) > MODULE_LINES:
            yield f"has {lines} lines"
        for function in functions(tree):
            by_place = [*function.args.posonlyargs, *function.args.args]
            given = [argument for argument in by_place if argument.arg not in ("self", "cls", "ctx")]
            if length(function) > FUNCTION_LINES:
                yield f"{function.name} has {length(function)} lines"
            if len(given) > POSITIONAL:
                yield f"{function.name} takes {len(given)} arguments by position"

    assert problems(too_long) == []
    assert statistics.median(len(source.splitlines()) for source in SOURCES.values()) <= MEDIAN_MODULE_LINES
    lengths = sorted(length(function) for tree in TREES.values() for function in functions(tree))
    assert lengths[int(0.9 * len(lengths))] <= FUNCTION_P90_LINES


def test_everything_public_has_a_docstring_and_every_function_a_return_type():
    def unsaid(path, tree):
        if not ast.get_docstring(tree):
            yield "the module has no docstring"
        yield from (f"{node.name} has no docstring" for node in public(tree) if not ast.get_docstring(node))
        yield from (f"{one.name} has no return type" for one in functions(tree) if one.returns is None)

    assert problems(unsaid) == []


def test_names_of_files_say_what_is_in_them():
    assert [path for path in TREES if {path.stem, path.parent.name} & VAGUE_NAMES or path.stem in PRIVATE_MODULES] == []


def test_imports_are_written_in_full():
    def relative(path, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or "*" in [alias.name for alias in node.names]):
                yield f"line {node.lineno}"

    assert problems(relative) == []


def test_only_the_command_line_prints_and_nothing_read_from_a_file_can_be_executed():
    def unsafe(path, tree):
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        yield from {name.split(".")[0] for name in imported} & UNSAFE_MODULES
        yield from calls(tree) & UNSAFE_CALLS
        if path.relative_to(PACKAGE).parts[0] != "cli" and "print" in calls(tree):
            yield "print"

    assert problems(unsafe) == []
    assert calls(ast.parse("import yaml\nyaml.load(text)")) & UNSAFE_CALLS


def test_no_path_of_one_machine_is_written_down():
    spoken = [*TREES, *SPOKEN, *PAGES]
    assert [path for path in spoken if ONE_MACHINE.search(path.read_text(encoding="utf-8"))] == []
    assert ONE_MACHINE.search("see /home/me/bank")
    assert ONE_MACHINE.search("cd ../shared/bank")
    assert not ONE_MACHINE.search("--workers 2, jobs/workers, https://example.org/home")


def test_no_test_imports_a_private_name_of_the_package():
    def private(path):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "manymetrics":
                yield from (alias.name for alias in node.names if alias.name.startswith("_"))

    found = {path.name: sorted(private(path)) for path in (PROJECT / "tests").rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


def test_words_are_those_of_the_field():
    pages = [path for path in (*TREES, *PAGES) if path.name not in GENERATED and path != OLDER_THAN_THE_RULE]
    words = {path: {*PRIVATE_WORDS.findall(path.read_text("utf-8"))} for path in pages}
    assert {path: found for path, found in words.items() if found} == {}
    of_an_example = PRIVATE_WORDS.findall("It stands on a knob; results are kept. progress.kept, `kept`")
    assert of_an_example == ["stands on", "knob", "kept"]


def test_names_say_what_they_hold():
    def private(path, tree):
        for node in ast.walk(tree) if path != OLDER_THAN_THE_RULE else ():
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    if name in PRIVATE_VARIABLES or PRIVATE_CONSTANTS.fullmatch(name):
                        yield f"line {node.lineno}: {name}"
                case ast.ClassDef(name=name) if name in PRIVATE_CLASSES:
                    yield f"line {node.lineno}: {name}"

    assert problems(private) == []
