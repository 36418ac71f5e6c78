"""Damaged files of every kind, their checksums made to fit: a sentence, or answers that are finite.

`python tests/faults/mutate.py --count 2000` tries many more.
"""

import json
import sys

import mutate
import numpy as np
import pytest
from operations import LearnWords
from safetensors.numpy import load, save

from manymetrics.errors import ModelError
from manymetrics.learn import learn_metrics
from manymetrics.store.files import DIGEST, with_checksum

COUNT = 200


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and limits the memory of a process")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_damaged_files_of_every_kind_are_refused_or_give_finite_answers(tmp_path):
    for needed in ("onnx", "pyarrow", "yaml"):
        pytest.importorskip(needed)
    told = []
    totals = mutate.run(COUNT, 0, tmp_path, told.append)
    assert totals["WRONG"] == 0, "\n".join(told)
    assert totals["refused"] + totals["used"] == pytest.approx(COUNT, rel=0.05)
    assert totals["refused"] > COUNT / 3
    assert totals["used"] > COUNT / 5


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    learn, folder = LearnWords(), tmp_path_factory.mktemp("run")

    def go_on():
        return learn_metrics(learn.bank, learn.recipe, vectors=learn.vectors, run=folder)

    go_on()
    return folder, go_on


def jobs(folder, stage):
    return sorted((folder / "jobs" / stage).glob("*/*"))


def rewrite(path, payload):
    path.write_bytes(with_checksum(payload, path.name))


@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
def test_a_unit_that_has_a_valid_checksum_but_holds_numbers_that_nothing_bears_is_done_again(learned):
    folder, go_on = learned
    before = {path: path.read_bytes() for path in jobs(folder, "specialize") + jobs(folder, "measure-transfer")}
    for path, raw in before.items():
        if path.parts[-3] == "specialize":
            tensors = load(raw[DIGEST:])
            about = json.loads(raw[DIGEST + 8 :][: int.from_bytes(raw[DIGEST : DIGEST + 8], "little")])
            odd = {**tensors, "tensors/bias": np.full_like(tensors["tensors/bias"], np.nan)}
            rewrite(path, save(odd, metadata=about["__metadata__"]))
        else:
            rewrite(path, b"[" * 100_000)
    go_on()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
def test_a_unit_that_has_a_valid_checksum_but_something_else_is_said_in_a_sentence(learned):
    folder, go_on = learned
    path = jobs(folder, "specialize")[0]
    raw = path.read_bytes()
    rewrite(path, save({"other": np.zeros(3, "f4")}))
    with pytest.raises(ModelError, match=r"The results stored in .* cannot be used: .*Give another folder"):
        go_on()
    path.write_bytes(raw)
    go_on()
