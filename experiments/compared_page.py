"""comparison.json of `compare` -> its section of docs/results.md, and what the first screen says of it."""

from collections.abc import Mapping
from typing import Any

from experiments.comparison import OFF, ON, OURS
from experiments.markdown import fold, points, share, table
from experiments.plan import AMAZON
from experiments.provenance import is_older, version_told
from experiments.several_page import SEEN

Results = Mapping[str, Any]
Row = Mapping[str, Any]

MAJORITY = "majority"
TOLD = {OFF: "", ON: ", label names"}
EARLIER = "**Measured with an earlier version of the code.**\n"
BEST_RIVAL = "frozen encoder, logistic regression, balanced"  # three lines of scikit-learn


def compared_section(title: str, results: Results) -> str:
    """Every row with its intervals."""
    words = (
        f"The {results['targets']} targets, answered with the recipe {results['recipe_name']} and, on the same "
        "encoder, by what a few lines of scikit-learn give, their penalty chosen on past tasks. *Ahead* is the "
        "accuracy of ours less that of the row, both with label names or both without; of ours told otherwise, its "
        f"gain over ours without names.{seen(results)}"
    )
    rows = [
        [row["method"], row["names"], share(row["accuracy"]), f"{100 * row['balanced_accuracy']:.1f}",
         "" if (row["method"], row["names"]) == (OURS, OFF) else points(row["ahead"])]
        for row in results["rows"]
    ]  # fmt: skip
    written = table(["method", "label names"], ["accuracy", "balanced accuracy", "ahead"], rows)
    earlier = f"{EARLIER}\n" if is_older(results) else ""
    return (
        f"## {title}: recipe {results['recipe_name']}\n\n{earlier}{fold(words)}\n{written}\n"
        f"`{results['command']} --out OUT`, data `{results['data'][:16]}`.\n"
    )


def cell(results: Results | None, method: str, names: str) -> str:
    """Accuracy, and in brackets balanced accuracy; a dash where a row was not run."""
    row = None if results is None else _rows(results).get((method, names))
    return "-" if row is None else f"{100 * row['accuracy']['value']:.1f} ({100 * row['balanced_accuracy']:.1f})"


def verdicts(data: str, results: Results, elsewhere: Row | None = None) -> list[tuple[Mapping[str, float], str]]:
    """How far ours is ahead of the best rival, with label names and without.

    `elsewhere` is the best rival of another run on the same targets, which knows no label names.
    """
    rows, found = _rows(results), []
    for names, told in TOLD.items():
        rivals = [row for (method, of), row in rows.items() if of == names and method not in (OURS, MAJORITY)]
        if not rivals:
            continue
        best = max(rivals, key=lambda row: float(row["accuracy"]["value"]))
        balanced = rows[OURS, names]["balanced_accuracy"] - best["balanced_accuracy"]
        line = (
            f"{data} (targets, recipe {results['recipe_name']}{told}){version_told(results)}: {points(best['ahead'])} "
            f"points over the best row on the same encoder, {best['method']}; balanced accuracy {100 * balanced:+.1f}."
        )
        if names == OFF and elsewhere is not None:
            line += _nearer(rows[OURS, names], best, elsewhere)
        line += seen(results)
        found.append((best["ahead"], line))
    return found


def _nearer(ours: Row, best: Row, elsewhere: Row) -> str:
    """What has to be said where a row of another run comes nearer than the best of the same run."""
    if elsewhere["accuracy"]["value"] <= best["accuracy"]["value"]:
        return ""
    ahead = ours["accuracy"]["value"] - elsewhere["accuracy"]["value"]
    balanced = ours["balanced_accuracy"] - elsewhere["balanced_accuracy"]["value"]
    return (
        f" Of the table's other rows {elsewhere['method']} comes nearest, {100 * ahead:+.1f} points and "
        f"{100 * balanced:+.1f} in balanced accuracy; it is of another run, so that no interval is known."
    )


def seen(results: Results) -> str:
    """What has to be said where the encoder has probably seen such texts."""
    return f" {SEEN}" if results["bank"] == AMAZON and results["recipe_name"] in ("default", "tuned") else ""


def _rows(results: Results) -> dict[tuple[str, str], Row]:
    return {(row["method"], row["names"]): row for row in results["rows"]}
