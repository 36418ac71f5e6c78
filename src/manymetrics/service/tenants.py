"""Tenants and their keys.

A key is `mm_<public part>_<secret>`. The public part finds the row, and the SHA-256 of the secret, which has 256 random
bits, is compared with what is kept. A key is shown once, when it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from manymetrics.service.database import Database
from manymetrics.service.problems import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from manymetrics.service.records import Key, Tenant, now

READ, WRITE, OPERATE = "read", "write", "operate"
SCOPES = (READ, WRITE, OPERATE)
CLIENT_SCOPES = (READ, WRITE)
LIMITS = ("rate", "burst", "most_classifiers", "most_examples")
REMEMBERED = 10_000  # keys, before the oldest are forgotten
_KEY = re.compile(r"mm_([0-9a-f]{16})_([0-9a-f]{64})")
UNKNOWN = "The key is missing or opens nothing. Send a valid one as Authorization: Bearer KEY."


_counter = itertools.count(1)


def new_id(kind: str) -> str:
    """An id that sorts by the time it was made, in one process by the order, and that cannot be guessed."""
    return f"{kind}_{time.time_ns() // 1_000_000:012x}{next(_counter) % 2**24:06x}{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Caller:
    """Whom a request comes from, as its key says."""

    tenant: str  # id
    name: str
    key: str  # the public part
    scopes: tuple[str, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)

    def require(self, scope: str) -> None:
        """Refuse what the key's scopes do not cover."""
        if scope not in self.scopes:
            raise Forbidden(f"This key lacks the scope {scope}. Use one that has it.")


class Tenants:
    """The tenants of a database, and who holds a key to them."""

    def __init__(self, database: Database, *, remember: float = 0.0) -> None:
        self.database = database
        self._remember = remember  # seconds
        self._known: dict[str, tuple[float, Caller, datetime | None]] = {}  # by the hash of the whole key
        self._lock = threading.Lock()

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
            found = session.scalar(select(Tenant).where((Tenant.id == name_or_id) | (Tenant.name == name_or_id)))
        if found is None:
            raise NotFound("There is no such tenant. `manymetrics service tenants list` names them.")
        return found

    def delete(self, tenant_id: str) -> None:
        """Delete a tenant with its keys, classifiers and examples."""
        with self.database.write() as session:
            found = session.get(Tenant, tenant_id)
            if found is None:
                raise NotFound("There is no such tenant.")
            session.delete(found)
        self.forget_keys()

    def create_key(self, tenant_id: str, *, scopes: Sequence[str] = CLIENT_SCOPES, note: str = "",
                   lifetime: timedelta | None = None) -> str:  # fmt: skip
        """A new key of a tenant: the only time that it can be seen."""
        if not scopes or set(scopes) - set(SCOPES):
            raise Invalid(f"A key needs scopes out of {', '.join(SCOPES)}.")
        public, secret = secrets.token_hex(8), secrets.token_hex(32)
        with self.database.write() as session:
            if session.get(Tenant, tenant_id) is None:
                raise NotFound("There is no such tenant.")
            session.add(
                Key(
                    id=public,
                    tenant_id=tenant_id,
                    secret_hash=_hash(secret),
                    note=note[:200],
                    created_at=now(),
                    scopes=",".join(scope for scope in SCOPES if scope in scopes),
                    expires_at=None if lifetime is None else now() + lifetime,
                )
            )
        return f"mm_{public}_{secret}"

    def keys(self, tenant_id: str) -> Sequence[Key]:
        """The keys of a tenant, oldest first, without their secrets."""
        with self.database.read() as session:
            return session.scalars(select(Key).where(Key.tenant_id == tenant_id).order_by(Key.created_at)).all()

    def revoke(self, public: str) -> None:
        """Make a key open nothing from here on."""
        with self.database.write() as session:
            found = session.get(Key, public)
            if found is None:
                raise NotFound("There is no such key. `manymetrics service keys list TENANT` names them.")
            found.revoked_at = found.revoked_at or now()
        self.forget_keys()

    def authenticate(self, key: str | None) -> Caller:
        """Whom a key belongs to; a missing, malformed, unknown, expired or revoked one is refused all the same."""
        if (known := self.remembered(key)) is not None:
            return known
        parts = _KEY.fullmatch(key or "")
        if parts is None:
            raise Unauthenticated(UNKNOWN)
        moment = time.monotonic()
        caller, expires = self._look_up(parts[1], parts[2])
        if expires is not None and expires <= now():
            raise Unauthenticated(UNKNOWN)
        self._keep(_hash(parts[0]), (moment, caller, expires))
        return caller

    def remembered(self, key: str | None) -> Caller | None:
        """Whom a key belongs to that was looked up a moment ago; None where it was not. Asks no database."""
        known = self._known.get(_hash(key)) if key and self._known else None
        if known is None or time.monotonic() - known[0] > self._remember:
            return None
        return None if known[2] is not None and known[2] <= now() else known[1]

    def forget_keys(self) -> None:
        """Look every key up again."""
        with self._lock:
            self._known.clear()

    def _look_up(self, public: str, secret: str) -> tuple[Caller, datetime | None]:
        with self.database.read() as session:
            row = session.execute(
                select(Key, Tenant).join(Tenant, Tenant.id == Key.tenant_id).where(Key.id == public)
            ).one_or_none()
        kept = row[0].secret_hash if row else _hash("")
        if not hmac.compare_digest(kept, _hash(secret)) or row is None or row[0].revoked_at is not None:
            raise Unauthenticated(UNKNOWN)
        found, tenant = row
        caller = Caller(tenant.id, tenant.name, found.id, tuple(found.scopes.split(",")), dict(tenant.limits))
        return caller, found.expires_at

    def _keep(self, whole: str, known: tuple[float, Caller, datetime | None]) -> None:
        if not self._remember:
            return
        with self._lock:
            self._known.pop(whole, None)
            self._known[whole] = known
            while len(self._known) > REMEMBERED:
                self._known.pop(next(iter(self._known)))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
