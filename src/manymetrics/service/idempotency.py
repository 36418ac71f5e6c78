"""A request that is sent again is done once.

A client may name a request that changes something with an idempotency key. What was answered is kept in the same
transaction as the change; the same key with the same request gets that answer again, with another request a conflict.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from manymetrics.service.problems import Conflict
from manymetrics.service.records import Reply, now
from manymetrics.service.tenants import new_id


@dataclass(frozen=True)
class Once:
    """A request with a name: its tenant, its key, and a hash of all it asks for."""

    tenant: str
    key: str
    request_hash: str
    kept_for: float  # seconds

    @classmethod
    def of(cls, tenant: str, key: str, request: Any, *, kept_for: float) -> Once:
        """The request under a key; `request` is what JSON can hold."""
        written = json.dumps(request, sort_keys=True, ensure_ascii=True, default=str)
        return cls(tenant, key, hashlib.sha256(written.encode()).hexdigest(), kept_for)

    def find(self, session: Session) -> Answered | None:
        """What was answered before, if it was."""
        found = session.scalar(select(Reply).where(Reply.tenant_id == self.tenant, Reply.key == self.key))
        if found is None or found.created_at < now() - timedelta(seconds=self.kept_for):
            return None
        if found.request_hash != self.request_hash:
            raise Conflict("This idempotency key was used for another request. Use a key once.")
        return Answered(found.status, found.body)

    def keep(self, session: Session, status: int, body: str) -> None:
        """Keep what is answered, in the transaction of the change; drop what is too old."""
        old = now() - timedelta(seconds=self.kept_for)
        session.execute(delete(Reply).where(Reply.tenant_id == self.tenant, Reply.created_at < old))
        session.add(
            Reply(
                id=new_id("rep"),
                tenant_id=self.tenant,
                key=self.key,
                request_hash=self.request_hash,
                status=status,
                body=body,
                created_at=now(),
            )
        )


@dataclass(frozen=True)
class Answered:
    """An answer that was given before."""

    status: int
    body: str


class Replayed(Exception):
    """Raised by a verb instead of doing again what was done."""

    def __init__(self, answered: Answered) -> None:
        super().__init__("answered before")
        self.answered = answered


@dataclass(frozen=True)
class Request:
    """A change that a client may have named: how its answer is written, to be kept with the change."""

    once: Once | None = None
    status: int = 200
    write: Callable[[Any], str] = str

    def check(self, session: Session) -> None:
        """Stop here with the kept answer, if there is one."""
        if self.once is not None and (found := self.once.find(session)) is not None:
            raise Replayed(found)

    def done(self, session: Session, result: Any) -> None:
        """Keep the answer with the change."""
        if self.once is not None:
            self.once.keep(session, self.status, self.write(result))


PLAIN = Request()  # a change without a name
