"""A model, for people to look at: one page that needs no network, and figures for a paper.

A page is a title, a header and a list of sections. Whoever has more to show than a model, as the experiments in the
repository have, makes further sections and hands them to `page`.
"""

from manymetrics.report.writing import write_figures, write_report

__all__ = ["write_figures", "write_report"]
