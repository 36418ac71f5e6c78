"""The fair queue and the limits: tenants in turn, refusals at once, batches together."""

import threading
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import EXAMPLES

from manymetrics.service.api import create_app
from manymetrics.service.limits import RateLimits
from manymetrics.service.problems import TooMany, Unavailable
from manymetrics.service.queue import FairQueue, call_each


class Held:
    """A worker that notes what it is given, and waits until it is let go."""

    def __init__(self):
        self.batches, self.go, self.begun = [], threading.Event(), threading.Event()

    def __call__(self, pieces):
        self.batches.append([piece.work for piece in pieces])
        self.begun.set()
        self.go.wait()
        for piece in pieces:
            piece.result.set_result(piece.work)


def queue_with_one_begun(**options):
    held = Held()
    queue = FairQueue(held, **{"waiting": 100, "waiting_each": 100, **options})
    first = queue.submit("first", "first")
    held.begun.wait()
    return queue, held, first


def test_a_tenant_that_floods_lets_the_others_through():
    queue, held, _ = queue_with_one_begun()
    flood = [queue.submit("flood", f"flood {number}") for number in range(50)]
    calm = [queue.submit("calm", f"calm {number}") for number in range(3)]
    held.go.set()
    for one in [*flood, *calm]:
        one.result()
    order = [work for batch in held.batches for work in batch]
    assert order[:7] == ["first", "flood 0", "calm 0", "flood 1", "calm 1", "flood 2", "calm 2"]
    queue.stop()


def test_a_full_line_refuses_its_tenant_and_a_full_queue_everybody():
    queue, held, _ = queue_with_one_begun(waiting=5, waiting_each=3)
    for number in range(3):
        queue.submit("a", number)
    with pytest.raises(TooMany, match="More requests are waiting") as refused:
        queue.submit("a", 3)
    assert refused.value.retry_after >= 1
    queue.submit("b", 0)
    queue.submit("c", 0)
    with pytest.raises(TooMany):
        queue.submit("d", 0)
    held.go.set()
    queue.stop()


def test_what_waits_together_is_done_together_up_to_a_size():
    queue, held, _ = queue_with_one_begun(batch=10)
    waiting = [queue.submit(tenant, tenant, size=4) for tenant in "abc"]
    held.go.set()
    assert [one.result() for one in waiting] == ["a", "b", "c"]
    assert held.batches[1:] == [["a", "b"], ["c"]]
    queue.stop()


def test_a_failure_reaches_its_own_caller_only():
    def fail():
        raise KeyError("mine")

    queue = FairQueue(call_each, waiting=10, waiting_each=10, batch=10)
    bad, good = queue.submit("a", fail), queue.submit("b", lambda: 7)
    assert good.result() == 7
    with pytest.raises(KeyError, match="mine"):
        bad.result()
    queue.stop()


def test_whoever_goes_away_while_waiting_leaves_the_others_their_turn():
    queue, held, _ = queue_with_one_begun()
    gone = queue.submit("a", "gone")
    assert gone.cancel()
    held.go.set()
    assert queue.submit("b", "there").result() == "there"
    assert ["gone"] not in held.batches
    queue.stop()


def test_a_queue_that_is_stopped_finishes_what_waits_and_takes_nothing_more():
    queue, held, first = queue_with_one_begun()
    waiting = queue.submit("a", "a")
    threading.Timer(0.05, held.go.set).start()
    queue.stop()
    assert (first.result(), waiting.result()) == ("first", "a")
    with pytest.raises(Unavailable, match="The service is stopping"):
        queue.submit("a", "b")


def test_a_bucket_fills_at_its_rate():
    time = [0.0]
    limits = RateLimits(clock=lambda: time[0])
    for _ in range(3):
        limits.take("a", rate=2, burst=3)
    with pytest.raises(TooMany) as refused:
        limits.take("a", rate=2, burst=3)
    assert refused.value.retry_after == 0.5
    limits.take("b", rate=2, burst=3)
    time[0] = 0.5
    limits.take("a", rate=2, burst=3)
    with pytest.raises(TooMany):
        limits.take("a", rate=2, burst=3)


def test_beyond_its_rate_a_tenant_is_told_when_to_come_back_and_others_are_served(app, service, make_client):
    make_client("acme")
    limited = service.tenants.create("limited", limits={"rate": 0.001, "burst": 2})
    key = service.tenants.create_key(limited.id)
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"})
    assert [client.get("/v1/classifiers").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.get("/v1/classifiers")
    assert int(refused.headers["Retry-After"]) >= 900
    assert refused.json()["title"] == "Too many requests"
    assert make_client("acme").get("/v1/classifiers").status_code == 200
    assert client.get("/health").status_code == 200


def test_a_tenant_has_a_bounded_number_of_classifiers(service, app):
    tenant = service.tenants.create("small", limits={"most_classifiers": 1})
    client = TestClient(app, headers={"X-API-Key": service.tenants.create_key(tenant.id)})
    body = {"name": "home", "examples": EXAMPLES}
    assert client.post("/v1/classifiers", json=body).status_code == 201
    assert client.post("/v1/classifiers", json=body).status_code == 409


def test_beyond_the_requests_in_flight_everything_but_health_is_refused(settings):
    app = create_app(replace(settings, in_flight=0))
    client = TestClient(app)
    refused = client.get("/v1/classifiers")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 200
    app.state.service.stop()


def test_predictions_asked_together_equal_those_asked_alone(service, client, classifier, make_client):
    other = make_client("other")
    second = other.post("/v1/classifiers", json={"name": "b", "examples": EXAMPLES[::-1]}).json()["id"]
    callers = [
        service.tenants.authenticate(one.headers["Authorization"].removeprefix("Bearer ")) for one in (client, other)
    ]
    asked = [(callers[0], classifier, ["play jazz", "lamp on"]), (callers[1], second, ["put the lamp on"])] * 3
    alone = [service.answering.predict(*one) for one in asked]
    waiting = [
        service.answers.submit(caller.tenant, service.answering.question(caller, one, texts), size=len(texts))
        for caller, one, texts in asked
    ]
    together = [one.result() for one in waiting]
    for first, other_one in zip(alone, together, strict=True):
        assert [one.label for one in first.items] == [one.label for one in other_one.items]
        for a, b in zip(first.items, other_one.items, strict=True):
            assert abs(a.probability - b.probability) < 1e-6
