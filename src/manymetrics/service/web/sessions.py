"""Who is signed in: a random token in a cookie, of which the database keeps a hash beside the key that opened it.

A session ends when its time is over, when somebody signs out, or when its key expires, is revoked or deleted. All
processes on one database know the same sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from sqlalchemy import ForeignKey, String, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from manymetrics.service.database import Database
from manymetrics.service.problems import Unauthenticated
from manymetrics.service.records import Key, Record, Tenant, now
from manymetrics.service.tenants import Caller

LIFETIME = timedelta(hours=12)
MOST = 50  # sessions of one key, before the oldest end
ENDED = "Nobody is signed in, or the session has ended. Sign in with a key."


class PageSession(Record):
    """Somebody who is signed in."""

    __tablename__ = "sessions"
    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Sessions:
    """The sessions of all tenants."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def open(self, caller: Caller) -> str:
        """Sign a caller in; gives the token of the session, which is kept nowhere else."""
        token, moment = secrets.token_hex(32), now()
        of_key = select(PageSession.token_hash).where(PageSession.key_id == caller.key)
        newest_first = of_key.order_by(PageSession.created_at.desc(), PageSession.token_hash)
        with self.database.write() as session:
            session.execute(delete(PageSession).where(PageSession.expires_at <= moment))
            too_many = session.scalars(newest_first.offset(MOST - 1)).all()
            session.execute(delete(PageSession).where(PageSession.token_hash.in_(too_many)))
            session.add(
                PageSession(token_hash=_hash(token), key_id=caller.key, created_at=moment, expires_at=moment + LIFETIME)
            )
        return token

    def find(self, token: str | None) -> Caller:
        """Who is signed in with this token."""
        query = (
            select(PageSession, Key, Tenant)
            .join(Key, Key.id == PageSession.key_id)
            .join(Tenant, Tenant.id == Key.tenant_id)
            .where(PageSession.token_hash == _hash(token or ""))
        )
        with self.database.read() as session:
            row = session.execute(query).one_or_none()
        if row is None:
            raise Unauthenticated(ENDED)
        found, key, tenant = row
        if min(found.expires_at, key.expires_at or found.expires_at) <= now() or key.revoked_at is not None:
            raise Unauthenticated(ENDED)
        return Caller(tenant.id, tenant.name, key.id, tuple(key.scopes.split(",")), dict(tenant.limits))

    def close(self, token: str | None) -> None:
        """Sign out."""
        with self.database.write() as session:
            session.execute(delete(PageSession).where(PageSession.token_hash == _hash(token or "")))


def form_token(token: str) -> str:
    """What every form of a session carries, so that no other site can send one; it does not tell the token."""
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
