"""Kill the service, or its database, again and again while clients write, and look for what is lost or damaged.

`make survive-service` kills 200 times on SQLite and on PostgreSQL, which takes some forty minutes; the tests do a few.

Every client has a tenant of its own and sends one change after the other, so that it knows what must be there: all that
was acknowledged, and of the one change that was under way either nothing or all. After each kill the database is opened
and compared with that. The change under way is then sent again under its idempotency key, and must have been done once.
PostgreSQL is stopped at once (`pg_ctl stop -m immediate`) every other time, with the service left running.
"""

import json
import logging
import random
import sqlite3
import threading
import time
import uuid
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException

from sqlalchemy import select
from tests.service.server import UNBOUNDED, Server

from manymetrics.service.domain.tenants import Tenants
from manymetrics.service.storage.database import open_database
from manymetrics.service.storage.tables import Classifier, Example, Version

CLIENTS = 3
LONGEST_ROUND = 0.8  # seconds of writing before a kill
KINDS = ("create", "add", "add", "add", "rename", "rollback", "delete")
DELETED = "deleted"


@dataclass(frozen=True)
class Kept:
    """What a classifier must look like: its name, and the examples of each version."""

    name: str
    versions: tuple[Counter, ...]

    def then(self, examples):
        return replace(self, versions=(*self.versions, examples))


@dataclass(frozen=True)
class Sent:
    """A change that was sent: its request, and what must be there once it is done."""

    method: str
    path: str
    body: dict
    key: str
    classifier: str | None  # none yet where one is created
    after: Kept | str


class Client:
    """Writes for one tenant, one change at a time, until it is told to stop or the service is gone."""

    def __init__(self, tenant, key, seed):
        self.tenant, self.secret, self.rng = tenant, key, random.Random(seed)
        self.kept, self.under_way, self.done, self.repeated, self.problem = {}, None, 0, 0, None

    def write(self, port, stopping):
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            while not stopping.is_set():
                again = self.under_way is not None
                self.under_way = change = self.under_way or self._choose()
                try:
                    status, answer = self._ask(connection, change)
                except (OSError, HTTPException):
                    return  # killed; the change under way is looked for, and sent again
                if status in (429, 503):
                    connection.close()
                    time.sleep(0.02)
                    continue
                if status not in (200, 201, 204) and not (again and change.method == "DELETE"):
                    self.problem = f"{change.method} was answered {status}: {answer}"
                    return
                if change.after == DELETED:
                    del self.kept[change.classifier]
                else:
                    self.kept[change.classifier or answer["id"]] = change.after
                self.under_way = None
                self.done += 1
                self.repeated += again

    def _choose(self):
        kind = self.rng.choice(KINDS) if self.kept else "create"
        name, text = f"name {uuid.uuid4().hex}", f"turn on the lamp {uuid.uuid4().hex[:8]}"
        if kind == "create":
            examples = [("turn on the lamp", "lamp"), ("play some jazz", "music"), (text, "lamp")]
            body = {"name": name, "examples": [{"text": text, "label": label} for text, label in examples]}
            return Sent("POST", "", body, uuid.uuid4().hex, None, Kept(name, (Counter(examples),)))
        chosen = self.rng.choice(sorted(self.kept))
        kept = self.kept[chosen]
        path, key, latest = f"/{chosen}", uuid.uuid4().hex, kept.versions[-1]
        if kind == "rename":
            return Sent("PATCH", path, {"name": name}, key, chosen, replace(kept, name=name))
        if kind == "rollback":
            number = self.rng.randint(1, len(kept.versions))
            after = kept.then(kept.versions[number - 1])
            return Sent("POST", f"{path}/rollback", {"version": number}, key, chosen, after)
        if kind == "delete" and len(self.kept) > 5:
            return Sent("DELETE", path, {}, key, chosen, DELETED)
        added = (text, self.rng.choice(["lamp", "music", None]))
        body = {"add": [{"text": added[0], "label": added[1]}]}
        return Sent("POST", f"{path}/examples", body, key, chosen, kept.then(latest + Counter([added])))

    def _ask(self, connection, change):
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        headers["Idempotency-Key"] = change.key
        content = json.dumps(change.body) if change.body else None
        connection.request(change.method, f"/v1/classifiers{change.path}", content, headers)
        response = connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer else None


