"""One self-contained HTML page about a model. The experiments of the repository add sections of their own."""

from manymetrics.report.heatmap import draw_similarity
from manymetrics.report.sections import write_report

__all__ = ["draw_similarity", "write_report"]
