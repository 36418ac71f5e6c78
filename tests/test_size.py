"""The light package stays light: how many wheels it takes to install it, and how large they are."""

import importlib

import pytest

import manymetrics as mm


def test_the_light_package_stays_within_its_budget(monkeypatch):
    monkeypatch.syspath_prepend(mm.__file__.rsplit("/src/", 1)[0])  # the weighing is not installed with the package
    size = importlib.import_module("benchmarks.size")
    try:
        sizes = size.wheel_sizes()
    except size.NotFetched as problem:
        pytest.skip(f"pip cannot fetch wheels on this machine: {problem}")
    starter = sizes.pop(size.STARTER)
    packages = {name.split("-")[0] for name in sizes}
    assert {"manymetrics", "numpy", "onnxruntime", "scikit_learn", "tokenizers"} <= packages
    assert not packages & {"torch", "pyarrow", "transformers"}
    assert len(sizes) <= 45 == size.MOST_PACKAGES
    assert sum(sizes.values()) - starter <= 115_000_000 == size.MOST_MEGABYTES * size.MEGABYTE
    assert 0 < starter <= 12_000_000 == size.MOST_STARTER * size.MEGABYTE
