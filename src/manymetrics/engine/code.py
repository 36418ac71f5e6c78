"""A function -> a hash of the code that it can reach, so that a stored result of other code is not used.

The hash covers the module of the function, all modules of its package and of this package that it imports, directly or
through others, without comments and docstrings, and the versions of the libraries that these import. Source files are
read and nothing is imported, so that a library may be missing until the function needs it.
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
NOT_HASHED = f"{PACKAGE}.errors"  # computes nothing
_distributions = cache(packages_distributions)


@cache
def code_fingerprint(do: Callable[..., Any]) -> str:
    """The hash of the code that a function can reach, and of the versions of its libraries."""
    packages = {PACKAGE, do.__module__.partition(".")[0]}
    reached: set[str] = set()
    libraries: set[str] = set()
    pending = [do.__module__]
    while pending:
        module = pending.pop()
        if module in reached or module == NOT_HASHED or _file(module) is None:
            continue
        reached.add(module)
        names = _imported_names(module)
        pending += [name for name in names if name.partition(".")[0] in packages]
        libraries.update(name.partition(".")[0] for name in names)
    digest = hashlib.sha256(f"{do.__module__} {do.__qualname__} {sys.version_info[:2]}".encode())
    for module in sorted(reached):
        digest.update(f"\n{module}\n{ast.dump(_tree(module))}".encode())
    for library in sorted(libraries - packages - sys.stdlib_module_names):
        digest.update(f"\n{library} {_version(library)}".encode())
    return digest.hexdigest()


@cache
def _imported_names(module: str) -> set[str]:
    """Everything that a module imports by a dotted name: modules, and members of modules."""
    names: set[str] = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return names


@cache
def _tree(module: str) -> ast.Module:
    """The syntax tree of a module without docstrings."""
    tree = ast.parse(Path(_file(module) or "").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest
    return tree


@cache
def _file(module: str) -> Path | None:
    """The source file of a module; None for a name that is not a module."""
    package, *parts = module.split(".")
    if package == "__main__":  # a script has no spec
        if path := getattr(sys.modules[package], "__file__", None):
            return Path(path)
        raise InputError("A run stores results only of functions that are in a file. Put the function in a module.")
    spec = find_spec(package)
    if spec is None or not parts:
        return Path(spec.origin) if spec is not None and spec.origin else None
    paths = [Path(folder, *parts) for folder in spec.submodule_search_locations or ()]
    files = [file for path in paths for file in (path / "__init__.py", path.with_suffix(".py"))]
    return next((file for file in files if file.is_file()), None)


@cache
def _version(library: str) -> str:
    try:
        return " ".join(sorted({version(name) for name in _distributions().get(library, [library])}))
    except PackageNotFoundError:
        return "not installed"
