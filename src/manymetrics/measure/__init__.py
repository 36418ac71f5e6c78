"""Stage 3, TaskBank -> S: a representation trained on each task, and how well each one serves the others."""

from manymetrics.measure.convolution import ConvolutionRepresentation
from manymetrics.measure.evidence import Evidence, combine_evidence
from manymetrics.measure.heads import Head, fit_head
from manymetrics.measure.pairs import choose_pairs, pairs_needed, pairs_to_measure
from manymetrics.measure.transfer import fit_single_tasks, measure_transfer
