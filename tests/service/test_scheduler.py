"""The scheduler: tenants in turn, a bounded number waiting, batches together, and rates."""

import asyncio
import threading

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import HOME

from manymetrics.service.domain.errors import TooMany, Unavailable
from manymetrics.service.runtime.scheduler import Admission, RateLimits, WorkQueue


class HeldWorker:
    """A worker that records its batches, and waits until it is released."""

    def __init__(self):
        self.batches, self.release, self.started = [], threading.Event(), threading.Event()

    def __call__(self, items):
        self.batches.append([item.work for item in items])
        self.started.set()
        self.release.wait()
        for item in items:
            item.result.set_result(item.work)


@pytest.fixture
def busy_queue():
    """Makes a queue whose worker is busy with a first item."""
    queues = []

    def make(**options):
        worker = HeldWorker()
        queue = WorkQueue(**{"max_waiting": 100, "max_waiting_each": 100, **options}, worker=worker)
        queues.append((queue, worker))
        first = queue.submit("first", "first")
        worker.started.wait()
        return queue, worker, first

    yield make
    for queue, worker in queues:
        worker.release.set()
        queue.stop()


def test_work_of_a_tenant_that_floods_does_not_delay_others(busy_queue):
    queue, worker, _ = busy_queue()
    results = [queue.submit("flood", f"flood {number}") for number in range(50)]
    results += [queue.submit("calm", f"calm {number}") for number in range(3)]
    worker.release.set()
    for result in results:
        result.result()
    order = [work for batch in worker.batches for work in batch]
    assert order[:7] == ["first", "flood 0", "calm 0", "flood 1", "calm 1", "flood 2", "calm 2"]


def test_a_full_tenant_queue_refuses_its_tenant_and_a_full_work_queue_everybody(busy_queue):
    queue, _, _ = busy_queue(max_waiting=5, max_waiting_each=3)
    for tenant in "aaa":
        queue.submit(tenant, 0)
    with pytest.raises(TooMany, match="More requests are waiting") as refused:
        queue.submit("a", 3)
    assert refused.value.retry_after >= 1
    for tenant in "bc":
        queue.submit(tenant, 0)
    with pytest.raises(TooMany):
        queue.submit("d", 0)


def test_work_that_waits_together_is_done_together_up_to_a_size(busy_queue):
    queue, worker, _ = busy_queue(batch=10)
    results = [queue.submit(tenant, tenant, size=4) for tenant in "abc"]
    worker.release.set()
    assert [result.result() for result in results] == ["a", "b", "c"]
    assert worker.batches[1:] == [["a", "b"], ["c"]]


def test_a_failure_reaches_its_own_caller_only():
    def fail():
        raise KeyError("mine")

    queue = WorkQueue(10, 10, batch=10)
    bad, good = queue.submit("a", fail), queue.submit("b", lambda: 7)
    assert good.result() == 7
    with pytest.raises(KeyError, match="mine"):
        bad.result()
    queue.stop()


def test_work_whose_caller_has_gone_away_is_not_done(busy_queue):
    queue, worker, _ = busy_queue()
    assert queue.submit("a", "cancelled").cancel()
    worker.release.set()
    assert queue.submit("b", "done").result() == "done"
    assert ["cancelled"] not in worker.batches


def test_a_queue_that_is_stopped_finishes_what_waits_and_accepts_nothing_more(busy_queue):
    queue, worker, first = busy_queue()
    waiting = queue.submit("a", "a")
    threading.Timer(0.05, worker.release.set).start()
    queue.stop()
    assert (first.result(), waiting.result()) == ("first", "a")
    with pytest.raises(Unavailable, match="The service is stopping"):
        queue.submit("a", "b")


def admission_test(test):
    """Run an async test to its end."""

    def run():
        asyncio.run(asyncio.wait_for(test(), 60))

    return run


async def ask(admission, name, order):
    """One request; a name starts with the letter of its tenant."""
    try:
        await admission.enter(name[0])
    except TooMany:
        order.append(f"{name} refused")
        return
    order.append(name)
    await asyncio.sleep(0)
    admission.leave(name[0])


async def ask_in_order(admission, *names):
    order = []
    await asyncio.gather(*(asyncio.create_task(ask(admission, name, order)) for name in names))
    return order


@admission_test
async def test_tenants_are_admitted_in_turn():
    admission = Admission(1, 1, capacity=11)
    order = await ask_in_order(admission, "a1", "a2", "a3", "a4", "b1", "c1")
    assert order == ["a1", "a2", "b1", "c1", "a3", "a4"]
    late = await ask_in_order(admission, "d1", "a1", "b1", "b2", "a2", "c1")  # each round has the order of the first
    assert late == ["d1", "a1", "b1", "c1", "a2", "b2"]


@admission_test
async def test_no_tenant_has_more_than_its_share_admitted():
    admission, order = Admission(3, 2, capacity=11), []
    await admission.enter("a")
    await admission.enter("a")
    third = asyncio.create_task(ask(admission, "a3", order))
    await asyncio.sleep(0)
    await admission.enter("b")  # comes later, and need not wait
    assert order == []
    admission.leave("a")
    await third
    assert order == ["a3"]


@admission_test
async def test_a_tenant_that_floods_is_itself_refused():
    admission = Admission(1, 1, capacity=4)
    order = await ask_in_order(admission, "a1", "a2", "a3", "a4", "a5", "b1", "b2")
    assert [name for name in order if "refused" not in name] == ["a1", "a2", "b1", "a3"]
    assert {name for name in order if "refused" in name} == {"a4 refused", "a5 refused", "b2 refused"}
    assert await ask_in_order(admission, "b3") == ["b3"]


@pytest.mark.parametrize("is_admitted", [False, True])
def test_a_request_that_goes_away_lets_the_next_enter(is_admitted):
    @admission_test
    async def test():
        admission, order = Admission(1, 1, capacity=11), []
        await admission.enter("a")
        first, second = (asyncio.create_task(ask(admission, name, order)) for name in ("a2", "b1"))
        await asyncio.sleep(0)
        if is_admitted:  # and has not run since
            admission.leave("a")
        first.cancel()
        await asyncio.sleep(0)
        if not is_admitted:
            admission.leave("a")
        await asyncio.gather(first, second, return_exceptions=True)
        assert order == ["b1"]
        await admission.enter("a")  # there is room again

    test()


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


def test_beyond_its_rate_a_tenant_gets_a_time_to_wait_and_others_are_served(make_client):
    client = make_client("limited", rate=0.001, burst=2)
    assert [client.get("/v1/classifiers").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.get("/v1/classifiers")
    assert int(refused.headers["Retry-After"]) >= 900
    assert refused.json()["title"] == "Too many requests"
    assert make_client("acme").get("/v1/classifiers").status_code == 200
    assert client.get("/health").status_code == 200


def test_a_tenant_has_a_bounded_number_of_classifiers(make_client):
    client = make_client(most_classifiers=1)
    assert [client.post("/v1/classifiers", json=HOME).status_code for _ in range(2)] == [201, 409]


def test_beyond_the_requests_in_flight_everything_but_health_is_refused(make_app):
    client = TestClient(make_app(in_flight=0))
    refused = client.get("/v1/classifiers")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 200
