"""The shape of the package: who may import whom, who may know torch, and how little importing it costs."""

import ast
from functools import cache
from pathlib import Path

import manymetrics
from python_process import run_python

PACKAGE = Path(manymetrics.__file__).parent
GROUND = ["errors", "values", "store", "episodes"]  # everybody stands on these
STAGES = ["collect", "encode", "measure", "partition", "specialize", "weigh"]
STORY = ["recipe", "classifier", "model", "engine", "learn", "evaluation", "report", "client"]  # these know the stages
PUBLIC = "manymetrics"
USERS = ["service", "cli"]  # these use the library as anybody would
LINE = [*GROUND, *STAGES, *STORY, PUBLIC, *USERS]

KNOW_TORCH = {
    f"manymetrics.encode.{name}"
    for name in ("training", "training.convolution", "training.low_rank", "training.transformer")
}
IMPURE = {"datetime", "io", "logging", "os", "pathlib", "random", "shutil", "socket", "subprocess", "tempfile", "time"}


def module_name(path):
    parts = ("manymetrics", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
PURE = [name for name in TREES if name.startswith("manymetrics.partition")] + [
    f"manymetrics.weigh.{name}" for name in ("regression", "task_metric")
]


def place(module):
    """Where on the line a module of ours stands; what `python -m` runs is a part of the command line."""
    parts = module.split(".")
    if parts[-1] == "__main__":
        return "cli"
    return parts[1] if len(parts) > 1 else PUBLIC


@cache
def imports(module, *, at_once=False):
    """The modules a module imports; `at_once` leaves out what it imports only inside functions."""
    nodes = {*ast.walk(TREES[module])}
    if at_once:
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        nodes -= {inner for function in functions for inner in ast.walk(function)}
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in TREES else node.module for name in inside)
    return found


def places_imported(module):
    return {place(name) for name in imports(module) if name.split(".")[0] == "manymetrics"}


def libraries(module, *, at_once=False):
    return {name.split(".")[0] for name in imports(module, at_once=at_once)}


def test_the_folder_listing_is_the_algorithm():
    assert sorted(STAGES) == STAGES
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert sorted(folders - {*GROUND, *STORY, *USERS}) == STAGES
    assert {place(module) for module in TREES} == set(LINE)


def test_imports_only_point_back_along_the_line():
    ahead = [
        f"{module} imports {there}"
        for module in TREES
        for there in places_imported(module)
        if LINE.index(there) > LINE.index(place(module))
    ]
    assert ahead == []
    assert " · ".join(LINE) in (PACKAGE.parents[1] / "docs" / "map.md").read_text(encoding="utf-8")


def test_the_command_line_uses_only_public_names():
    users = [module for module in TREES if place(module) in USERS]
    assert [module for module in users if places_imported(module) - {PUBLIC, *USERS}] == []


def test_only_training_code_knows_torch_and_is_imported_only_when_something_is_trained():
    knowing = {module for module in TREES if "torch" in libraries(module)}
    assert knowing <= KNOW_TORCH
    assert knowing, "nobody imports torch any more: this test looks for the wrong thing"
    assert [module for module in TREES.keys() - KNOW_TORCH if imports(module, at_once=True) & KNOW_TORCH] == []


def test_only_encoders_know_onnxruntime_and_load_it_when_they_first_encode():
    users_of = {
        "onnxruntime": ("runtime.session",),
        "onnx": ("runtime.bert", "sources.encoders"),
        "tokenizers": ("sentence", "tokens"),
        "huggingface_hub": ("sources.hub",),
    }
    for library, users in users_of.items():
        knowing = {module for module in TREES if library in libraries(module)}
        assert knowing == {f"manymetrics.encode.{name}" for name in users}
        assert not [module for module in TREES if library in libraries(module, at_once=True)]


def test_the_pure_parts_touch_no_file_clock_log_or_global_randomness():
    assert len(PURE) > 5
    for module in PURE:
        assert not libraries(module) & IMPURE, module
        for node in ast.walk(TREES[module]):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.random."):
                assert ast.unparse(node) == "np.random.Generator", f"{module}:{node.lineno}: take a generator"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "print", "input"), f"{module}:{node.lineno}"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, manymetrics; print({'numpy', 'scipy', 'sklearn', 'numba', 'torch'} & set(sys.modules))"
    assert run_python(code) == "set()"


def test_everything_but_training_works_without_torch():
    code = f"""
import importlib
for name in {sorted(TREES.keys() - KNOW_TORCH)!r}:
    importlib.import_module(name)
try:
    import manymetrics.encode.training.convolution
except importlib.import_module("manymetrics").MissingExtra as problem:
    print(problem)
"""
    told = 'Training an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    assert run_python(code, torch=False) == told
