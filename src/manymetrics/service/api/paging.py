"""Lists in pages: a cursor says where the next one begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query

from manymetrics.service.problems import Invalid

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=100, description="`next` of the page before.")]


def page_of(found: Sequence[Any], limit: int) -> dict[str, Any]:
    """The first `limit` items, and a cursor where there are more."""
    more = len(found) > limit
    cursor = base64.urlsafe_b64encode(found[limit - 1].id.encode()).decode().rstrip("=") if more else None
    return {"items": list(found[:limit]), "next": cursor}


def opened(cursor: str | None) -> str | None:
    """The id that a cursor stands for."""
    if cursor is None:
        return None
    try:
        found = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        found = "\0"
    if "\0" in found:
        raise Invalid("The cursor cannot be read. Give `next` of the page before, as it is.")
    return found
