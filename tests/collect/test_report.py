"""The report on a folder: planted problems are counted, and nothing is ignored."""

from manymetrics.collect import BankReport, inspect_bank
from manymetrics.collect.bank.report import TaskReport
from manymetrics.values import SkippedTask

FILES = {
    # "a" three times (two duplicates), once under the other label (a contradiction)
    "odd.train.tsv": "a\tyes\na\tyes\na\tno\nb\tno\nc\tyes\n",
    # "b" is in train too (shared) and "c" under the other label (shared, a contradiction)
    "odd.valid.tsv": "b\tno\nc\tno\nd\tno\n",
    # "d" is in valid too (shared); "C!" is the same text as "c"
    "odd.test.tsv": "d\tno\nC!\tno\ne\tyes\ne\tyes\n",
    "odd.counter.jsonl": '{"text": "lorem"}\n',
    "plain.train.tsv": "x\tone\ny\ttwo\nz\tthree\nw\tone\n",
    "bad.train.tsv": "no tab\n",
    "gone.counter.jsonl": '{"text": "ipsum"}\n',
    "README.md": "# The bank\n",
    "manifest.json": '[{"name": "odd", "role": "target"}]',
    "old/letter.txt": "dear all",
}


def test_planted_problems_are_counted_and_other_files_are_listed(folder):
    bank = folder(FILES)
    reason = f"{bank / 'bad.train.tsv'}, line 1: found 1 field, expected text<TAB>label. Check the separator."
    odd = TaskReport("odd", "target", labels=2, train=5, valid=3, test=4, largest_share=0.6, duplicates=2, shared=3,
                     contradictions=2)  # fmt: skip
    plain = TaskReport("plain", "meta-train", labels=3, train=4, valid=0, test=0, largest_share=0.5, duplicates=0,
                       shared=0, contradictions=0)  # fmt: skip
    assert inspect_bank(bank) == BankReport(
        path=str(bank),
        tasks=(odd, plain),
        left_out=(SkippedTask("bad", reason),),
        not_tasks=("README.md", "gone.counter.jsonl", "old/"),
        counter_files=("odd.counter.jsonl",),
    )
