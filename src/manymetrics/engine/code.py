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
from importlib.machinery import ModuleSpec, PathFinder
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
    reached: dict[str, str] = {}
    libraries: set[str] = set()
    pending = {do.__module__}
    while pending:
        module = pending.pop()
        if source := _source_file(module):
            reached[module], names = _read_code(source)
            local = {name for name in names if name.partition(".")[0] in packages}
            pending |= local - reached.keys() - {NOT_HASHED}
            libraries |= {name.partition(".")[0] for name in names - local} - sys.stdlib_module_names
    digest = hashlib.sha256(f"{do.__module__} {do.__qualname__} {sys.version_info[:2]}".encode())
    for module in sorted(reached):
        digest.update(f"\n{module}\n{reached[module]}".encode())
    for library in sorted(libraries):
        digest.update(f"\n{library} {_version(library)}".encode())
    return digest.hexdigest()


@cache
def _read_code(source: Path) -> tuple[str, set[str]]:
    """The code of a module without comments and docstrings, and the dotted names it imports: modules and members."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            del node.body[: ast.get_docstring(node, clean=False) is not None]
    return ast.dump(tree), names


def _source_file(module: str) -> Path | None:
    """The source file of a module; None for a name that is not a module."""
    if module == "__main__":  # a script has no spec
        origin = getattr(sys.modules[module], "__file__", None)
        if origin is None:
            raise InputError("A run stores results only of functions that are in a file. Put the function in a module.")
        return Path(origin)
    spec = _find(module)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@cache
def _find(module: str) -> ModuleSpec | None:
    """Where a module is; its packages are not imported."""
    package = module.rpartition(".")[0]
    if not package:
        return find_spec(module)
    parent = _find(package)
    folders = parent.submodule_search_locations if parent else None
    return PathFinder.find_spec(module, folders) if folders else None


@cache
def _version(library: str) -> str:
    try:
        return " ".join(sorted({version(name) for name in _distributions().get(library, [library])}))
    except PackageNotFoundError:
        return "not installed"
