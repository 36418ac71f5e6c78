# fmt: off
# Every public name and where it lives: `__init__.py` reads this list, and so do type checkers.
from manymetrics.classifier import (
    Classifier as Classifier, Answers as Answers, Diagnosis as Diagnosis, Explanation as Explanation, FewShotClassifier as FewShotClassifier, Predictor as Predictor, Suggestion as Suggestion,
)
from manymetrics.client import Client as Client, RemoteClassifier as RemoteClassifier
from manymetrics.collect import (
    BankReport as BankReport, Imported as Imported, add_to_bank as add_to_bank, describe_similar_labels as describe_similar_labels, export_lines as export_lines,
    import_tasks as import_tasks, inspect_bank as inspect_bank, load_tasks as load_tasks, planted_family as planted_family, read_examples as read_examples, read_texts as read_texts, sample_bank as sample_bank, write_bank as write_bank,
)
from manymetrics.encode import (
    EmbeddedTexts as EmbeddedTexts, Encoder as Encoder, Fitted as Fitted, Representation as Representation, SentenceEncoder as SentenceEncoder, State as State, WordVectors as WordVectors, describe_encoder as describe_encoder, get_encoder as get_encoder, get_vectors as get_vectors,
    list_encoders as list_encoders, list_vectors as list_vectors, load_encoder as load_encoder, load_vectors as load_vectors, describe_unfamiliar as describe_unfamiliar,
    text_cache_of as text_cache_of,
)
from manymetrics.engine import Engine as Engine, Execution as Execution, Limits as Limits, Progress as Progress, ProgressDisplay as ProgressDisplay
from manymetrics.errors import (
    DataError as DataError, DidNotConverge as DidNotConverge, EnvironmentProblem as EnvironmentProblem, InputError as InputError, ManyMetricsError as ManyMetricsError, MissingEncoder as MissingEncoder, MissingExtra as MissingExtra, MissingVectors as MissingVectors,
    ModelError as ModelError, NotEnoughExamples as NotEnoughExamples, RecipeError as RecipeError, ServiceError as ServiceError, TaskFormatError as TaskFormatError, TaskSkipped as TaskSkipped, TrainingWarning as TrainingWarning, JobSkipped as JobSkipped, StageFailed as StageFailed,
)
from manymetrics.evaluation import (
    BaselineResult as BaselineResult, Demo as Demo, Estimate as Estimate, Evaluation as Evaluation, ScopeEvaluation as ScopeEvaluation, choose_targets as choose_targets, evaluate as evaluate,
    evaluate_leave_one_out as evaluate_leave_one_out, evaluate_scope as evaluate_scope, run_demo as run_demo,
)
from manymetrics.learn import learn_metrics as learn_metrics
from manymetrics.measure import fit_single_tasks as fit_single_tasks, measure_transfer as measure_transfer
from manymetrics.model import (
    MetricModel as MetricModel, Origin as Origin, load_classifier as load_classifier, load_model as load_model,
    load_origin as load_origin, remove_parts as remove_parts, check_output_folders as check_output_folders,
)
from manymetrics.partition import (
    cluster_tasks as cluster_tasks, complete_similarity as complete_similarity, filter_pairs as filter_pairs,
)
from manymetrics.recipe import Recipe as Recipe
from manymetrics.report import draw_similarity as draw_similarity, write_report as write_report
from manymetrics.specialize import Metric as Metric, train_metrics as train_metrics
from manymetrics.store import Failure as Failure
from manymetrics.values import (
    Clusters as Clusters, Episode as Episode, Examples as Examples, SharedData as SharedData, ObservedPairs as ObservedPairs, Similarity as Similarity, Task as Task, TaskBank as TaskBank, TransferMatrix as TransferMatrix,
)
from manymetrics.weigh import Assignment as Assignment

__version__: str
__all__: list[str]
