"""Tenants, their keys, and the sessions of the pages that a key opens.

A key is `mm_<public part>_<secret>`. The public part finds the row, and the SHA-256 of the secret, which has 256 random
bits, is compared with the one in the row. A key is shown once, when it is made. A session is a random token, of which
a hash is stored, so that all processes on one database accept it. It ends after `LIFETIME`, when it is closed, or when
its key expires, is revoked or is deleted.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, or_, select

from manymetrics.service.domain.errors import Conflict, Invalid, NotFound, Unauthenticated
from manymetrics.service.storage.database import Database
from manymetrics.service.storage.tables import Key, PageSession, Tenant, new_id, now

READ, WRITE, OPERATE = "read", "write", "operate"
SCOPES = (READ, WRITE, OPERATE)
LIMITS = ("rate", "burst", "most_classifiers", "most_examples")
_KEY = re.compile(r"mm_([0-9a-f]{16})_([0-9a-f]{64})")
LIFETIME = timedelta(hours=12)  # of a session
MAX_SESSIONS = 50  # per key; opening one more ends the oldest
UNKNOWN = "The key is missing or not valid. Send a valid one as Authorization: Bearer KEY."


@dataclass(frozen=True)
class Caller:
    """The tenant and the scopes of the key that a request was sent with."""

    tenant: str  # id
    name: str
    key: str  # the public part
    scopes: tuple[str, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None  # when the key does


class Tenants:
    """The tenants of a database and their keys."""

    def __init__(self, database: Database, *, remember: float = 0.0) -> None:
        self.database = database
        self._remember = remember  # seconds
        self._known: dict[str, tuple[Caller, float]] = {}  # and when, by the hash of the key

    def create(self, name: str, *, limits: Mapping[str, Any] | None = None) -> Tenant:
        """A new tenant, without any key."""
        if not name.strip() or len(name) > 200:
            raise Invalid("The name of a tenant is empty or longer than 200 characters. Give another.")
        if set(limits or {}) - set(LIMITS):
            raise Invalid(f"There is no such limit. Give some of {', '.join(LIMITS)}.")
        with self.database.write() as session:
            if session.scalar(select(Tenant).where(Tenant.name == name)):
                raise Conflict("There is a tenant of this name already. Give another.")
            tenant = Tenant(id=new_id("ten"), name=name, limits=dict(limits or {}), created_at=now())
            session.add(tenant)
        return tenant

    def list(self) -> Sequence[Tenant]:
        """All tenants, oldest first."""
        with self.database.read() as session:
            return session.scalars(select(Tenant).order_by(Tenant.id)).all()

    def find(self, name_or_id: str) -> Tenant:
        """The tenant of this name or id."""
        with self.database.read() as session:
            tenant = session.scalar(select(Tenant).where((Tenant.id == name_or_id) | (Tenant.name == name_or_id)))
        if tenant is None:
            raise NotFound("There is no such tenant. `manymetrics service tenants list` names them.")
        return tenant

    def delete(self, tenant_id: str) -> None:
        """Delete a tenant with its keys, classifiers and examples."""
        with self.database.write() as session:
            session.execute(delete(Tenant).where(Tenant.id == tenant_id))  # the other tables follow
        self._known.clear()  # keys are read from the database again

    def create_key(self, tenant_id: str, *, scopes: Sequence[str] = (READ, WRITE), note: str = "",
                   lifetime: timedelta | None = None) -> str:  # fmt: skip
        """Make a key of a tenant; it cannot be shown again."""
        if not scopes or set(scopes) - set(SCOPES):
            raise Invalid(f"A key needs scopes out of {', '.join(SCOPES)}.")
        public, secret = secrets.token_hex(8), secrets.token_hex(32)
        key = Key(
            id=public,
            tenant_id=tenant_id,
            secret_hash=_hash(secret),
            note=note[:200],
            scopes=",".join(scope for scope in SCOPES if scope in scopes),
            expires_at=None if lifetime is None else now() + lifetime,
        )
        with self.database.write() as session:
            session.add(key)
        return f"mm_{public}_{secret}"

    def keys(self, tenant_id: str) -> Sequence[Key]:
        """The keys of a tenant, oldest first, without their secrets."""
        with self.database.read() as session:
            return session.scalars(select(Key).where(Key.tenant_id == tenant_id).order_by(Key.created_at)).all()

    def revoke(self, public: str) -> None:
        """Make a key invalid from now on."""
        with self.database.write() as session:
            key = session.get(Key, public)
            if key is None:
                raise NotFound("There is no such key. `manymetrics service keys list TENANT` names them.")
            key.revoked_at = key.revoked_at or now()
        self._known.clear()  # keys are read from the database again

    def authenticate(self, key: str | None) -> Caller:
        """The owner of a key; a missing, malformed, unknown, expired or revoked one is refused in the same way."""
        if (caller := self.remembered(key)) is not None:
            return caller
        parts, moment = _KEY.fullmatch(key or ""), time.monotonic()
        public, secret = parts.groups() if parts else ("", "")
        caller = self._find_caller(Key.id == public, Key.secret_hash == _hash(secret), refusal=UNKNOWN)
        self._known[_hash(str(key))] = caller, moment
        return caller

    def remembered(self, key: str | None, *, however_old: bool = False) -> Caller | None:
        """The owner of a key that was found a moment ago, or `however_old`, else None; asks no database."""
        caller, moment = self._known.get(_hash(key or ""), (None, 0.0))
        if caller is None or however_old:
            return caller
        is_expired = caller.expires_at is not None and caller.expires_at <= now()
        return None if is_expired or time.monotonic() - moment >= self._remember else caller

    def open_session(self, caller: Caller) -> str:
        """Open a session; returns its token, which is stored nowhere else."""
        token, moment = secrets.token_hex(32), now()
        of_key = select(PageSession.token_hash).where(PageSession.key_id == caller.key)
        newest_first = of_key.order_by(PageSession.created_at.desc(), PageSession.token_hash)
        opened = PageSession(
            token_hash=_hash(token), key_id=caller.key, created_at=moment, expires_at=moment + LIFETIME
        )
        with self.database.write() as session:
            session.execute(delete(PageSession).where(PageSession.expires_at <= moment))
            surplus = session.scalars(newest_first.offset(MAX_SESSIONS - 1)).all()
            session.execute(delete(PageSession).where(PageSession.token_hash.in_(surplus)))
            session.add(opened)
        return token

    def find_session(self, token: str | None) -> Caller:
        """The caller whose session has this token."""
        is_open = (PageSession.token_hash == _hash(token or "")) & (PageSession.expires_at > now())
        is_key = Key.id.in_(select(PageSession.key_id).where(is_open))
        return self._find_caller(is_key, refusal="The session has ended, or there was none. Sign in with a key.")

    def close_session(self, token: str | None) -> None:
        """End the session with this token, if there is one."""
        with self.database.write() as session:
            session.execute(delete(PageSession).where(PageSession.token_hash == _hash(token or "")))

    def _find_caller(self, *conditions: ColumnElement[bool], refusal: str) -> Caller:
        """The owner of the key that meets the conditions, unless it is revoked or has expired."""
        query = select(Key, Tenant).join(Tenant, Tenant.id == Key.tenant_id).where(*conditions)
        is_valid = Key.revoked_at.is_(None) & or_(Key.expires_at.is_(None), Key.expires_at > now())
        with self.database.read() as session:
            row = session.execute(query.where(is_valid)).one_or_none()
        if row is None:
            raise Unauthenticated(refusal)
        key, tenant = row
        return Caller(tenant.id, tenant.name, key.id, tuple(key.scopes.split(",")), tenant.limits, key.expires_at)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
