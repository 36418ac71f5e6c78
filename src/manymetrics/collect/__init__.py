"""Collect: files -> TaskBank, the first of the six stages.

    load_tasks        a folder, or a list of tasks -> TaskBank      plain files, the Amazon layout, Rasa NLU
    inspect_bank      a folder -> BankReport                        sizes, balance, duplicates, what is left out
    import_tasks      exports of other programs -> Imported         tables of any names, Hugging Face, chatbot services
    split_examples    Examples -> train, valid, test                64 / 16 / 20, copies of a text stay together

`bank` reads and writes folders of tasks, `readers` read single files, `importers` know the formats of other programs.
"""

from manymetrics.collect.bank.folder import load_tasks
from manymetrics.collect.bank.labels import describe_similar_labels
from manymetrics.collect.bank.manifest import read_families
from manymetrics.collect.bank.report import BankReport, TaskReport, inspect_bank
from manymetrics.collect.bank.sample import planted_family, sample_bank
from manymetrics.collect.bank.splits import split_examples
from manymetrics.collect.bank.write import add_to_bank, export_lines, write_bank
from manymetrics.collect.importers.assemble import Imported
from manymetrics.collect.importers.registry import import_tasks
from manymetrics.collect.readers.table import read_examples, read_texts

__all__ = [
    "BankReport",
    "Imported",
    "TaskReport",
    "add_to_bank",
    "describe_similar_labels",
    "export_lines",
    "import_tasks",
    "inspect_bank",
    "load_tasks",
    "planted_family",
    "read_examples",
    "read_families",
    "read_texts",
    "sample_bank",
    "split_examples",
    "write_bank",
]
