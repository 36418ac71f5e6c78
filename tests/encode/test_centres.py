import numpy as np
import pytest

from manymetrics.encode import read_bank
from manymetrics.encode.centres import centre, task_centres
from manymetrics.values import Examples, Task, TaskBank


def test_the_centre_of_one_word_is_the_direction_of_its_vector(vectors):
    tokens = vectors.read(["lamp"])
    row = vectors.table[tokens.ids[0]]
    np.testing.assert_allclose(centre(tokens, vectors.table), row / np.linalg.norm(row), rtol=1e-6)


def test_every_text_counts_alike_however_long_it_is(vectors):
    middle = centre(vectors.read(["lamp", "music " * 50]), vectors.table)
    lamp, music = (centre(vectors.read([word]), vectors.table) for word in ("lamp", "music"))
    np.testing.assert_allclose(middle @ lamp, middle @ music, rtol=1e-5)


def test_a_task_has_the_centre_of_its_train_texts_alone(vectors):
    train, other = Examples(("lamp on", "music"), ("x", "y")), Examples(("a meeting",), ("x",))
    bank = TaskBank((Task("with", train, other, other), Task("without", train)))
    centres = task_centres(read_bank(bank, vectors))
    assert centres.dtype == np.float32
    assert (centres[0] == centres[1]).all()
    assert np.linalg.norm(centres[0]) == pytest.approx(1, abs=1e-6)
