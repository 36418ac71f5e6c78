"""Sessions, cookies and forms: who sends a request for a page, and what that person may do.

A session is a random token in a cookie. The database stores a hash of it with the key that opened it, so all processes
that share a database accept the same sessions. A session ends after `LIFETIME`, at sign-out, or when its key expires,
is revoked or is deleted. Each form carries a token derived from the session, so no other site can send one.
"""

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import delete, select
from starlette.datastructures import UploadFile
from starlette.responses import Response

from manymetrics.service.domain.errors import Forbidden, Malformed, Unauthenticated
from manymetrics.service.domain.service import Call, Service
from manymetrics.service.domain.tenants import READ, WRITE, Caller
from manymetrics.service.storage.database import Database
from manymetrics.service.storage.idempotency import IdempotentRequest, ReplayReply
from manymetrics.service.storage.tables import Key, PageSession, Tenant, now

Result = TypeVar("Result")
LIFETIME = timedelta(hours=12)
MAX_SESSIONS = 50  # per key; opening one more ends the oldest
MAX_FIELDS = 2_000  # per form
ANY_SCOPE = "any"  # a session is enough
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SIGNED_OUT = "The session has ended, or there was none. Sign in with a key."
FOREIGN = "The form was not sent from this page, or the session has changed since. Open the page again, then send it."
_FORM_ID = re.compile(r"[0-9a-f]{32}")


class Sessions:
    """The sessions of all tenants."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def open(self, caller: Caller) -> str:
        """Open a session; returns its token, which is stored nowhere else."""
        token, time = secrets.token_hex(32), now()
        of_key = select(PageSession.token_hash).where(PageSession.key_id == caller.key)
        newest_first = of_key.order_by(PageSession.created_at.desc(), PageSession.token_hash)
        session = PageSession(token_hash=_hash(token), key_id=caller.key, created_at=time, expires_at=time + LIFETIME)
        with self.database.write() as transaction:
            transaction.execute(delete(PageSession).where(PageSession.expires_at <= time))
            surplus = transaction.scalars(newest_first.offset(MAX_SESSIONS - 1)).all()
            transaction.execute(delete(PageSession).where(PageSession.token_hash.in_(surplus)))
            transaction.add(session)
        return token

    def find(self, token: str | None) -> Caller:
        """The caller whose session has this token."""
        query = (
            select(Key, Tenant)
            .join(Tenant, Tenant.id == Key.tenant_id)
            .join(PageSession, PageSession.key_id == Key.id)
            .where(PageSession.token_hash == _hash(token or ""), PageSession.expires_at > now())
        )
        with self.database.read() as transaction:
            row = transaction.execute(query).one_or_none()
        caller = Caller.of(*row) if row is not None else None
        if caller is None:
            raise Unauthenticated(SIGNED_OUT)
        return caller

    def close(self, token: str | None) -> None:
        """End the session with this token, if there is one."""
        with self.database.write() as transaction:
            transaction.execute(delete(PageSession).where(PageSession.token_hash == _hash(token or "")))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class Form:
    """A form that was sent: its text fields, with lines that end in LF, and at most one file."""

    fields: Mapping[str, str] = field(default_factory=dict)
    file_name: str = ""
    content: bytes = b""


async def read_form(request: Request) -> Form:
    """Read the form of a request; refuses one that another site made the browser send."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden(FOREIGN)
    max_bytes = request.app.state.service.settings.most_body_bytes
    data = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=max_bytes)
    fields = {name: value.replace("\r\n", "\n") for name, value in data.items() if isinstance(value, str)}
    file = data.get("file")
    if not isinstance(file, UploadFile):
        return Form(fields)
    return Form(fields, file.filename or "", await file.read())


def form_token(token: str) -> str:
    """The token that the forms of a session carry; the session's token cannot be computed from it."""
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest()


