"""One self-contained HTML page about a model."""

from manymetrics.report.sections import write_report as write_report
