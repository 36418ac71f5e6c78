"""Stage 3, TaskBank -> S: a representation trained on each task, and how well each one serves the others."""

from manymetrics.measure.convolution import ConvolutionRepresentation
from manymetrics.measure.evidence import Evidence, combine_evidence
from manymetrics.measure.heads import Head, fit_head
from manymetrics.measure.transfer import (
    choose_pairs,
    fit_single_tasks,
    measure_transfer,
    pairs_needed,
    pairs_to_measure,
)
