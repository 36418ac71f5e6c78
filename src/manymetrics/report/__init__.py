"""What was found, for people to look at: one page that needs no network, and figures for a paper."""

from manymetrics.report.writing import write_figures, write_report

__all__ = ["write_figures", "write_report"]
