"""Collect: files -> TaskBank, the first of the six rooms.

    load_tasks        a folder, or a list of tasks -> TaskBank      plain files, the Amazon layout, Rasa NLU
    inspect_bank      a folder -> BankReport                        sizes, balance, duplicates, what is left out
    import_tasks      what others export -> TaskBank                tables of any names, Hugging Face, chatbot services
    get_amazon        an address -> a folder                        the paper's public data, fetched and checked
    draw_support      Examples -> Support                           the same number of shots for every label
    draw_one_plus     Examples -> Support                           one shot for every label, and some more
    split_examples    Examples -> Split                             train, valid and test
    EpisodeDrawer     labels -> Episode, again and again            small tasks to train on

This is the only room that knows file formats; every text that leaves it is clean.
"""

from manymetrics.collect.amazon import DataReport, check_amazon, get_amazon
from manymetrics.collect.episodes import (
    Episode,
    EpisodeDrawer,
    Split,
    Support,
    draw_episode,
    draw_one_plus,
    draw_support,
    split_examples,
)
from manymetrics.collect.folder import load_tasks
from manymetrics.collect.formats import read_examples
from manymetrics.collect.importing import Imported, import_tasks
from manymetrics.collect.inspection import BankReport, TaskReport, inspect_bank
from manymetrics.collect.sample import planted_family, sample_bank
from manymetrics.collect.writing import add_to_bank, export_lines, write_bank

__all__ = [
    "BankReport",
    "DataReport",
    "Episode",
    "EpisodeDrawer",
    "Imported",
    "Split",
    "Support",
    "TaskReport",
    "add_to_bank",
    "check_amazon",
    "draw_episode",
    "draw_one_plus",
    "draw_support",
    "export_lines",
    "get_amazon",
    "import_tasks",
    "inspect_bank",
    "load_tasks",
    "planted_family",
    "read_examples",
    "sample_bank",
    "split_examples",
    "write_bank",
]
