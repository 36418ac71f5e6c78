"""A request that is sent again is done once.

A client may name a request that changes something with an idempotency key. The reply is stored in the transaction of
the change: the same key with the same request gets that reply again, with another request a conflict.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from manymetrics.service.domain.errors import Conflict
from manymetrics.service.storage.tables import Reply, new_id, now


class ReplayReply(Exception):
    """Raised instead of doing a request again; `reply` is what was answered."""

    def __init__(self, reply: Reply) -> None:
        super().__init__("answered before")
        self.reply = reply


@dataclass(frozen=True)
class IdempotentRequest:
    """A request with an idempotency key, and all that it asks for."""

    tenant: str
    key: str
    content: Any  # as JSON can hold it
    lifetime: timedelta  # of the stored reply
    status: int = 200

    @property
    def request_hash(self) -> str:
        """A hash of the content."""
        return hashlib.sha256(json.dumps(self.content, sort_keys=True, default=str).encode()).hexdigest()


def refuse_repetition(session: Session, request: IdempotentRequest | None) -> None:
    """Raise `ReplayReply` if the request was answered before."""
    if request is None:
        return
    reply = session.scalar(select(Reply).where(Reply.tenant_id == request.tenant, Reply.key == request.key))
    if reply is None or reply.created_at < now() - request.lifetime:
        return
    if reply.request_hash != request.request_hash:
        raise Conflict("This idempotency key was used for another request. Use a key once.")
    raise ReplayReply(reply)


def store_reply(session: Session, request: IdempotentRequest | None, body: str) -> None:
    """Store the reply in the transaction of the change, and delete those of the tenant that are too old."""
    if request is None:
        return
    about = {"tenant_id": request.tenant, "key": request.key, "request_hash": request.request_hash}
    session.execute(delete(Reply).where(Reply.tenant_id == request.tenant, Reply.created_at < now() - request.lifetime))
    session.add(Reply(**about, id=new_id("rep"), status=request.status, body=body))
