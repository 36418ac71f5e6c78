"""Few-shot text classification for people who serve many different tasks.

From a bank of labelled tasks learn several metrics, one for each cluster of tasks that help one another; give a new
task with a handful of examples its own mix of them. Everything public is here, and is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manymetrics.collect import BankReport, inspect_bank, load_tasks, read_examples, sample_bank, write_bank
    from manymetrics.encode import WordVectors, get_vectors, list_vectors, load_vectors, read_bank
    from manymetrics.engine import Engine, Limits, Progress
    from manymetrics.errors import (
        DataError,
        DidNotConverge,
        EnvironmentProblem,
        InputError,
        ManyMetricsError,
        MissingExtra,
        MissingVectors,
        ModelError,
        NotEnoughExamples,
        RecipeError,
        TaskFormatError,
        TaskLeftOut,
        UnitLeftOut,
        UnitsFailed,
    )
    from manymetrics.evaluation import Demo, Estimate, Evaluation, evaluate, run_demo
    from manymetrics.learn import learn_metrics
    from manymetrics.measure import measure_transfer, train_task_models
    from manymetrics.partition import cluster_tasks, complete_similarity, keep_reliable_pairs
    from manymetrics.recipe import Recipe
    from manymetrics.specialize import Metric, train_metrics
    from manymetrics.store import (
        Failure,
        MetricModel,
        Run,
        RunSummary,
        Unused,
        find_unused,
        list_runs,
        load_model,
        remove_unused,
        show_run,
    )
    from manymetrics.values import (
        Clusters,
        Examples,
        Mix,
        ObservedPairs,
        Similarity,
        Task,
        TaskBank,
        TransferMatrix,
    )
    from manymetrics.weigh import FewShotClassifier, Rules, fit_mix

__version__ = "0.1.0"

_HOMES = {
    "collect": ("BankReport", "inspect_bank", "load_tasks", "read_examples", "sample_bank", "write_bank"),
    "encode": ("WordVectors", "get_vectors", "list_vectors", "load_vectors", "read_bank"),
    "engine": ("Engine", "Limits", "Progress"),
    "errors": (
        "DataError",
        "DidNotConverge",
        "EnvironmentProblem",
        "InputError",
        "ManyMetricsError",
        "MissingExtra",
        "MissingVectors",
        "ModelError",
        "NotEnoughExamples",
        "RecipeError",
        "TaskFormatError",
        "TaskLeftOut",
        "UnitLeftOut",
        "UnitsFailed",
    ),
    "evaluation": ("Demo", "Estimate", "Evaluation", "evaluate", "run_demo"),
    "learn": ("learn_metrics",),
    "measure": ("measure_transfer", "train_task_models"),
    "partition": ("cluster_tasks", "complete_similarity", "keep_reliable_pairs"),
    "recipe": ("Recipe",),
    "specialize": ("Metric", "train_metrics"),
    "store": (
        "Failure",
        "MetricModel",
        "Run",
        "RunSummary",
        "Unused",
        "find_unused",
        "list_runs",
        "load_model",
        "remove_unused",
        "show_run",
    ),
    "values": ("Clusters", "Examples", "Mix", "ObservedPairs", "Similarity", "Task", "TaskBank", "TransferMatrix"),
    "weigh": ("FewShotClassifier", "Rules", "fit_mix"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'manymetrics' has no attribute {name!r}")
    return getattr(importlib.import_module(f"manymetrics.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "BankReport",
    "Clusters",
    "DataError",
    "Demo",
    "DidNotConverge",
    "Engine",
    "EnvironmentProblem",
    "Estimate",
    "Evaluation",
    "Examples",
    "Failure",
    "FewShotClassifier",
    "InputError",
    "Limits",
    "ManyMetricsError",
    "Metric",
    "MetricModel",
    "MissingExtra",
    "MissingVectors",
    "Mix",
    "ModelError",
    "NotEnoughExamples",
    "ObservedPairs",
    "Progress",
    "Recipe",
    "RecipeError",
    "Rules",
    "Run",
    "RunSummary",
    "Similarity",
    "Task",
    "TaskBank",
    "TaskFormatError",
    "TaskLeftOut",
    "TransferMatrix",
    "UnitLeftOut",
    "UnitsFailed",
    "Unused",
    "WordVectors",
    "cluster_tasks",
    "complete_similarity",
    "evaluate",
    "find_unused",
    "fit_mix",
    "get_vectors",
    "inspect_bank",
    "keep_reliable_pairs",
    "learn_metrics",
    "list_runs",
    "list_vectors",
    "load_model",
    "load_tasks",
    "load_vectors",
    "measure_transfer",
    "read_bank",
    "read_examples",
    "remove_unused",
    "run_demo",
    "sample_bank",
    "show_run",
    "train_metrics",
    "train_task_models",
    "write_bank",
]
