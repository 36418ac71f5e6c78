"""The shape of the package: who may import whom, who may know torch, and how little importing it costs."""

import ast
import subprocess
import sys
from pathlib import Path

import manymetrics

PACKAGE = Path(manymetrics.__file__).parent
GROUND = ["errors", "values", "store", "episodes"]  # everybody stands on these
STAGES = ["collect", "encode", "measure", "partition", "specialize", "weigh"]
STORY = [
    "recipe",
    "classifier",
    "model",
    "engine",
    "learn",
    "evaluation",
    "report",
    "client",
]  # these know the stages
PUBLIC = "manymetrics"
USERS = ["service", "cli"]  # these use the library as anybody would
LINE = [*GROUND, *STAGES, *STORY, PUBLIC, *USERS]

FILES = sorted(PACKAGE.rglob("*.py"))
KNOW_TORCH = {
    f"manymetrics.encode.{name}"
    for name in ("training", "training.convolution", "training.low_rank", "training.transformer")
}
IMPURE = {"datetime", "io", "logging", "os", "pathlib", "random", "shutil", "socket", "subprocess", "tempfile", "time"}
PURE = [path for path in FILES if path.parent == PACKAGE / "partition"] + [
    PACKAGE / "weigh" / f"{name}.py" for name in ("regression", "task_metric")
]


def module_name(path: Path) -> str:
    parts = ("manymetrics", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(module: str) -> str:
    """Where on the line a module of ours stands; what `python -m` runs is a part of the command line."""
    parts = module.split(".")
    if parts[-1] == "__main__":
        return "cli"
    return parts[1] if len(parts) > 1 else PUBLIC


def imports(path: Path, *, at_once: bool = False) -> set[str]:
    """The modules a file imports; `at_once` leaves out what it imports only inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {
        inner
        for node in ast.walk(tree)
        if at_once and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in late:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in MODULES else node.module for name in inside)
    return found


MODULES = {module_name(path) for path in FILES}


def ours(modules: set[str]) -> set[str]:
    return {module for module in modules if module.split(".")[0] == "manymetrics"}


def outermost(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_folder_listing_is_the_algorithm():
    assert sorted(STAGES) == STAGES
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in FILES if path.parent != PACKAGE}
    assert sorted(folders - {*GROUND, *STORY, *USERS}) == STAGES


def test_every_module_has_its_place_on_the_line():
    assert {place(module) for module in MODULES} == set(LINE)


def test_imports_only_point_back_along_the_line():
    ahead = [
        f"{module_name(path)} imports {there}"
        for path in FILES
        for there in map(place, ours(imports(path)))
        if LINE.index(there) > LINE.index(place(module_name(path)))
    ]
    assert ahead == []


def test_the_map_names_the_import_order():
    told = (PACKAGE.parents[1] / "docs" / "map.md").read_text(encoding="utf-8")
    assert " · ".join(LINE) in told


def test_the_command_line_uses_only_public_names():
    for path in (path for path in FILES if place(module_name(path)) in USERS):
        used = {place(module) for module in ours(imports(path))}
        assert used <= {PUBLIC, *USERS}, f"{module_name(path)} reaches past the public names"


def test_only_training_code_knows_torch():
    knowing = {module_name(path) for path in FILES if "torch" in outermost(imports(path))}
    assert knowing <= KNOW_TORCH
    assert knowing, "nobody imports torch any more: this test looks for the wrong thing"


def test_only_encoders_know_onnxruntime_and_load_it_when_they_first_encode():
    users_of = {
        "onnxruntime": ("runtime.session",),
        "onnx": ("runtime.bert", "sources.encoders"),
        "tokenizers": ("sentence", "tokens"),
        "huggingface_hub": ("sources.hub",),
    }
    for library, users in users_of.items():
        knowing = {module_name(path) for path in FILES if library in outermost(imports(path))}
        assert knowing == {f"manymetrics.encode.{name}" for name in users}
        assert not [path for path in FILES if library in outermost(imports(path, at_once=True))]


def test_training_code_is_imported_only_when_something_is_trained():
    for path in FILES:
        if module_name(path) not in KNOW_TORCH:
            assert not imports(path, at_once=True) & KNOW_TORCH, module_name(path)


def test_the_pure_parts_touch_no_file_clock_log_or_global_randomness():
    for path in PURE:
        assert not outermost(imports(path)) & IMPURE, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.random."):
                assert ast.unparse(node) == "np.random.Generator", f"{path}:{node.lineno}: take a generator"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "print", "input"), f"{path}:{node.lineno}"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, manymetrics; print({'numpy', 'scipy', 'sklearn', 'numba', 'torch'} & set(sys.modules))"
    assert run_python(code) == "set()"


def test_everything_but_training_works_without_torch():
    code = f"""
import importlib, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
for name in {sorted(MODULES - KNOW_TORCH)!r}:
    importlib.import_module(name)
try:
    import manymetrics.encode.training.convolution
except importlib.import_module("manymetrics").MissingExtra as problem:
    print(problem)
"""
    told = 'Training an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    assert run_python(code) == told
