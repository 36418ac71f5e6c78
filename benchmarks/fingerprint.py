"""Which code a result was measured on: a digest of source files, kept beside the result and compared with the tree."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "manymetrics"


def sources_digest(sources: Sequence[str], package: Path = PACKAGE) -> str:
    """A digest of the Python files below some folders, or of files, of the package; "" is all of it."""
    digest = hashlib.sha256()
    for source in sources:
        place = package / source
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        for file in files:
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def is_stale(result: Mapping[str, Any], package: Path = PACKAGE) -> bool:
    """Whether a result was measured on other code than that of the tree, or does not say on which."""
    sources = result.get("sources")
    return not sources or result.get("digest") != sources_digest(sources, package)
