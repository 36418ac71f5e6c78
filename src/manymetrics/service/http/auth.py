"""Keys, scopes and bodies: every route but a few names a scope, and the tenant comes from the key alone.

The key is checked before the body is received. A body is parsed in a worker thread if it is large. Refused are a name
that occurs twice in an object or too many names in one, and too many arrays and objects.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.responses import Response

from manymetrics.service.domain.errors import Malformed, RequestError
from manymetrics.service.domain.service import Call, Service
from manymetrics.service.domain.tenants import OPERATE, READ, WRITE

MAX_NAMES = 100  # of an object of a body
MAX_BRACKETS = 2**17  # arrays and objects of a body; more than the items of a list
LARGE = 2**16  # bytes of a body that is parsed in a worker thread
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)  # the last one may lack its end
bearer = HTTPBearer(auto_error=False, description="A key made by `manymetrics service keys create`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


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
        if (scope := getattr(dependency.call, "scope", None)) is not None:
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
            key = request.scope["key"]  # from its header
            caller = service.tenants.remembered(key)
            if caller is None:
                caller = await run_in_threadpool(service.tenants.authenticate, key)
            request.scope["tenant"] = caller.tenant
            service.admit(caller, scope)
            request.scope["call"] = Call(service, caller)
            if self.body_field is None:
                return await handle(request)
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                message = "The body is not JSON. Send it with Content-Type: application/json."
                raise RequestError(message, status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            return await handle(StrictRequest(request.scope, request.receive))

        return answer


class StrictRequest(Request):
    """A request whose body is JSON and is read strictly; FastAPI calls `json` for it."""

    async def json(self) -> Any:
        """The parsed body."""
        body = await self.body()
        return await run_in_threadpool(read_json, body) if len(body) > LARGE else read_json(body)


def read_json(body: bytes) -> Any:
    """Parse a JSON document that is not too large; pydantic checks its values."""
    if sum(map(_STRING.sub(b"", body).count, (b"[", b"{"))) > MAX_BRACKETS:
        raise Malformed("The body has too many arrays and objects. Send less at once.")
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise Malformed("The body is no JSON that can be read. Send UTF-8.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Malformed("A name comes twice in an object of the body. Give it once.")
    if len(fields) > MAX_NAMES:  # each would be an error of its own
        raise Malformed(f"An object of the body has more than {MAX_NAMES} names. Send the fields that are documented.")
    return fields