def check_form_token(form: Form, expected: str) -> None:
    """Refuse a form that does not carry the token of its session."""
    if not hmac.compare_digest(form.fields.get("csrf", "").encode(), expected.encode()):
        raise Forbidden(FOREIGN)


def is_secure(request: Request) -> bool:
    """Whether cookies are for HTTPS only; False for plain HTTP on the browser's own machine.

    A proxy that ends TLS forwards the host name that the browser used, or sets X-Forwarded-Proto to https.
    """
    if not request.app.state.service.settings.secure_cookies:
        return False
    return request.url.hostname not in LOOPBACK or request.headers.get("x-forwarded-proto", "").lower() == "https"


def cookie_name(request: Request, kind: str = "session") -> str:
    """The name of a cookie; over HTTPS its prefix makes browsers refuse one that another host sets."""
    return f"{'__Host-' if is_secure(request) else ''}manymetrics-{kind}"


def set_cookie(request: Request, response: Response, value: str, *, kind: str = "session") -> None:
    """Set a cookie that scripts cannot read and other sites cannot use; an empty value deletes it."""
    response.set_cookie(
        cookie_name(request, kind),
        value,
        max_age=int(LIFETIME.total_seconds()) if value else 0,
        expires=None if value else 0,
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_secure(request),
    )


@dataclass(frozen=True)
class Visit(Call):
    """A request of a person who is signed in, with the form that was sent."""

    csrf: str
    form: Form = field(default_factory=Form)

    def may(self, scope: str) -> bool:
        """Whether the key has a scope."""
        return scope in self.caller.scopes

    def text(self, name: str) -> str:
        """A field of the form; empty if it is missing."""
        return self.form.fields.get(name, "")

    def number(self, name: str, default: float) -> float:
        """A field that holds a number, with a decimal point or comma."""
        try:
            number = float(self.text(name).replace(",", ".") or default)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise Malformed("A field of the form must be a number. Go back and correct it.")
        return number

    async def read(self, verb: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Call a fast verb of the service for this caller."""
        return await run_in_threadpool(verb, self.caller, *args, **options)

    async def change(self, verb: Callable[..., Any], *args: Any, **options: Any) -> str:
        """Call a verb that changes a classifier and return its id; a form that is sent twice is applied once."""
        try:
            info = await self.work(verb, *args, request=self._request(verb.__name__, *args), **options)
        except ReplayReply as replay:
            return replay.reply.body
        return str(info.id)

    def _request(self, *action: Any) -> IdempotentRequest | None:
        form_id = self.text("once")
        if not _FORM_ID.fullmatch(form_id):
            return None
        seconds = self.service.settings.remember_replies
        content = [action, self.form.fields, self.form.file_name, hashlib.sha256(self.form.content).hexdigest()]
        return IdempotentRequest.of(
            self.caller.tenant, f"page-{form_id}", content, seconds=seconds, write=lambda info: info.id
        )


@dataclass(frozen=True)
class Access:
    """A dependency of pages that need a session, and its key a scope; reads and checks the form of a POST."""

    scope: str

    async def __call__(self, request: Request) -> Visit:
        """The visit; the error pages show it too, as `request.state.visit`."""
        service: Service = request.app.state.service
        token = request.cookies.get(cookie_name(request), "")
        caller = await run_in_threadpool(Sessions(service.database).find, token)
        request.scope["tenant"] = caller.tenant
        visit = request.state.visit = Visit(service, caller, form_token(token))
        service.take_rate(caller)
        if self.scope != ANY_SCOPE:
            caller.require(self.scope)
        if request.method != "POST":
            return visit
        form = await read_form(request)
        check_form_token(form, visit.csrf)
        return Visit(service, caller, visit.csrf, form)


SignedIn = Annotated[Visit, Depends(Access(ANY_SCOPE))]
Reader = Annotated[Visit, Depends(Access(READ))]
Writer = Annotated[Visit, Depends(Access(WRITE))]
