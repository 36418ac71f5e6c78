import json

import pytest

from manymetrics.errors import DataError
from manymetrics.store.json_values import named_of, number_of, numbers_of, pair_of, text_of, texts_of, whole_number_of

GOOD = {
    text_of: ('"x"', "x"),
    texts_of: ('["x", "y"]', ("x", "y")),
    number_of: ("2", 2.0),
    whole_number_of: ("-3", -3),
    numbers_of: ('{"a": 1, "b": 2.5}', {"a": 1.0, "b": 2.5}),
    pair_of: ("[1, 2.5]", (1.0, 2.5)),
    named_of: ('{"a": null}', {"a": None}),
}
ODD = [
    "null",
    "true",
    "[]",
    "[null]",
    '["1", "2"]',
    "[1]",
    "NaN",
    "-Infinity",
    '""',
    "2.5",
    "1" + "0" * 30,
    '{"a": "1"}',
    "{}",
]


def test_each_reads_its_own_type():
    for read, (text, expected) in GOOD.items():
        assert read({"value": json.loads(text)}, "value") == expected


def test_other_types_are_refused_by_name():
    fits = {
        text_of: {'""'},
        texts_of: {"[]", '["1", "2"]'},
        number_of: {"2.5", ODD[10]},
        numbers_of: {"{}"},
        named_of: {"{}", '{"a": "1"}'},
    }
    for read in GOOD:
        for text in set(ODD) - fits.get(read, set()):
            with pytest.raises(DataError, match=r"'(value|a)' is a value of type \w+ where .+ was expected"):
                read({"value": json.loads(text)}, "value")
