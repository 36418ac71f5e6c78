"""Sessions, cookies and forms: who sends a request for a page, and what that person may do; signing in and out.

The token of a session is in a cookie. Each form carries a token derived from it, so no other site can send one. Before
somebody signs in, the cookie holds a token of no session, which signing in replaces.
"""

import hashlib
import hmac
import json
import math
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from manymetrics.service.domain.errors import Forbidden, Malformed, RequestError, TooMany, Unauthenticated
from manymetrics.service.domain.schemas import ClassifierInfo
from manymetrics.service.domain.service import Call, Service
from manymetrics.service.domain.tenants import LIFETIME, READ, WRITE
from manymetrics.service.storage.idempotency import ReplayReply
from manymetrics.service.web.pages import PAGES, SIGN_IN, page, redirect

Result = TypeVar("Result")
MAX_FIELDS = 2_000  # per form
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FOREIGN = "The form was not sent from this page, or the session has changed since. Open the page again, then send it."
FIRST_PAGE = "/classifiers"
router = APIRouter(include_in_schema=False, tags=[PAGES])
_FORM_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Form:
    """A form that was sent: its text fields, with lines that end in LF, and at most one file."""

    fields: Mapping[str, str] = field(default_factory=dict)
    file_name: str = ""
    content: bytes = b""


async def read_form(request: Request, token: str | None) -> Form:
    """Read the form of a request; refuses one that does not carry the token that belongs to this cookie."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden(FOREIGN)
    max_bytes = request.app.state.service.settings.most_body_bytes
    data = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=max_bytes)
    fields = {name: value.replace("\r\n", "\n") for name, value in data.items() if isinstance(value, str)}
    if token is None:
        raise Malformed("The browser did not send the form's cookie. Allow cookies, then try again.")
    if not hmac.compare_digest(fields.get("csrf", "").encode(), form_token(token).encode()):
        raise Forbidden(FOREIGN)
    file = data.get("file")
    if not isinstance(file, UploadFile):
        return Form(fields)
    return Form(fields, file.filename or "", await file.read())


def form_token(token: str) -> str:
    """The token that the forms of a session carry; the session's token cannot be computed from it."""
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest()


def is_secure(request: Request) -> bool:
    """Whether cookies are for HTTPS only; False for plain HTTP on the browser's own machine.

    A proxy that ends TLS forwards the host name that the browser used, or sets X-Forwarded-Proto to https.
    """
    if not request.app.state.service.settings.secure_cookies:
        return False
    return request.url.hostname not in LOOPBACK or request.headers.get("x-forwarded-proto", "").lower() == "https"


def cookie_name(request: Request) -> str:
    """The name of the cookie; over HTTPS its prefix makes browsers refuse one that another host sets."""
    return f"{'__Host-' if is_secure(request) else ''}manymetrics-session"


def set_cookie(request: Request, response: Response, value: str) -> None:
    """Set the cookie, which scripts cannot read and other sites cannot use; an empty value deletes it."""
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=int(LIFETIME.total_seconds()) if value else 0,
        httponly=True,
        samesite="strict",
        secure=is_secure(request),
    )


@dataclass(frozen=True)
class Visit(Call):
    """A request of a person who is signed in, with the form that was sent."""

    csrf: str
    done: str = ""  # what the page before has done
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

    async def info(self, classifier_id: str) -> ClassifierInfo:
        """A classifier of this caller."""
        return await self.read(self.service.classifiers.get, classifier_id)

    async def change(self, verb: Callable[..., Any], *args: Any, **options: Any) -> str:
        """Call a verb that changes a classifier and return its id; a form that is sent twice is applied once."""
        request, form_id = None, self.text("once")
        if _FORM_ID.fullmatch(form_id):
            file_hash = hashlib.sha256(self.form.content).hexdigest()
            content = [[verb.__name__, *args], self.form.fields, self.form.file_name, file_hash]
            request = self.once(f"page-{form_id}", content)
        try:
            return str((await self.work(verb, *args, request=request, **options)).id)
        except ReplayReply as replay:
            return str(json.loads(replay.reply.body)["id"])


@dataclass(frozen=True)
class Access:
    """A dependency of pages that need a session, and its key a scope; reads and checks the form of a POST."""

    scope: str

    async def __call__(self, request: Request) -> Visit:
        """The visit; the error pages show it too, as `request.state.visit`."""
        service: Service = request.app.state.service
        token = request.cookies.get(cookie_name(request), "")
        caller = await run_in_threadpool(service.tenants.find_session, token)
        request.scope["tenant"] = caller.tenant
        visit = request.state.visit = Visit(service, caller, form_token(token), request.query_params.get("done", ""))
        service.admit(caller, self.scope)
        return replace(visit, form=await read_form(request, token)) if request.method == "POST" else visit


SignedIn = Annotated[Visit, Depends(Access(""))]
Reader = Annotated[Visit, Depends(Access(READ))]
Writer = Annotated[Visit, Depends(Access(WRITE))]


@router.get("/")
async def home(_: SignedIn) -> Response:
    """Redirect to the classifiers, or to the page for signing in."""
    return redirect(FIRST_PAGE)


@router.get(SIGN_IN)
async def ask_for_key(request: Request) -> Response:
    """The page for signing in."""
    return _form(request)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Open a session for a key; it replaces the browser's earlier session."""
    service: Service = request.app.state.service
    try:
        form = await read_form(request, request.cookies.get(cookie_name(request)))
        caller = await run_in_threadpool(service.tenants.authenticate, form.fields.get("key", "").strip())
        service.admit(caller)
    except Unauthenticated:
        return _form(request, Unauthenticated("This key is not valid. Copy all of it, from mm_ to the end."))
    except (Malformed, TooMany) as error:
        return _form(request, error)
    request.scope["tenant"] = caller.tenant
    await run_in_threadpool(service.tenants.close_session, request.cookies.get(cookie_name(request)))
    response = redirect(FIRST_PAGE)
    set_cookie(request, response, await run_in_threadpool(service.tenants.open_session, caller))
    return response


@router.post("/sign-out")
async def sign_out(request: Request, visit: SignedIn) -> Response:
    """End the session."""
    await run_in_threadpool(visit.service.tenants.close_session, request.cookies.get(cookie_name(request)))
    response = redirect(SIGN_IN)
    set_cookie(request, response, "")
    return response


def _form(request: Request, error: RequestError | None = None) -> Response:
    token = request.cookies.get(cookie_name(request)) or secrets.token_hex(32)
    response = page("sign_in.html", error=error, csrf=form_token(token))
    set_cookie(request, response, token)
    return response
