"""The settings of the operator, with their ranges."""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.dataclasses import dataclass

import manymetrics as mm

PREFIX = "MANYMETRICS_"  # of environment variables: MANYMETRICS_DATABASE, MANYMETRICS_MOST_BODY_BYTES ...


def _split(names: Any) -> Any:
    return tuple(filter(None, map(str.strip, names.split(",")))) if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Settings:
    """How one process of the service runs; sizes are limits of one request, rates of one tenant and process."""

    database: str = "sqlite:///service.db"  # URL for SQLAlchemy
    model: Path | None = None  # folder of the model to put live if none is
    hosts: Names = ()  # host names that requests may be sent to; empty: any

    most_body_bytes: Positive = 4 * 2**20
    most_texts: Positive = 1_000
    longest_text: Positive = 10_000  # characters
    longest_label: Count = 200
    longest_name: Count = 200
    most_examples: Positive = 5_000  # of one classifier
    most_classifiers: Count = 1_000  # of one tenant

    rate: Number = 200.0  # requests a second
    burst: Number = 400.0  # requests at once after a pause
    waiting: Positive = 256  # requests that may wait to be answered, of all tenants
    waiting_each: Positive = 64  # of one tenant
    in_flight: Count = 512  # requests in the process; further ones are refused before they are read

    at_once: Positive = 16  # requests for predictions that are worked on at a time, tenants in turn
    at_once_each: Count = 4  # of one tenant
    in_turn: Count = 64  # of all tenants, worked on or waiting; further ones are refused at once
    stop_seconds: Count = 20  # after the signal to end, in which running requests are answered

    batch_texts: Count = 256  # answered together
    cached_classifiers: Count = 2_000
    cached_examples: Count = 200_000  # of all cached classifiers together
    remember_keys: Number = 1.0  # seconds in which a key that another process revoked is still accepted
    remember_replies: Number = 24 * 3600.0  # seconds for which replies to idempotency keys are stored
    model_check: Number = 2.0  # seconds between checks for another live model
    secure_cookies: bool = True  # cookies of the pages are sent over HTTPS only, except on the same machine

    @classmethod
    def from_environment(cls, **given: Any) -> "Settings":
        """The settings given, then those of environment variables, then the defaults."""
        names = {name: PREFIX + name.upper() for name in cls.__dataclass_fields__}
        values = {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}
        try:
            return cls(**values | {name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name, rule = str(first["loc"][0]), first["msg"].removeprefix("Input ")
            raise mm.InputError(
                f"The setting {name} ({names[name]}) is {first['input']!r}, but it {rule}. Correct it."
            ) from None
