"""A learned model: what answers, where it comes from, and the folder it is saved in."""

from manymetrics.model.change import remove_parts as remove_parts
from manymetrics.model.metric_model import MetricModel as MetricModel
from manymetrics.model.metric_model import check_output_folders as check_output_folders
from manymetrics.model.metric_model import load_classifier as load_classifier
from manymetrics.model.metric_model import load_model as load_model
from manymetrics.model.origin import Clustering as Clustering
from manymetrics.model.origin import Origin as Origin
from manymetrics.model.origin import SharedLabels as SharedLabels
from manymetrics.model.origin import describe_predictor as describe_predictor
from manymetrics.model.origin import load_origin as load_origin
from manymetrics.model.origin import model_folder as model_folder
from manymetrics.model.origin import save_origin as save_origin
