import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.encode import Labelled, random_vectors, read_bank
from manymetrics.encode.reading import part
from manymetrics.values import Examples, Task, TaskBank

VECTORS = random_vectors(rows=64, dimensions=4)
TRAIN = Examples(("lamp on", "lamp off", "more"), ("on", "off", "on"))
VALID, TEST = Examples(("off now",), ("off",)), Examples(("secret words of the test",), ("on",))


def test_a_bank_is_read_with_labels_as_places():
    read = read_bank(TaskBank((Task("lamps", TRAIN, VALID),)), VECTORS)
    assert read.names == ("lamps",)
    assert read["lamps"].labels == ("off", "on")
    assert read["lamps"].train.labels.tolist() == [1, 0, 1]
    assert read["lamps"].valid.labels.tolist() == [0]
    assert read["lamps"].train.tokens.ids.tolist() == VECTORS.read(TRAIN.texts).ids.tolist()


def test_test_examples_stay_behind():
    (task,) = read_bank(TaskBank((Task("lamps", TRAIN, VALID, TEST),)), VECTORS)
    assert not {*TEST.texts} & {*task.train.tokens.texts, *task.valid.tokens.texts}


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 99))
def test_held_out_examples_leave_every_label_one_that_is_kept(labels, share, seed):
    texts = VECTORS.read([str(number) for number in range(len(labels))])
    kept, held = part(Labelled(texts, np.array(labels)), share, np.random.default_rng(seed))
    assert sorted([*kept.tokens.texts, *held.tokens.texts]) == sorted(texts.texts)
    assert set(kept.labels.tolist()) == set(labels)
    for text, label in zip(held.tokens.texts, held.labels, strict=True):
        assert labels[int(text)] == label


def test_a_share_is_held_out_of_every_label():
    labels = np.repeat([0, 1], [10, 20])
    examples = Labelled(VECTORS.read([str(number) for number in range(30)]), labels)
    _, held = part(examples, 0.2, np.random.default_rng(0))
    assert np.bincount(held.labels).tolist() == [2, 4]
