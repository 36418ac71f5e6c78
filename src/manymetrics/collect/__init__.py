"""Collect: files -> TaskBank, the first of the six stages.

    load_tasks        a folder -> TaskBank                          plain files, the Amazon layout
    inspect_bank      a folder -> BankReport                        sizes, balance, duplicates, what is left out
    import_tasks      exports of other programs -> Imported         tables of any names, Hugging Face, chatbot services

`bank` reads and writes folders of tasks, `readers` read single files, `importers` know the formats of other programs.
"""

from manymetrics.collect.bank.folder import load_tasks as load_tasks
from manymetrics.collect.bank.report import BankReport as BankReport
from manymetrics.collect.bank.report import inspect_bank as inspect_bank
from manymetrics.collect.bank.sample import planted_family as planted_family
from manymetrics.collect.bank.sample import sample_bank as sample_bank
from manymetrics.collect.bank.write import add_to_bank as add_to_bank
from manymetrics.collect.bank.write import export_lines as export_lines
from manymetrics.collect.bank.write import write_bank as write_bank
from manymetrics.collect.importers.tasks import Imported as Imported
from manymetrics.collect.importers.tasks import import_tasks as import_tasks
from manymetrics.collect.readers.tables import read_examples as read_examples
from manymetrics.collect.readers.tables import read_texts as read_texts
