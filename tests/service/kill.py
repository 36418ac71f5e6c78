"""Kill the service, or its database, again and again while clients write, and look for what is lost or damaged.

`make survive-service` kills 200 times on SQLite and on PostgreSQL, which takes some forty minutes; the tests do a few.

Every writer has a tenant of its own and sends one change after the other, so that it knows what must be there. `Client`
sends a change that was under way at a kill again, under its idempotency key. In the end the database must have exactly
what was acknowledged: nothing is lost, nothing done twice. PostgreSQL is stopped at once (`pg_ctl stop -m immediate`)
every other time, with the service left running.
"""

import logging
import random
import sqlite3
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import select
from tests.service.server import UNBOUNDED, Server

import manymetrics as mm
from manymetrics.service.domain.tenants import Tenants
from manymetrics.service.storage.database import open_database
from manymetrics.service.storage.tables import Classifier, Example, Version

WRITERS = 3
LONGEST_ROUND = 0.8  # seconds of writing before a kill
KINDS = ("create", "add", "add", "add", "rename", "rollback", "delete")


@dataclass
class Kept:
    """What a classifier must look like: its name, and the examples of each version."""

    name: str
    versions: list[Counter]


class Writer:
    """Changes the classifiers of one tenant, one at a time; `kept` is what was acknowledged, by id."""

    def __init__(self, tenant, key, seed):
        self.tenant, self.key, self.rng = tenant, key, random.Random(seed)
        self.kept, self.done = {}, 0

    def write(self, url, stopping):
        with mm.Client(url, self.key, retries=5000, wait=lambda _: time.sleep(0.05)) as client:
            while not stopping.is_set():
                self._change(client)
                self.done += 1

    def _change(self, client):
        kind, word = self.rng.choice(KINDS) if self.kept else "create", uuid.uuid4().hex
        if kind == "create":
            texts, labels = ["turn on the lamp", "play some jazz", f"lamp {word}"], ["lamp", "music", "lamp"]
            created = client.adapt(texts, labels, name=word)
            self.kept[created.id] = Kept(word, [Counter(zip(texts, labels, strict=True))])
            return
        chosen = self.rng.choice(sorted(self.kept))
        classifier, kept = mm.client.RemoteClassifier(client, {"id": chosen}), self.kept[chosen]
        if kind == "rename":
            classifier.set_params(name=word)
            kept.name = word
        elif kind == "rollback":
            number = self.rng.randint(1, len(kept.versions))
            classifier.roll_back(number)
            kept.versions.append(kept.versions[number - 1])
        elif kind == "delete" and len(self.kept) > 5:
            classifier.delete()
            del self.kept[chosen]
        else:
            classifier.add_examples([word], ["music"])
            kept.versions.append(kept.versions[-1] + Counter([(word, "music")]))


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
    return {one.id: Kept(one.name, [states[one.id, number] for number in numbers[one.id]]) for one in classifiers}


def check(url, writers):
    """Open the database as it was left, and compare everything in it with what was acknowledged."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with closing(open_database(url)) as database:
        for writer in writers:
            found = found_in(database, writer.tenant)
            differing = [one for one in {*found, *writer.kept} if found.get(one) != writer.kept.get(one)]
            assert not differing, [(one, found.get(one), writer.kept.get(one)) for one in differing]


def make_writers(url, seed=0):
    """Writers with a tenant each."""
    with closing(open_database(url)) as database:
        tenants = Tenants(database)
        made = [tenants.create(f"client {number}").id for number in range(WRITERS)]
        return [Writer(one, tenants.create_key(one), seed + number) for number, one in enumerate(made)]


def survive(folder, url, model, *, kills, seed=0, postgres=None):
    """Kill so many times; gives how many changes were acknowledged, and how often each part was killed."""
    rng, writers, killed, stopping = random.Random(seed), make_writers(url, seed), Counter(), threading.Event()
    server = Server(folder, database=url, model=model, **UNBOUNDED).start()
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(writer.write, f"http://127.0.0.1:{server.port}", stopping) for writer in writers]
        try:
            for number in range(kills):
                time.sleep(rng.uniform(0.02, LONGEST_ROUND))
                part = "database" if postgres and number % 2 else "service"
                if part == "database":
                    postgres.stop("immediate")
                    postgres.start()
                else:
                    server.kill()
                    server.start()
                killed[part] += 1
        finally:
            stopping.set()
    for one in writing:
        one.result()
    server.end()
    check(url, writers)
    assert "unexpected" not in server.log.read_text(encoding="utf-8")
    done = sum(writer.done for writer in writers)
    logging.getLogger(__name__).info("%s; %s changes acknowledged: nothing is lost or there twice", dict(killed), done)
    return {"killed": dict(killed), "done": done}
