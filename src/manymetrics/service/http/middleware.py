"""Limits on every request before it reaches a route, headers of every response, and the request log."""

import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manymetrics.service.domain.errors import Malformed, RequestError, TooMany
from manymetrics.service.domain.service import Service
from manymetrics.service.http.errors import error_response
from manymetrics.service.runtime.scheduler import NOT_ADMITTED

logger = logging.getLogger("manymetrics.service.requests")
METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")  # others are a client's own words
ADMITTED = "/predictions"  # the end of the path of requests that wait for admission: most requests are of this kind
ALWAYS = ("/health", "/ready")  # answered however busy the service is
SIGN_IN, SIGN_IN_BYTES = "/sign-in", 2**14  # the only body that is read without a key or a session, and its limit
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
BODY_TOO_LARGE = "The body is larger than the service accepts. Send less at once."


class LimitsMiddleware:
    """ASGI middleware around the app."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it before it is read; count it, and write a line of the log."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange, started = Exchange(self.service, scope, receive, send), time.perf_counter()
        self.in_flight += 1
        try:
            exchange.check(self.in_flight)
            await self.app(scope, exchange.receive, exchange.send)
        except Exception as error:
            if not exchange.status:
                await error_response(error)(scope, receive, exchange.send)
        finally:
            self.in_flight -= 1
            if exchange.is_admitted:
                self.service.admission.leave(exchange.tenant)
            seconds, measures = time.perf_counter() - started, self.service.measures
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = getattr(scope.get("route"), "path", "unknown")
            measures.requests.labels(method, route, str(exchange.status)).inc()
            measures.seconds.labels(route).observe(seconds)
            line = {"request": exchange.id, "tenant": scope.get("tenant"), "method": method, "route": route}
            line |= {"status": exchange.status, "ms": round(1000 * seconds, 1)}
            logger.info("request", extra={"about": line})


@dataclass(eq=False)
class Exchange:
    """One request and its response.

    The last part of the body of a request that needs admission is received after the admission.
    """

    service: Service
    scope: Scope
    receive_next: Receive
    send_on: Send
    id: str = field(default_factory=partial(secrets.token_hex, 8))
    status: int = 0  # of the response, once it has begun
    tenant: str = ""  # that waits for admission; "" if the key is not known yet
    is_admitted: bool = False
    bytes_left: int = 0  # of the body

    def check(self, in_flight: int) -> None:
        """Refuse the request if the service is busy, or for what its headers say."""
        headers, settings, path = Headers(scope=self.scope), self.service.settings, self.scope["path"]
        limit = settings.most_body_bytes
        self.bytes_left = min(limit, SIGN_IN_BYTES) if path == SIGN_IN else limit
        if in_flight > settings.in_flight and path not in ALWAYS:
            raise TooMany(NOT_ADMITTED, retry_after=1)
        host = _HOST.fullmatch(headers.get("host", ""))
        if host is None or (settings.hosts and host[1] not in settings.hosts):
            raise Malformed("The header Host does not name this service.")
        if headers.get("content-encoding", "identity") != "identity":
            raise RequestError("The body is compressed. Send it as it is.", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:18]) > self.bytes_left:
            raise RequestError(BODY_TOO_LARGE, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        scheme, key = get_authorization_scheme_param(headers.get("authorization"))
        self.scope["key"] = key if scheme.lower() == "bearer" else None
        if path.endswith(ADMITTED):
            caller = self.service.tenants.remembered(self.scope["key"], however_old=True)
            self.tenant = caller.tenant if caller else ""
            if self.service.admission.refuses(self.tenant):
                raise TooMany(NOT_ADMITTED, retry_after=1)

    async def receive(self) -> Message:
        """Receive one message of the request, whose body has a limit."""
        message = await self.receive_next()
        self.bytes_left -= len(message.get("body", b""))
        if self.bytes_left < 0:
            raise RequestError(BODY_TOO_LARGE, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        is_last = message["type"] == "http.request" and not message.get("more_body")
        if is_last and self.scope["path"].endswith(ADMITTED) and not self.is_admitted:
            await self.service.admission.enter(self.tenant)
            self.is_admitted = True
        return message

    async def send(self, message: Message) -> None:
        """Send one message of the response, with the headers that every response has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.id
        await self.send_on(message)
