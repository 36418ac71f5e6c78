"""One self-contained HTML page about a model, and its figures as files.

A page is a header and a list of sections. The experiments of the repository add sections of their own.
"""

from manymetrics.report.write import write_figures, write_report

__all__ = ["write_figures", "write_report"]
