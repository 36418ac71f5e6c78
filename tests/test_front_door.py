"""The front door: what is promised, what is listed and what is there are the same names."""

import ast
import importlib
from pathlib import Path

import pytest

import manymetrics as mm

FRONT = Path(mm.__file__)


def promised_to_type_checkers() -> dict[str, str]:
    """Name -> module, from the imports that only type checkers see."""
    tree = ast.parse(FRONT.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loaded_on_use() -> dict[str, str]:
    return {name: f"manymetrics.{home}" for home, names in mm._HOMES.items() for name in names}


def test_what_type_checkers_see_is_what_is_loaded():
    assert promised_to_type_checkers() == loaded_on_use()


def test_what_is_listed_is_what_is_loaded():
    assert sorted(mm.__all__) == sorted(loaded_on_use())


def test_names_are_listed_once_and_in_order():
    assert mm.__all__ == sorted(set(mm.__all__))
    assert list(mm._HOMES) == sorted(mm._HOMES)
    for home, names in mm._HOMES.items():
        assert list(names) == sorted(set(names)), home


def test_dir_shows_the_public_names():
    assert dir(mm) == sorted(mm.__all__)


@pytest.mark.parametrize("name", mm.__all__)
def test_every_name_is_there_and_tells_what_it_is(name):
    found = getattr(mm, name)
    assert callable(found)
    assert found.__name__ == name
    assert found.__doc__


@pytest.mark.parametrize("home", mm._HOMES)
def test_a_home_exports_what_the_front_door_takes_from_it(home):
    module = importlib.import_module(f"manymetrics.{home}")
    if hasattr(module, "__all__"):
        assert set(mm._HOMES[home]) <= set(module.__all__)
        assert module.__all__ == sorted(module.__all__)


def test_every_error_of_the_family_is_public():
    errors = importlib.import_module("manymetrics.errors")
    family = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert family == set(mm._HOMES["errors"])


def test_a_name_that_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'manymetrics' has no attribute 'learn_metric'"):
        mm.learn_metric  # noqa: B018


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert mm.__version__ == version("manymetrics")
