"""Limits on every request before it reaches a route, headers of every response, and the request log."""

import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manymetrics.service.domain.errors import Malformed, RequestError, TooLarge, TooMany, UnsupportedMedia
from manymetrics.service.domain.service import Service
from manymetrics.service.http.auth import key_of
from manymetrics.service.http.errors import error_response, unexpected
from manymetrics.service.runtime.metrics import METHODS
from manymetrics.service.runtime.scheduler import NOT_ADMITTED, Admission

logger = logging.getLogger("manymetrics.service.requests")
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
        """Answer one request, or refuse it before it is read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        recorder = ResponseRecorder(send, secrets.token_hex(8))
        self.in_flight += 1
        try:
            await self._answer(scope, receive, recorder)
        finally:
            self.in_flight -= 1
            self._log(scope, recorder)

    async def _answer(self, scope: Scope, receive: Receive, recorder: "ResponseRecorder") -> None:
        headers, max_bytes = Headers(scope=scope), self.service.settings.most_body_bytes
        if scope["path"] == SIGN_IN:
            max_bytes = min(max_bytes, SIGN_IN_BYTES)
        admission, tenant = None, ""
        if scope["path"].endswith(ADMITTED):
            admission, caller = (
                self.service.admission,
                self.service.tenants.remembered(key_of(headers), however_old=True),
            )
            tenant = caller.tenant if caller else tenant
        body = BodyLimit(receive, max_bytes, admission, tenant)
        try:
            self._check(scope["path"], headers, max_bytes)
            if admission is not None and admission.refuses(tenant):
                raise TooMany(NOT_ADMITTED, retry_after=1)
            await self.app(scope, body, recorder)
        except RequestError as error:
            if not recorder.status:
                await error_response(error)(scope, receive, recorder)
        except Exception as error:
            if not recorder.status:
                await unexpected(error)(scope, receive, recorder)
        finally:
            if body.is_admitted:
                self.service.admission.leave(tenant)

    def _check(self, path: str, headers: Headers, max_bytes: int) -> None:
        settings = self.service.settings
        if self.in_flight > settings.in_flight and path not in ALWAYS:
            raise TooMany(NOT_ADMITTED, retry_after=1)
        host = _HOST.fullmatch(headers.get("host", ""))
        if host is None or (settings.hosts and host[1] not in settings.hosts):
            raise Malformed("The header Host does not name this service.")
        if headers.get("content-encoding", "identity") != "identity":
            raise UnsupportedMedia("The body is compressed. Send it as it is.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:18]) > max_bytes:
            raise TooLarge(BODY_TOO_LARGE)

    def _log(self, scope: Scope, recorder: "ResponseRecorder") -> None:
        seconds = time.perf_counter() - recorder.started
        about: dict[str, Any] = {
            "method": scope["method"] if scope["method"] in METHODS else "other",
            "route": getattr(scope.get("route"), "path", "unknown"),
            "status": recorder.status,
        }
        self.service.measures.count(**about, seconds=seconds)
        line = {"request": recorder.request_id, "tenant": scope.get("tenant"), **about, "ms": round(1000 * seconds, 1)}
        logger.info("request", extra={"about": line})


@dataclass
class ResponseRecorder:
    """Sends a response, notes its status and adds the headers that every response has."""

    send: Send
    request_id: str
    started: float = field(default_factory=time.perf_counter)
    status: int = 0

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.request_id
        await self.send(message)


@dataclass
class BodyLimit:
    """Receives a body up to a number of bytes; the last of it after the admission of the request, if it needs one."""

    receive: Receive
    left: int  # bytes
    admission: Admission | None
    tenant: str
    is_admitted: bool = False

    async def __call__(self) -> Message:
        """Receive one message."""
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise TooLarge(BODY_TOO_LARGE)
        is_last = message["type"] == "http.request" and not message.get("more_body")
        if is_last and self.admission is not None and not self.is_admitted:
            await self.admission.enter(self.tenant)
            self.is_admitted = True
        return message
