"""Few-shot text classification for people who serve many different tasks.

From a bank of labelled tasks learn several metrics, one for each cluster of tasks that help one another; give a new
task with a handful of examples its own mix of them. Everything public is here, and is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manymetrics.collect import (
        BankReport,
        DataReport,
        Imported,
        add_to_bank,
        check_amazon,
        export_lines,
        get_amazon,
        import_tasks,
        inspect_bank,
        load_tasks,
        read_examples,
        sample_bank,
        write_bank,
    )
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
    from manymetrics.evaluation import (
        Demo,
        Estimate,
        Evaluation,
        ScopeEvaluation,
        evaluate,
        evaluate_scope,
        reproduce,
        run_demo,
    )
    from manymetrics.learn import learn_metrics
    from manymetrics.measure import measure_transfer, train_task_models
    from manymetrics.partition import cluster_tasks, complete_similarity, keep_reliable_pairs
    from manymetrics.recipe import Recipe
    from manymetrics.report import write_figures, write_report
    from manymetrics.specialize import Metric, train_metrics
    from manymetrics.store import (
        Failure,
        MetricModel,
        OnnxExport,
        Run,
        RunSummary,
        Unused,
        export_onnx,
        find_unused,
        list_runs,
        load_classifier,
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
    from manymetrics.weigh import Diagnosis, Explanation, FewShotClassifier, Rules, Suggestion, Trust, fit_mix
    from manymetrics.weigh.vector_classifier import VectorClassifier

__version__ = "0.1.0"

_HOMES = {
    "collect": (
        "BankReport",
        "DataReport",
        "Imported",
        "add_to_bank",
        "check_amazon",
        "export_lines",
        "get_amazon",
        "import_tasks",
        "inspect_bank",
        "load_tasks",
        "read_examples",
        "sample_bank",
        "write_bank",
    ),
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
    "evaluation": (
        "Demo",
        "Estimate",
        "Evaluation",
        "ScopeEvaluation",
        "evaluate",
        "evaluate_scope",
        "reproduce",
        "run_demo",
    ),
    "learn": ("learn_metrics",),
    "measure": ("measure_transfer", "train_task_models"),
    "partition": ("cluster_tasks", "complete_similarity", "keep_reliable_pairs"),
    "recipe": ("Recipe",),
    "report": ("write_figures", "write_report"),
    "specialize": ("Metric", "train_metrics"),
    "store": (
        "Failure",
        "MetricModel",
        "OnnxExport",
        "Run",
        "RunSummary",
        "Unused",
        "export_onnx",
        "find_unused",
        "list_runs",
        "load_classifier",
        "load_model",
        "remove_unused",
        "show_run",
    ),
    "values": ("Clusters", "Examples", "Mix", "ObservedPairs", "Similarity", "Task", "TaskBank", "TransferMatrix"),
    "weigh": ("Diagnosis", "Explanation", "FewShotClassifier", "Rules", "Suggestion", "Trust", "fit_mix"),
    "weigh.vector_classifier": ("VectorClassifier",),
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
    "DataReport",
    "Demo",
    "Diagnosis",
    "DidNotConverge",
    "Engine",
    "EnvironmentProblem",
    "Estimate",
    "Evaluation",
    "Examples",
    "Explanation",
    "Failure",
    "FewShotClassifier",
    "Imported",
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
    "OnnxExport",
    "Progress",
    "Recipe",
    "RecipeError",
    "Rules",
    "Run",
    "RunSummary",
    "ScopeEvaluation",
    "Similarity",
    "Suggestion",
    "Task",
    "TaskBank",
    "TaskFormatError",
    "TaskLeftOut",
    "TransferMatrix",
    "Trust",
    "UnitLeftOut",
    "UnitsFailed",
    "Unused",
    "VectorClassifier",
    "WordVectors",
    "add_to_bank",
    "check_amazon",
    "cluster_tasks",
    "complete_similarity",
    "evaluate",
    "evaluate_scope",
    "export_lines",
    "export_onnx",
    "find_unused",
    "fit_mix",
    "get_amazon",
    "get_vectors",
    "import_tasks",
    "inspect_bank",
    "keep_reliable_pairs",
    "learn_metrics",
    "list_runs",
    "list_vectors",
    "load_classifier",
    "load_model",
    "load_tasks",
    "load_vectors",
    "measure_transfer",
    "read_bank",
    "read_examples",
    "remove_unused",
    "reproduce",
    "run_demo",
    "sample_bank",
    "show_run",
    "train_metrics",
    "train_task_models",
    "write_bank",
    "write_figures",
    "write_report",
]
