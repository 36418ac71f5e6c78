"""Results -> JSON and the page `docs/performance.md`. The page is made from the JSON alone.

A theme that was not run this time keeps its earlier results, each with the day, the load and the command of its own.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks.harness import Options, Row

PACKAGE = Path(__file__).parents[1] / "src" / "manymetrics"
LIBRARIES = ("manymetrics", "numpy", "scipy", "onnxruntime", "scikit-learn", "torch", "sentence-transformers",
             "ctranslate2", "fastembed", "setfit", "cvxpy", "scs", "tensorly")  # fmt: skip
TITLES = {
    "encoder": "Encoder: strings to embeddings",
    "prediction": "Prediction",
    "adaptation": "Adapting to a new task",
    "transfer": "The transfer matrix",
    "completion": "Completion",
    "startup": "Start-up",
}
STALE = "**Stale**: the code that this measures has changed since."
HEAD = """# Performance

Made by `make bench`; do not edit. Each ratio is how often our time fits into the peer's, taken round by round with the
two sides alternating in one process: the median, and in brackets the smallest and the largest. Work on one thread is
timed in processor seconds, because the machine was shared; where the wall clock was used, the note says so. Times are
medians with the same brackets. A target that was not reached says MISSED. A theme is marked as stale where the source
files that it measures have changed since. All is of the default recipe, unless a row says otherwise.
"""


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


def record(rows: Sequence[Row], options: Options, *, command: str, now: datetime, sources: Sequence[str] = (),
           digest: str = "") -> dict[str, Any]:  # fmt: skip
    """One theme's results as plain data."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "when": now.isoformat(timespec="minutes"),
        "command": command,
        "sources": list(sources),
        "digest": digest,
        "seed": options.seed,
        "rounds": options.rounds,
        "load": round(load, 1),
        "machine": machine(),
        "rows": [{**asdict(row), "target": row.target and str(row.target), "verdict": row.verdict} for row in rows],
    }


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    installed = {one.name: one.version for one in distributions()}
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "libraries": {name: installed[name] for name in LIBRARIES if name in installed},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def keep(path: Path, themes: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """Write the results of these themes beside those that are there; quick sizes never mix with whole ones."""
    found: dict[str, Any] = {}
    if path.is_file():
        saved = json.loads(path.read_text(encoding="utf-8"))
        found = saved["themes"] if saved.get("quick") == quick else {}
    merged = {name: themes.get(name) or found[name] for name in TITLES if name in themes or name in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"quick": quick, "themes": merged}, indent=1, ensure_ascii=False), encoding="utf-8")
    return merged


def write_page(themes: Mapping[str, Any], *, quick: bool = False) -> str:
    """The page, as Markdown."""
    parts = [HEAD]
    if quick:
        parts.append("**Quick sizes: these numbers only show that the benchmarks run.**\n")
    missed = [f"{TITLES[name].lower()}: {row['what']}" for name, theme in themes.items() for row in theme["rows"]
              if row["verdict"] == "MISSED"]  # fmt: skip
    counted = [row for theme in themes.values() for row in theme["rows"] if row["verdict"] in ("met", "MISSED")]
    parts.append(f"{len(counted) - len(missed)} of {len(counted)} targets met.\n")
    if missed:
        parts.append("Missed:\n\n" + "".join(f"- {line}\n" for line in missed))
    if others := [title.lower() for name, title in TITLES.items() if name not in themes]:
        parts.append(f"Not measured for this page: {', '.join(others)}.\n")
    if stale := [TITLES[name].lower() for name, theme in themes.items() if is_stale(theme)]:
        parts.append(f"**Stale**, because the code has changed since: {', '.join(stale)}.\n")
    parts.append(_targets(themes))
    parts.append(_machines(themes))
    parts += [_chapter(TITLES[name], theme) for name, theme in themes.items()]
    return "\n".join(parts)


def _targets(themes: Mapping[str, Any]) -> str:
    """Every target in one table, with what was reached."""
    rows = [
        [f"{TITLES[name]}: {row['what']}", row["target"], _ratio(row["ratio"]) or row["ours"], _verdict(row)]
        for name, theme in themes.items()
        for row in theme["rows"]
        if row["target"]
    ]
    return f"## Targets\n\n{table(['what', 'target', 'reached', 'verdict'], rows)}"


def _verdict(row: Mapping[str, Any]) -> str:
    return "**MISSED**" if row["verdict"] == "MISSED" else str(row["verdict"])


def _chapter(title: str, theme: Mapping[str, Any]) -> str:
    raced = any(row["peer"] or row["target"] for row in theme["rows"])
    columns = ["what", "ours", *(["peer", "ratio", "target", "verdict"] if raced else [])]
    rows = []
    for row in theme["rows"]:
        cells = [row["what"], row["ours"]]
        if raced:
            cells += [row["peer"], _ratio(row["ratio"]), row["target"] or "", _verdict(row)]
        rows.append(cells)
    written = table_with_notes(columns, rows, [row["note"] for row in theme["rows"]])
    mark = f"{STALE}\n\n" if is_stale(theme) else ""
    return f"## {title}\n\n{mark}{written}\n{_origin(theme)}\n"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (columns, ["---"] * len(columns), *rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_with_notes(columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A Markdown table whose first cells refer to the notes below it."""
    numbers = {place: number for number, place in enumerate((at for at, note in enumerate(notes) if note), start=1)}
    marked = [
        [f"{row[0]} [{numbers[place]}]" if place in numbers else row[0], *row[1:]] for place, row in enumerate(rows)
    ]
    below = "".join(f"[{number}] {notes[place]}.  \n" for place, number in numbers.items())
    return f"{table(columns, marked)}\n{below}"


def _ratio(ratio: Mapping[str, float] | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio['median']:.3g} × [{ratio['low']:.3g}, {ratio['high']:.3g}]"


def _machines(themes: Mapping[str, Any]) -> str:
    found: list[dict[str, Any]] = []
    for theme in themes.values():
        if theme["machine"] not in found:
            found.append(theme["machine"])
    return "".join(
        f"Measured on: {facts['processor']}, {facts['cores']} cores, {facts['system']}, Python {facts['python']}; "
        f"{', '.join(f'{name} {number}' for name, number in facts['libraries'].items())}.\n"
        for facts in found
    )


def _origin(theme: Mapping[str, Any]) -> str:
    return (
        f"{theme['when'][:10]}, `{theme['command']}`, seed {theme['seed']}, {theme['rounds']} rounds; "
        f"load of the machine at the end {theme['load']}."
    )
