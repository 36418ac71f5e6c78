"""results.json of an experiment -> what its chapter of docs/results.md was made of: targets, past tasks, versions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.markdown import fold, listed

FORMAT = 2  # of results; 1: several kinds of metrics answered, and the answers were mixed
FEW_SOURCES = 10  # fewer than these are spoken of
SOURCES_SHOWN = 3  # past tasks named beside a target of the same source

Results = Mapping[str, Any]


def data_section(name: str, results: Results) -> str:
    """Targets and past tasks, and what is special about them."""
    targets = results["targets"]
    shots, labels, texts = (_range(target[of] for target in targets) for of in ("shots", "labels", "texts"))
    words = (
        f"{len(targets)} targets with {shots} shots each, {labels} labels and {texts} test texts; "
        f"{past_tasks(results)} past tasks."
    )
    sources = {target.get("source", target["task"]) for target in targets}
    if len(sources) < min(len(targets), FEW_SOURCES):
        words += (
            f" The targets come from {len(sources)} sources: so few that a bootstrap over them gives intervals that "
            "are rather too narrow."
        )
    missing = [
        left["name"].removesuffix(" (train)") for left in results["left_out"] if left["name"].endswith(" (train)")
    ]
    if missing:
        words += (
            f" The train files of {listed(missing)} could not be had; their test files, which no protocol uses, stand "
            "in for them."
        )
    shared = {target["task"]: target["same_source"] for target in targets if target.get("same_source")}
    if shared:
        words += f" {_sharing(shared)}"
    if name == "intent":
        words += (
            " The paper's intents are private. These are public chatbots in the same setting, so its figures stand "
            "beside for orientation: what can be compared is the distance between rows."
        )
    return fold(words)


def _sharing(shared: Mapping[str, Sequence[str]]) -> str:
    """Targets whose corpus or repository past tasks come from as well."""
    told = [f"{target} (with {listed(_few(past))})" for target, past in shared.items()]
    return (
        f"{len(shared)} targets come from a corpus or repository that past tasks come from too, with other "
        f"labels: {listed(told)}."
    )


def _few(names: Sequence[str]) -> list[str]:
    return list(names) if len(names) <= SOURCES_SHOWN else [*names[: SOURCES_SHOWN - 1],
                                                            f"{len(names) - SOURCES_SHOWN + 1} more"]  # fmt: skip


def origin_section(results: Results) -> str:
    """The command, the versions and notes."""
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    notes = "".join(f"- {note}\n" for note in results["notes"])
    return (
        f"### Where these numbers come from\n\n`{results['command']}`, manymetrics {results['version']}, seeds "
        f"{', '.join(map(str, results['seeds']))}, data `{results['data'][:16]}`, "
        f"{results['seconds'] / 60:.0f} minutes, all starts of the command together.\n"
        f"{versions}.\n\n{notes}"
    )


def past_tasks(results: Results) -> int:
    """How many past tasks there are."""
    return sum(len(cluster["tasks"]) for cluster in results["clusters"])


def _range(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def version_told(*parts: Results) -> str:
    """What is said where some results are of an earlier version of the code."""
    return " (an earlier version of the code)" if any(is_older(results) for results in parts) else ""


def is_older(results: Results) -> bool:
    """Whether results were made before a task was answered by one regression in its own metric."""
    return bool(results["format"] < FORMAT)
