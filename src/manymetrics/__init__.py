"""Few-shot text classification for people who serve many different tasks.

From a bank of labelled tasks learn several metrics, one for each cluster of tasks that help one another; give a new
task with a handful of examples its own mix of them. Everything public is listed in `__init__.pyi`, which type checkers
read too, and is loaded when it is first used. The types of results are listed by the packages: `mm.classifier.Answers`.
"""

import importlib
import re
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOME_OF = {
    name: home
    for home, names in re.findall(r"^from (manymetrics(?:\.\w+)?) import (\([^)]*\)|.*)$", _STUB, re.MULTILINE)
    for name in re.findall(r"\w+(?= as )", names)
}
_PACKAGES = [name for name, home in _HOME_OF.items() if home == __name__]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'manymetrics' has no attribute {name!r}")
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)


__all__ = sorted(_HOME_OF.keys() - _PACKAGES)  # noqa: PLE0605
