from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load, save

from manymetrics.errors import DataError
from manymetrics.store import packed
from manymetrics.values import Floats, Ints


@dataclass(frozen=True, eq=False)
class Inner:
    weights: Floats
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Outer:
    inner: Inner
    numbers: Ints
    temperature: Annotated[float, msgspec.Meta(gt=0)]
    tensors: Mapping[str, Floats] = field(default_factory=dict)
    count: int | None = None
    loss: float = float("inf")

    def __post_init__(self) -> None:
        if len(self.numbers) > 3:
            raise DataError("There are more than three numbers.")


VALUE = Outer(Inner(np.ones((2, 3), "f4"), ("a", "ü \ud800")), np.arange(3), 2.0, {"x": np.zeros(1)}, 4)


def changed(change: Any) -> bytes:
    tree = packed.read(packed.dump(VALUE))
    change(tree)
    return packed.dump(tree)


def test_a_value_comes_back_and_equal_values_have_equal_bytes():
    again = packed.parse(packed.dump(VALUE), Outer)
    assert (again.inner.labels, again.temperature, again.count, again.loss) == (("a", "ü \ud800"), 2.0, 4, np.inf)
    assert (again.inner.weights == VALUE.inner.weights).all()
    assert again.inner.weights.dtype == np.float32
    assert list(again.tensors) == ["x"]
    assert packed.dump(again) == packed.dump(VALUE) != packed.dump(replace(VALUE, count=5))
    assert packed.parse(packed.dump(replace(VALUE, loss=0.5)), Outer).loss == 0.5


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_by_name(odd):
    spoiled = replace(VALUE, tensors={"x": np.array([1.0, odd])})
    with pytest.raises(DataError, match="the array tensors/x holds values that are not finite"):
        packed.dump(spoiled)
    with pytest.raises(DataError, match="temperature is not finite"):
        packed.dump(replace(VALUE, temperature=odd))


@pytest.mark.parametrize(
    ("text", "message"), [("1e400", "not finite"), ("NaN", "not finite"), ("9" * 30, "more than 64 bits")]
)
def test_numbers_that_cannot_be_used_are_refused_on_reading(text, message):
    payload = packed.dump(replace(VALUE, count=4711))
    json_text = msgspec.json.decode(payload[8 : 8 + int.from_bytes(payload[:8], "little")])["__metadata__"]["value"]
    with pytest.raises(DataError, match=f"count is .*{message}"):
        packed.parse(save(load(payload), {"value": json_text.replace("4711", text)}), Outer)


def test_nan_marks_a_missing_value_where_it_is_allowed():
    gaps = replace(VALUE, tensors={"x": np.array([1.0, np.nan])})
    again = packed.parse(packed.dump(gaps, with_gaps=["tensors/x"]), Outer, with_gaps=["tensors/x"])
    assert np.isnan(again.tensors["x"][1])
    with pytest.raises(DataError, match="the array tensors/x holds values that are not finite"):
        packed.parse(packed.dump(gaps, with_gaps=["tensors/x"]), Outer)
    with pytest.raises(DataError, match="not finite"):
        packed.dump(replace(VALUE, tensors={"x": np.array([np.inf])}), with_gaps=["tensors/x"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.update(temperature=-55), r"Expected `float` > 0.* - at `\$\.temperature`"),
        (lambda tree: tree.update(temperature="hot"), r"Expected `float`, got `str` - at `\$\.temperature`"),
        (lambda tree: tree.update(count=True), r"Expected `int \| null`, got `bool`"),
        (lambda tree: tree.pop("inner"), r"missing required field `inner`"),
        (lambda tree: tree["inner"].update(labels="ab"), r"Expected `array`, got `str` - at `\$\.inner\.labels`"),
        (lambda tree: tree.update(numbers=np.zeros(3)), r"expected an array of integer, got float64"),
        (lambda tree: tree.update(numbers=[1, 2]), r"expected an array of integer, got list"),
        (lambda tree: tree["inner"].update(weights=None), r"expected an array of floating, got NoneType"),
        (lambda tree: tree.update(numbers=np.arange(4)), "There are more than three numbers"),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused_with_its_path(change, message):
    with pytest.raises(DataError, match=message):
        packed.parse(changed(change), Outer)


def test_other_files_are_refused():
    payload = packed.dump(VALUE)
    cut = [payload[:size] for size in (0, 7, 50, len(payload) - 1)]
    for other in (*cut, b"\xff" * 100, save({}), save({}, {"value": "[" * 100_000}), save({}, {"value": "NaN "})):
        with pytest.raises(DataError):
            packed.parse(other, Outer)
    text = msgspec.json.decode(payload[8 : 8 + int.from_bytes(payload[:8], "little")])["__metadata__"]["value"]
    tensors = load(payload)
    del tensors["inner/weights"]
    with pytest.raises(DataError, match="the array inner/weights is missing"):
        packed.parse(save(tensors, {"value": text}), Outer)


def test_objects_of_other_types_are_written_and_read_by_hooks():
    @dataclass(frozen=True)
    class Holder:
        item: complex | None

    payload = packed.dump(Holder(2 + 1j), {complex: str})
    assert packed.convert(packed.read(payload), Holder, lambda kind, text: kind(text)) == Holder(2 + 1j)
    with pytest.raises(DataError, match="a value of type complex cannot be read here"):
        packed.parse(payload, Holder)