def found_in(database, tenant):
    """The classifiers of a tenant as they are in the database; every version must have as many examples as it says."""
    with database.read() as session:
        classifiers = session.scalars(select(Classifier).where(Classifier.tenant_id == tenant)).all()
        versions = session.scalars(select(Version).where(Version.tenant_id == tenant)).all()
        examples = session.scalars(select(Example).where(Example.tenant_id == tenant)).all()
    states = {(one.classifier_id, one.number): Counter() for one in versions}
    numbers = {one.id: range(1, one.latest + 1) for one in classifiers}
    for one in examples:
        for number in range(one.added_in, one.removed_in or numbers[one.classifier_id].stop):
            states[one.classifier_id, number][one.text, one.label] += 1
    assert sorted(states) == sorted((one, number) for one in numbers for number in numbers[one])
    assert all(states[one.classifier_id, one.number].total() == one.examples for one in versions)
    assert all(one.current == one.latest for one in classifiers)
    return {one.id: Kept(one.name, tuple(states[one.id, number] for number in numbers[one.id])) for one in classifiers}


def compare(client, found):
    """Whether all that was acknowledged is there, and of the change under way nothing or all."""
    change = client.under_way
    for one in {*client.kept, *found}:
        allowed = [client.kept.get(one, DELETED)]
        if change is not None and (change.classifier == one or (change.classifier is None and one not in client.kept)):
            allowed.append(change.after)
        assert found.get(one, DELETED) in allowed, f"{one} is {found.get(one)}, where only {allowed} can be"
    unexpected = len(found.keys() - client.kept.keys())
    assert unexpected <= 1, f"{unexpected} classifiers were made of one request"


def check(url, clients):
    """Open the database as it was left, and look at everything in it."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    database = open_database(url)
    try:
        for client in clients:
            compare(client, found_in(database, client.tenant))
    finally:
        database.close()


def make_clients(url, seed):
    """Clients with a tenant each."""
    database = open_database(url)
    tenants = Tenants(database)
    made = [tenants.create(f"client {number}").id for number in range(CLIENTS)]
    clients = [Client(one, tenants.create_key(one), seed + number) for number, one in enumerate(made)]
    database.close()
    return clients


@contextmanager
def writing(clients, port):
    """Lets the clients write for as long as the block takes."""
    stopping = threading.Event()
    threads = [threading.Thread(target=client.write, args=(port, stopping), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    yield
    stopping.set()
    for client, thread in zip(clients, threads, strict=True):
        thread.join()
        assert client.problem is None, client.problem


def survive(folder, url, model, *, kills, seed=0, postgres=None):
    """Kill so many times; gives how many changes were acknowledged, repeated, and how often each part was killed."""
    rng, server = random.Random(seed), Server(folder, database=url, model=model, **UNBOUNDED)
    clients, killed, running = make_clients(url, seed), Counter(), False
    for number in range(kills):
        if not running:
            server.start()
        with writing(clients, server.port):
            time.sleep(rng.uniform(0.02, LONGEST_ROUND))
            running = postgres is not None and number % 2 == 1
            if running:
                postgres.stop("immediate")
                postgres.start()
            else:
                server.kill()
        killed["database" if running else "service"] += 1
        check(url, clients)
    if not running:
        server.start()
    with writing(clients, server.port):
        time.sleep(1)  # every client finishes what it had under way
    server.end()
    assert all(client.under_way is None for client in clients)
    check(url, clients)
    assert "unexpected" not in server.log.read_text(encoding="utf-8")
    totals = {name: sum(getattr(client, name) for client in clients) for name in ("done", "repeated")}
    logging.getLogger(__name__).info("%s %s; nothing is lost, nothing is there twice", dict(killed), totals)
    return {"killed": dict(killed), **totals}
