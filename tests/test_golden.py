"""The numbers of learning and answering stay as they were recorded: `tests/golden/record.py` says which."""

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
from golden.record import differences, record

TOLERANCE = 1e-4  # on the machine of the recording the difference is 0; other processors round differently


def test_numbers_are_as_recorded():
    assert {name: change for name, change in differences(record()).items() if not change <= TOLERANCE} == {}
