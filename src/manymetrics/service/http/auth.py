"""Keys and scopes: every route but a few names a scope, and the tenant comes from the key alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.responses import Response

from manymetrics.service.domain.service import Call, Service
from manymetrics.service.domain.tenants import OPERATE, READ, WRITE
from manymetrics.service.http.bodies import StrictRequest

bearer = HTTPBearer(auto_error=False, description="A key made by `manymetrics service keys create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


def key_of(headers: Headers) -> str | None:
    """The key in the headers of a request."""
    scheme, key = get_authorization_scheme_param(headers.get("authorization"))
    return key if scheme.lower() == "bearer" else None


@dataclass(frozen=True)
class Access:
    """A dependency of a `KeyRoute`: the call of a caller whose key has the scope."""

    scope: str

    async def __call__(self, request: Request, _credentials: Credentials) -> Call:
        """The call that the route has admitted; the credentials are for OpenAPI alone."""
        return request.scope["call"]  # type: ignore[no-any-return]


Reader = Annotated[Call, Depends(Access(READ))]
Writer = Annotated[Call, Depends(Access(WRITE))]
Operator = Annotated[Call, Depends(Access(OPERATE))]


def scopes_of(dependant: Dependant) -> Iterator[str]:
    """The scopes that the dependencies of a route ask for."""
    for dependency in dependant.dependencies:
        if scope := getattr(dependency.call, "scope", None):
            yield scope
        yield from scopes_of(dependency)


class KeyRoute(APIRoute):
    """A route that checks the key before it receives the body, and then reads the body strictly."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler of the route, behind the check of the key and the count of requests."""
        handle = super().get_route_handler()
        (scope,) = scopes_of(self.dependant)

        async def answer(request: Request) -> Response:
            service: Service = request.app.state.service
            key = key_of(request.headers)
            caller = service.tenants.remembered(key)
            if caller is None:
                caller = await run_in_threadpool(service.tenants.authenticate, key)
            request.scope["tenant"] = caller.tenant
            service.take_rate(caller)
            caller.require(scope)
            request.scope["call"] = Call(service, caller)
            return await handle(request if self.body_field is None else StrictRequest.of(request))

        return answer
