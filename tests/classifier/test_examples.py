import numpy as np
import pandas as pd
import polars as pl
import pytest

from manymetrics.classifier.examples import support_set
from manymetrics.errors import DataError, InputError, NotEnoughExamples

TWO = ["x", "y"]
REFUSED = [
    (["a", "b"], ["x", None], DataError, r"Found the label None in row 1\. Every example needs a label"),
    (["a", "b"], [1.0, float("nan")], DataError, "Found the label nan in row 1"),
    (["a", "b"], pd.Series(["x", None], dtype="string"), DataError, "Found the label .* in row 1"),
    (["a", "b"], pd.array([1, None], dtype="Int64"), DataError, "Found the label .* in row 1"),
    (["a", "b"], [pd.NaT, "x"], DataError, "Found the label NaT in row 0"),
    (["a", "b", "c"], TWO, DataError, r"Found 3 texts and 2 labels\. Give one label for each text\."),
    (["a", "b"], ["x", "x"], NotEnoughExamples, r"Found 2 examples of one label, 'x'\. A classifier needs"),
    ([], [], NotEnoughExamples, "Found no examples"),
    (["a", "b"], ["x", 1], DataError, "Some labels are strings and some are not"),
    (["a", "b"], [True, 0], DataError, "True equals 1"),
    ("text", TWO, DataError, r"Found one text where a list of texts was expected.*\[text\]"),
    (["a", None], TWO, DataError, "Found None of type NoneType in row 1 where a text was expected"),
    ([b"a", "b"], TWO, DataError, "Found b'a' of type bytes in row 0"),
    ([["a"], ["b"]], TWO, DataError, r"Found \['a'\] of type list in row 0"),
    (pd.DataFrame({"text": ["a", "b"]}), TWO, DataError, "Found a table where a list of texts .* one column"),
    (pl.DataFrame({"text": ["a", "b"]}), TWO, DataError, "Found a table where a list of texts .* one column"),
    (["a", "b"], np.array([["x"], ["y"]]), DataError, r"Found the label .* in row 0\. .* strings or numbers"),
    (["a", "b"], [("x", 1), ("y", 2)], DataError, r"Found the label \('x', 1\) in row 0"),
    (["a", "b"], "xy", DataError, "Found one label where a list of labels was expected"),
    (None, TWO, DataError, "Found None where a list of texts was expected"),
    (["a", "b"], None, DataError, "Found None where a list of labels was expected"),
]


@pytest.mark.parametrize(("texts", "labels", "kind", "message"), REFUSED)
def test_examples_that_cannot_be_used_are_refused_each_in_one_clear_sentence(texts, labels, kind, message):
    with pytest.raises(kind, match=message):
        support_set(texts, labels)


def test_five_thousand_labels_are_refused():
    texts = [str(number) for number in range(5000)]
    told = r"Found 5000 labels; a classifier has at most 1000. Are the label and the text columns swapped\?"
    with pytest.raises(InputError, match=told):
        support_set(texts, texts)


def test_examples_come_in_the_order_of_their_labels_and_then_of_their_texts():
    found = support_set(["d", "b", "c", "a"], ["x", "y", "x", "y"])
    assert found.texts == ("c", "d", "a", "b")
    assert found.labels == ("x", "x", "y", "y")
    assert found.numbers.tolist() == [0, 0, 1, 1]
    assert found.class_names == ("x", "y")


def test_labels_that_are_numbers_stay_numbers_of_their_type():
    for kind in (int, float, np.int64, bool):
        labels = [kind(number) for number in (1, 0)]
        found = support_set(["a", "b"], labels).classes
        assert (found.tolist(), found.dtype) == ([0, 1], np.array(labels).dtype)


# --- descriptions


def test_a_label_that_is_described_need_not_have_an_example():
    found = support_set(["b", "a"], ["order", "order"], {"weather": "rain and sun", "order": " where is it "})
    assert found.classes.tolist() == ["order", "weather"]
    assert (found.numbers.tolist(), found.empty_labels) == ([0, 0], ["weather"])
    assert found.names == ("where is it", "rain and sun")
    assert found.take([1]).names == found.names
    assert found.take([1]).empty_labels == ["weather"]


def test_a_label_without_a_description_is_called_by_its_name():
    found = support_set(["a", "b", "c"], ["orderStatus", "x_y", "z"], {"z": "  "})
    assert found.names == ("order status", "x y", "z")
    assert found.descriptions == {"z": "z"}
    assert support_set(["a", "b"], [3, 1]).names == ("1", "3")


def test_labels_can_be_described_by_numbers_of_any_sort():
    found = support_set(["a", "b"], np.array([1, 2]), {np.int64(3): "third", 1: "first"})
    assert found.classes.tolist() == [1, 2, 3]
    assert found.names == ("first", "2", "third")
    assert support_set([], [], {"x": "one", "y": "other"}).empty_labels == ["x", "y"]


def test_descriptions_that_cannot_be_used_are_refused():
    for descriptions, kind, message in (
        (["x"], DataError, r"Found descriptions of type list\. Give a dict: label -> text\."),
        ({"x": None}, DataError, "Found None of type NoneType in row 0 where a text was expected"),
        ({None: "x"}, DataError, "Found the label None in row 0"),
        ({1: "one"}, DataError, "Some labels are strings and some are not"),
    ):
        with pytest.raises(kind, match=message):
            support_set(["a", "b"], TWO, descriptions)
    with pytest.raises(NotEnoughExamples, match="Found 1 example of one label, 'x'"):
        support_set(["a"], ["x"], {"x": "the only one"})
    with pytest.raises(NotEnoughExamples, match="Found 0 examples of one label, 'x'"):
        support_set([], [], {"x": "the only one"})
