"""How much of the package a cached prediction over HTTP passes through, in all threads involved."""

import inspect
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from tests.service.conftest import client_of, create, on_sqlite

import manymetrics

PACKAGE = str(Path(manymetrics.__file__).parent)
pytestmark = on_sqlite


@pytest.fixture
def calls():
    """The functions of the package that are called in any thread, by module; bodies of classes and modules are none."""
    called = defaultdict(set)

    def record(frame, event, _argument):
        code = frame.f_code
        is_ours = code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")
        if event == "call" and is_ours and code.co_flags & inspect.CO_OPTIMIZED:
            called[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)

    threading.setprofile(record)
    sys.setprofile(record)
    yield called
    sys.setprofile(None)
    threading.setprofile(None)


def test_a_cached_prediction_passes_few_functions_in_few_modules(calls, make_app):
    client = client_of(make_app(remember_keys=60))
    path = f"/v1/classifiers/{create(client)['id']}/predictions"
    client.post(path, json={"texts": ["lamp"]})
    calls.clear()
    response = client.post(path, json={"texts": ["play jazz"]})
    assert response.json()["items"][0]["label"] == "music"
    service = {module: functions for module, functions in calls.items() if module.startswith("/service")}
    for walk, max_functions, max_modules in ((service, 27, 9), (calls, 60, 20)):
        assert sum(map(len, walk.values())) <= max_functions, walk
        assert len(walk) <= max_modules, walk
