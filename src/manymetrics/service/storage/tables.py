"""The tables. Each row that belongs to a tenant names the tenant, and every query asks for it.

Examples are never changed: a row names the version of its classifier that added it and the one that removed it, so that
every version can be read back, and a classifier is some kilobytes of text.
"""

import itertools
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import JSON, DateTime, Float, String, Text, TypeDecorator

_counter = itertools.count(1)


def new_id(kind: str) -> str:
    """An id that sorts by the time it was made, in one process by the order, and that cannot be guessed."""
    return f"{kind}_{time.time_ns() // 1_000_000:012x}{next(_counter) % 2**24:06x}{secrets.token_hex(6)}"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Moment(TypeDecorator[datetime]):
    """A time with its zone; SQLite stores none, so UTC is added."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """The time as it is read, in UTC."""
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Record(DeclarativeBase):
    """The base of all tables."""

    type_annotation_map = {datetime: Moment(), dict[str, Any]: JSON(), float: Float()}  # noqa: RUF012 - SQLAlchemy reads it


class Tenant(Record):
    """A client of the service."""

    __tablename__ = "tenants"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    limits: Mapped[dict[str, Any]]  # what differs from the settings: rate, burst, most_classifiers, most_examples
    created_at: Mapped[datetime] = mapped_column(default=now)


class Key(Record):
    """A key of a tenant; of its secret only a hash is stored."""

    __tablename__ = "keys"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)  # the public part of the key
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"), index=True)
    secret_hash: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[str] = mapped_column(String(100))
    note: Mapped[str] = mapped_column(String(200), default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class PageSession(Record):
    """A session of the web pages; of its token only a hash is stored."""

    __tablename__ = "sessions"
    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Model(Record):
    """A model that classifiers were adapted from; the one with the latest `live_at` is live."""

    __tablename__ = "models"
    fingerprint: Mapped[str] = mapped_column(String(64), primary_key=True)
    path: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now)
    live_at: Mapped[datetime | None]

    @classmethod
    def latest_live(cls) -> Select[str]:
        """A query for the fingerprint of the live model; no row if there is none."""
        return select(cls.fingerprint).where(cls.live_at.is_not(None)).order_by(cls.live_at.desc()).limit(1)


class Classifier(Record):
    """A tenant's classifier; its current version answers."""

    __tablename__ = "classifiers"
    __table_args__ = (Index("classifiers_of_tenant", "tenant_id", "id"),)
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(200))
    current: Mapped[int]  # the version that answers
    latest: Mapped[int]  # the highest number of a version
    shared: Mapped[bool] = mapped_column(default=False)  # the next model may be learned from its examples
    settled_model: Mapped[str] = mapped_column(String(64))  # the live model it was last compared with
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class Version(Record):
    """One state of a classifier."""

    __tablename__ = "versions"
    classifier_id: Mapped[str] = mapped_column(ForeignKey("classifiers.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    tenant_id: Mapped[str] = mapped_column(String(40))
    model: Mapped[str] = mapped_column(String(64))  # fingerprint
    reason: Mapped[str] = mapped_column(String(40))
    settings: Mapped[dict[str, Any]]  # reject, margin
    examples: Mapped[int]
    labels: Mapped[int]
    tried: Mapped[int]  # examples predicted from the others
    accuracy: Mapped[float | None]  # leave-one-out; None if no example can be left out
    low: Mapped[float | None]
    high: Mapped[float | None]
    before: Mapped[float | None]  # the accuracy with the earlier model, if it was replaced
    created_at: Mapped[datetime] = mapped_column(default=now)


class Example(Record):
    """A labelled text of a classifier, or without a label a counter-example."""

    __tablename__ = "examples"
    __table_args__ = (Index("examples_of_classifier", "classifier_id", "id"),)
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    classifier_id: Mapped[str] = mapped_column(ForeignKey("classifiers.id", ondelete="CASCADE"))
    tenant_id: Mapped[str] = mapped_column(String(40))
    text: Mapped[str] = mapped_column(Text)
    label: Mapped[str | None] = mapped_column(Text)
    added_in: Mapped[int]
    removed_in: Mapped[int | None]


class Reply(Record):
    """The reply to a request with an idempotency key."""

    __tablename__ = "replies"
    __table_args__ = (UniqueConstraint("tenant_id", "key"),)
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"))
    key: Mapped[str] = mapped_column(String(200))
    request_hash: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
