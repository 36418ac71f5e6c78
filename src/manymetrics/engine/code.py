"""A function -> a hash of the code that it can reach, so that a result made by other code is never taken for its own.

All modules of this package, and of the package that the function is in, count that the function's module imports,
directly or through others, whether at the top or inside a function. Comments and docstrings do not. The versions of the
libraries that these modules import count as well.
"""

import ast
import hashlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manymetrics.errors import InputError

PACKAGE = "manymetrics"
COMPUTES_NOTHING = (f"{PACKAGE}.errors",)


@cache
def code_fingerprint(do: Callable[..., Any]) -> str:
    """The hash of the code that a function can reach, and of the versions of the libraries it computes with."""
    reached: set[str] = set()
    libraries: set[str] = set()
    packages = frozenset({PACKAGE, _package(do.__module__)})
    ahead = [do.__module__]
    while ahead:
        module = ahead.pop()
        if module in reached or module in COMPUTES_NOTHING:
            continue
        reached.add(module)
        ours, others = _imports(module, packages)
        ahead += ours
        libraries.update(others)
    digest = hashlib.sha256(f"{do.__module__} {do.__qualname__} {sys.version_info[:2]}".encode())
    for module in sorted(reached):
        digest.update(f"\n{module}\n{_code(module)}".encode())
    for library in sorted(libraries - set(sys.stdlib_module_names)):
        digest.update(f"\n{library} {_version(library)}".encode())
    return digest.hexdigest()


@cache
def _tree(module: str) -> ast.Module:
    path = _file(module)
    return ast.Module([], []) if path is None else ast.parse(Path(path).read_text(encoding="utf-8"))


def _file(module: str) -> str | None:
    if module == "__main__":  # a script, which has no spec
        path: str | None = getattr(sys.modules[module], "__file__", None)
        if path is None:
            raise InputError("A run keeps results only of functions that are in a file. Put the function in a module.")
        return path
    spec = find_spec(module)
    return None if spec is None else spec.origin


@cache
def _imports(module: str, packages: frozenset[str]) -> tuple[list[str], list[str]]:
    """The modules of these packages that a module imports, and the outermost names of all others."""
    found: set[str] = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if _package(node.module) in packages:
                inside = (f"{node.module}.{alias.name}" for alias in node.names)
                found.update(name for name in inside if _is_module(name))
    ours = sorted(name for name in found if _package(name) in packages)
    return ours, sorted({_package(name) for name in found} - packages)


def _package(module: str) -> str:
    return module.partition(".")[0]


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _code(module: str) -> str:
    """A module's code without comments and docstrings."""
    tree = _tree(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return ast.dump(tree)


@cache
def _version(library: str) -> str:
    distributions = _distributions().get(library, [library])
    try:
        return " ".join(sorted({version(name) for name in distributions}))
    except PackageNotFoundError:
        return "not installed"


@cache
def _distributions() -> dict[str, list[str]]:
    return {name: list(found) for name, found in packages_distributions().items()}
