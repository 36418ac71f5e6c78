"""Collect: files -> TaskBank, the first of the six stages.

    load_tasks        a folder, or a list of tasks -> TaskBank      plain files, the Amazon layout, Rasa NLU
    inspect_bank      a folder -> BankReport                        sizes, balance, duplicates, what is left out
    import_tasks      what others export -> TaskBank                tables of any names, Hugging Face, chatbot services
    split_examples    Examples -> Split                             train, valid and test
    EpisodeSampler    labels -> rows, again and again               small tasks to train on

No other stage knows file formats; every text that comes from here is clean.
"""

from manymetrics.collect.assembling import Imported
from manymetrics.collect.episodes import EpisodeSampler, Split, split_examples
from manymetrics.collect.folder import load_tasks, read_families
from manymetrics.collect.formats import read_examples
from manymetrics.collect.importing import import_tasks
from manymetrics.collect.inspection import BankReport, TaskReport, inspect_bank
from manymetrics.collect.sample import planted_family, sample_bank
from manymetrics.collect.writing import add_to_bank, export_lines, write_bank

__all__ = [
    "BankReport",
    "EpisodeSampler",
    "Imported",
    "Split",
    "TaskReport",
    "add_to_bank",
    "export_lines",
    "import_tasks",
    "inspect_bank",
    "load_tasks",
    "planted_family",
    "read_examples",
    "read_families",
    "sample_bank",
    "split_examples",
    "write_bank",
]
