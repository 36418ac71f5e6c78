"""What stands before every route: a bound on requests in flight, on bodies and on headers; and a line in the log."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections import OrderedDict
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manymetrics.service.api.problems import problem_response, unexpected
from manymetrics.service.assembly import Service
from manymetrics.service.problems import Malformed, Problem, TooLarge, TooMany, UnsupportedMedia
from manymetrics.service.turns import FULL, Turn, Turns

logger = logging.getLogger("manymetrics.service.requests")
REMEMBERED = 10_000  # keys whose tenants are known before they are looked up
METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")  # others are a client's own words
IN_TURN = "/predictions"  # what is asked for most, and answered in the turn of its tenant
ALWAYS = ("/health", "/ready")  # answered however busy the service is
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


class Guards:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.in_flight = 0
        self._tenants: OrderedDict[str, str] = OrderedDict()  # by the hash of a key that opened something
        bounds = service.settings
        self.turns = Turns(at_once=bounds.at_once, each=bounds.at_once_each, most=bounds.in_turn)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it before it is read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        watched = Watched(send, secrets.token_hex(8))
        self.in_flight += 1
        try:
            await self._answer(scope, receive, watched)
        finally:
            self.in_flight -= 1
            self._tell(scope, watched)

    async def _answer(self, scope: Scope, receive: Receive, watched: Watched) -> None:
        headers = Headers(scope=scope)
        turn = Turn(self.turns, self._line(headers)) if scope["path"].endswith(IN_TURN) else None
        bounded = Bounded(receive, self.service.settings.most_body_bytes, turn)
        try:
            self._refuse(scope, headers)
            if turn is not None and turn.is_refused:
                raise TooMany(FULL, retry_after=1)
            await self.app(scope, bounded, watched)
        except Problem as problem:
            if not watched.status:
                await problem_response(problem)(scope, receive, watched)
        except Exception as problem:
            if not watched.status:
                await unexpected(problem)(scope, receive, watched)
        finally:
            if turn is not None:
                turn.leave()
            self._remember(headers, scope.get("tenant"))

    def _line(self, headers: Headers) -> str:
        """Whose line a request waits in: that of its tenant, or the one for all who are not known yet."""
        return self._tenants.get(_key_hash(headers), "")

    def _remember(self, headers: Headers, tenant: str | None) -> None:
        """Know the tenant by its key when it comes again."""
        if tenant is None:
            return
        name = _key_hash(headers)
        self._tenants[name] = tenant
        self._tenants.move_to_end(name)
        while len(self._tenants) > REMEMBERED:
            self._tenants.popitem(last=False)

    def _refuse(self, scope: Scope, headers: Headers) -> None:
        settings = self.service.settings
        if self.in_flight > settings.in_flight and scope["path"] not in ALWAYS:
            raise TooMany(FULL, retry_after=1)
        host = _HOST.fullmatch(headers.get("host", ""))
        if host is None or (settings.hosts and host[1] not in settings.hosts):
            raise Malformed("The header Host does not name this service.")
        if headers.get("content-encoding", "identity") != "identity":
            raise UnsupportedMedia("The body is compressed. Send it as it is.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:18]) > settings.most_body_bytes:
            raise TooLarge("The body is larger than the service accepts. Send less at once.")

    def _tell(self, scope: Scope, watched: Watched) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "unknown")
        spent = time.perf_counter() - watched.started
        method = scope["method"] if scope["method"] in METHODS else "other"
        about: dict[str, Any] = {
            "tenant": scope.get("tenant"),
            "method": method,
            "route": path,
            "status": watched.status,
        }
        self.service.measures.count(**about, seconds=spent)
        line = {"request": watched.request_id, **about, "ms": round(1000 * spent, 1)}
        logger.info("request", extra={"about": line})


def _key_hash(headers: Headers) -> str:
    key = headers.get("authorization") or headers.get("x-api-key") or ""
    return hashlib.sha256(key.encode()).hexdigest()


class Watched:
    """What is sent, with the status noted and headers added that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.send, self.request_id = send, request_id
        self.status = 0
        self.started = time.perf_counter()

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.request_id
        await self.send(message)


class Bounded:
    """What is received, up to a number of bytes; the last of it when it is the request's turn."""

    def __init__(self, receive: Receive, most: int, turn: Turn | None = None) -> None:
        self.receive, self.left, self.turn = receive, most, turn

    async def __call__(self) -> Any:
        """Receive one message."""
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise TooLarge("The body is larger than the service accepts. Send less at once.")
        if self.turn is not None and message["type"] == "http.request" and not message.get("more_body"):
            await self.turn.take()
        return message
