"""Who may call a route: every route but a few names a scope, and the tenant comes from the key alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from manymetrics.service.assembly import Service
from manymetrics.service.idempotency import Once
from manymetrics.service.idempotency import Request as Named
from manymetrics.service.problems import Malformed
from manymetrics.service.tenants import OPERATE, READ, WRITE, Caller

bearer = HTTPBearer(auto_error=False, description="A key made by `manymetrics service keys create`.")
header = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key.")
_IDEMPOTENCY = re.compile(r"[\x21-\x7e]{1,200}")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
PlainKey = Annotated[str | None, Security(header)]


def service_of(request: Request) -> Service:
    """The service behind the app."""
    return request.app.state.service  # type: ignore[no-any-return]


def caller_with(scope: str) -> Callable[..., Any]:
    """A dependency: the caller, whose key must have the scope, within the tenant's rate."""

    async def caller(request: Request, credentials: Credentials, plain: PlainKey) -> Caller:
        service = service_of(request)
        key = credentials.credentials if credentials else plain
        known = service.tenants.remembered(key)
        found = known if known is not None else await run_in_threadpool(service.tenants.authenticate, key)
        request.scope["tenant"] = found.tenant
        service.take_rate(found)
        found.require(scope)
        return found

    caller.scope = scope  # type: ignore[attr-defined]
    return caller


Reader = Annotated[Caller, Depends(caller_with(READ))]
Writer = Annotated[Caller, Depends(caller_with(WRITE))]
Operator = Annotated[Caller, Depends(caller_with(OPERATE))]
TheService = Annotated[Service, Depends(service_of)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        description="Names the request, so that it is done once.", min_length=1, max_length=200, pattern=r"^[!-~]+$"
    ),
]
IfMatch = Annotated[
    str | None, Header(description='The version that the change is meant for, such as "3".', pattern=r'^"[0-9]{1,9}"$')
]


def named(
    service: Service, caller: Caller, key: str | None, asked: Any, *, status: int, write: Callable[[Any], str]
) -> Named:
    """The request under its idempotency key, if it has one; `asked` is all that it asks for."""
    if key is None:
        return Named()
    if not _IDEMPOTENCY.fullmatch(key):
        raise Malformed("The idempotency key cannot be used. Give 1 to 200 visible characters.")
    once = Once.of(caller.tenant, key, asked, kept_for=service.settings.remember_replies)
    return Named(once, status, write)


def version_of(if_match: str | None) -> int | None:
    """The version that the header If-Match names."""
    return None if if_match is None else int(if_match.strip('"'))
