# fmt: off
# Every public name and where it lives: `__init__.py` reads this list, and so do type checkers. What functions return is
# listed by the packages: `mm.classifier.Answers`.
from manymetrics import (
    classifier as classifier, client as client, collect as collect, encode as encode, engine as engine, evaluation as evaluation, model as model,
    report as report, store as store, values as values, weigh as weigh,
)
from manymetrics.classifier import (
    FewShotClassifier as FewShotClassifier, Predictor as Predictor,
)
from manymetrics.client import Client as Client
from manymetrics.collect import (
    add_to_bank as add_to_bank, export_lines as export_lines,
    import_tasks as import_tasks, inspect_bank as inspect_bank, load_tasks as load_tasks, read_examples as read_examples, read_texts as read_texts, sample_bank as sample_bank, write_bank as write_bank,
)
from manymetrics.encode import (
    Encoder as Encoder, Fitted as Fitted, Representation as Representation, SentenceEncoder as SentenceEncoder, WordVectors as WordVectors, describe_encoder as describe_encoder, get_encoder as get_encoder, get_vectors as get_vectors,
    list_encoders as list_encoders, list_vectors as list_vectors, load_encoder as load_encoder, load_vectors as load_vectors, describe_unfamiliar as describe_unfamiliar,
)
from manymetrics.engine import Limits as Limits, Progress as Progress
from manymetrics.errors import (
    DataError as DataError, DidNotConverge as DidNotConverge, EnvironmentProblem as EnvironmentProblem, InputError as InputError, ManyMetricsError as ManyMetricsError, MissingEncoder as MissingEncoder, MissingExtra as MissingExtra, MissingVectors as MissingVectors,
    ModelError as ModelError, NotEnoughExamples as NotEnoughExamples, RecipeError as RecipeError, ServiceError as ServiceError, TaskFormatError as TaskFormatError, TaskSkipped as TaskSkipped, TrainingWarning as TrainingWarning, JobSkipped as JobSkipped, StageFailed as StageFailed,
)
from manymetrics.evaluation import (
    evaluate as evaluate,
    evaluate_leave_one_out as evaluate_leave_one_out, evaluate_scope as evaluate_scope,
)
from manymetrics.learn import learn_metrics as learn_metrics
from manymetrics.measure import fit_single_tasks as fit_single_tasks, measure_transfer as measure_transfer
from manymetrics.model import (
    MetricModel as MetricModel, load_classifier as load_classifier, load_model as load_model,
)
from manymetrics.partition import (
    cluster_tasks as cluster_tasks, complete_similarity as complete_similarity, filter_pairs as filter_pairs,
)
from manymetrics.recipe import Recipe as Recipe
from manymetrics.report import write_report as write_report
from manymetrics.specialize import Metric as Metric, train_metrics as train_metrics
from manymetrics.values import (
    Clusters as Clusters, Examples as Examples, SharedData as SharedData, ObservedPairs as ObservedPairs, Similarity as Similarity, Task as Task, TaskBank as TaskBank, TransferMatrix as TransferMatrix,
)

__version__: str
__all__: list[str]
