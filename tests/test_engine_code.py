"""The keys of a run's jobs are computed from source files: nothing is imported, and a library may be missing."""

import pytest

from python_process import run_python
from tiny_sentence import vocabulary_of, write_folder


def test_a_key_is_computed_without_importing_what_it_is_computed_from():
    script = """
import sys
from manymetrics.engine.code import code_fingerprint
from manymetrics.measure.transfer import fit_single_task
before = set(sys.modules)
code_fingerprint(fit_single_task)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded & {"manymetrics", "numba", "torch"}), "numba" in sys.modules)
"""
    assert run_python(script, torch=False) == "[] False"


def test_a_module_that_cannot_be_imported_counts_by_its_source(tmp_path):
    package = tmp_path / "planted"
    (package / "inner").mkdir(parents=True)
    (package / "work.py").write_text("def do():\n    from planted.inner.deep import ONE\n    return ONE\n")
    (package / "inner" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    script = "from manymetrics.engine.code import code_fingerprint as f; from planted.work import do; print(f(do))"
    found = []
    for one in ("1", "1  # a comment", "2"):
        (package / "inner" / "deep.py").write_text(f"import torch\nONE = {one}\n")
        found.append(run_python(script, torch=False, cwd=tmp_path))
    assert found[0] == found[1] != found[2]


def test_learning_with_a_run_needs_no_torch(tmp_path, make_bank):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    write_folder(tmp_path / "tiny", pooling="mean", vocabulary=vocabulary_of(make_bank()), width=16)
    script = """
import manymetrics as mm
from planted_bank import planted_bank
recipe = mm.Recipe(encoder="tiny", projection_steps=5, own_steps=2, clusters=2, shots=2)
for _ in range(2):
    told = []
    model = mm.learn_metrics(planted_bank(), recipe, run="run", report=told.append)
    jobs = [one for one in told if one.stage != "partition" and not one.stage.startswith("weigh")]
    kept = all(one.kept == one.total for one in jobs)
print(kept, [metric.name for metric in model.metrics][-3:])
"""
    assert run_python(script, torch=False, cwd=tmp_path) == "True ['cluster-0', 'cluster-1', 'sentence']"
