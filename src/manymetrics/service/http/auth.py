"""Keys and scopes: every route but a few names a scope, and the tenant comes from the key alone."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.responses import Response

from manymetrics.service.domain.service import Service
from manymetrics.service.domain.tenants import OPERATE, READ, WRITE, Caller
from manymetrics.service.http.bodies import StrictRequest

bearer = HTTPBearer(auto_error=False, description="A key made by `manymetrics service keys create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


def key_of(headers: Headers) -> str | None:
    """The key in the headers of a request."""
    scheme, key = get_authorization_scheme_param(headers.get("authorization"))
    return key if scheme.lower() == "bearer" else None


async def service_of(request: Request) -> Service:
    """The service behind the app; async, as FastAPI calls other dependencies in a worker thread."""
    return request.app.state.service  # type: ignore[no-any-return]


async def _admit(request: Request, scope: str) -> None:
    """Find the caller, whose key must have the scope, and count the request against the rate of the tenant."""
    service, key = await service_of(request), key_of(request.headers)
    caller = service.tenants.remembered(key)
    if caller is None:
        caller = await run_in_threadpool(service.tenants.authenticate, key)
    request.scope["tenant"] = caller.tenant
    service.take_rate(caller)
    caller.require(scope)
    request.scope["caller"] = caller


def scopes_of(dependant: Dependant) -> Iterator[str]:
    """The scopes that the dependencies of a route ask for."""
    for dependency in dependant.dependencies:
        if scope := getattr(dependency.call, "scope", None):
            yield scope
        yield from scopes_of(dependency)


class KeyRoute(APIRoute):
    """A route that checks the key before it receives the body, and then reads the body strictly."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler of the route, behind the check of the key."""
        handle = super().get_route_handler()
        scopes = list(scopes_of(self.dependant))

        async def answer(request: Request) -> Response:
            for scope in scopes:
                await _admit(request, scope)
            return await handle(request if self.body_field is None else await StrictRequest.read(request))

        return answer


def caller_with(scope: str) -> Callable[..., Any]:
    """A dependency of a `KeyRoute`: the caller, whose key has the scope; the credentials are for OpenAPI alone."""

    async def caller(request: Request, _credentials: Credentials) -> Caller:
        return request.scope["caller"]  # type: ignore[no-any-return]

    caller.scope = scope  # type: ignore[attr-defined]
    return caller


Reader = Annotated[Caller, Depends(caller_with(READ))]
Writer = Annotated[Caller, Depends(caller_with(WRITE))]
Operator = Annotated[Caller, Depends(caller_with(OPERATE))]
TheService = Annotated[Service, Depends(service_of)]
