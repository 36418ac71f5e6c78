"""What the operator sets, checked when it is made."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import manymetrics as mm

PREFIX = "MANYMETRICS_"  # of environment variables: MANYMETRICS_DATABASE, MANYMETRICS_MOST_BODY_BYTES ...


@dataclass(frozen=True)
class Settings:
    """How one process of the service runs; sizes count for one request, rates for one tenant and process."""

    database: str = "sqlite:///service.db"  # URL for SQLAlchemy
    model: Path | None = None  # folder of the model that is put live where none is
    hosts: tuple[str, ...] = ()  # names that requests may be sent to; none: any well-formed one

    most_body_bytes: int = 4 * 2**20
    most_texts: int = 1_000
    longest_text: int = 10_000  # characters
    longest_label: int = 200
    longest_name: int = 200
    most_examples: int = 5_000  # of one classifier
    most_classifiers: int = 1_000  # of one tenant

    rate: float = 200.0  # requests a second
    burst: float = 400.0  # requests at once after a pause
    waiting: int = 256  # requests that may wait to be answered, of all tenants
    waiting_each: int = 64  # of one tenant
    in_flight: int = 512  # requests in the process; the others are refused before they are read

    at_once: int = 16  # requests for predictions that are worked on at a time, those of all tenants in turn
    at_once_each: int = 4  # of one tenant
    in_turn: int = 64  # of all tenants, worked on or waiting; the others are refused at once
    stop_seconds: int = 20  # for which requests under way are answered after the signal to end

    batch_texts: int = 256  # encoded together
    batch_seconds: float = 0.003  # how long a batch waits for more
    cached_classifiers: int = 2_000
    cached_examples: int = 200_000  # of all cached classifiers together
    remember_keys: float = 1.0  # seconds in which a key that was revoked elsewhere may still open
    remember_replies: float = 24 * 3600.0  # seconds for which an idempotency key is known
    model_check: float = 2.0  # seconds between looks for another live model
    secure_cookies: bool = True  # sessions of the pages are sent over HTTPS alone

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
                raise mm.InputError(f"The setting {field.name} is {value}. Give a number from 0 up.")
        for name in (
            "most_body_bytes",
            "most_texts",
            "longest_text",
            "most_examples",
            "waiting",
            "waiting_each",
            "at_once",
        ):
            if getattr(self, name) < 1:
                raise mm.InputError(f"The setting {name} is {getattr(self, name)}. Give a number from 1 up.")

    @classmethod
    def from_environment(cls, **given: Any) -> Settings:
        """The settings given, then those of environment variables, then the defaults."""
        found: dict[str, Any] = {}
        for field in fields(cls):
            written = os.environ.get(PREFIX + field.name.upper())
            if written is not None:
                found[field.name] = _read(field.name, written, getattr(cls, field.name))
        return cls(**{**found, **{name: value for name, value in given.items() if value is not None}})


def _read(name: str, written: str, default: Any) -> Any:
    """A setting from an environment variable, of the type of its default."""
    if isinstance(default, bool):
        return written.lower() in ("1", "true", "yes", "on")
    if isinstance(default, tuple):
        return tuple(one.strip() for one in written.split(",") if one.strip())
    if default is None:
        return Path(written)
    try:
        return type(default)(written)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise mm.InputError(f"The environment variable {PREFIX}{name.upper()} is not {kind}. Mend it.") from None
