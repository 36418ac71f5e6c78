"""Who may see a page: a session in a cookie, a scope for every page, and a token in every form."""

from __future__ import annotations

import asyncio
import hmac
import math
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import OperationalError, TimeoutError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from manymetrics.service.assembly import Service
from manymetrics.service.idempotency import PLAIN, Once
from manymetrics.service.idempotency import Request as Named
from manymetrics.service.problems import Forbidden, Malformed, NotFound, Problem, Unauthenticated, Unavailable
from manymetrics.service.tenants import OPERATE, READ, WRITE, Caller
from manymetrics.service.web.rendering import page
from manymetrics.service.web.sessions import LIFETIME, Sessions, form_token

Result = TypeVar("Result")
MOST_FIELDS = 2_000  # of a form
SIGN_IN = "/sign-in"
_ONCE = re.compile(r"[0-9a-f]{32}")
FOREIGN = "The form was not sent from this page, or the session has changed since. Open the page again, then send it."
ClassifierId = Annotated[str, Path(max_length=40, pattern=r"^[a-z]+_[0-9a-f]+$")]


@dataclass(frozen=True)
class Visit:
    """A request of somebody who is signed in."""

    service: Service
    caller: Caller
    csrf: str
    form: FormData = field(default_factory=FormData)

    def may(self, scope: str) -> bool:
        """Whether the key has a scope."""
        return scope in self.caller.scopes

    def text(self, name: str) -> str:
        """A field of the form, with its lines ended as texts end theirs; empty where it is missing."""
        value = self.form.get(name)
        return value.replace("\r\n", "\n") if isinstance(value, str) else ""

    def number(self, name: str, default: float) -> float:
        """A field that holds a number; a decimal comma is understood."""
        try:
            found = float(self.text(name).replace(",", ".") or default)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise Malformed("A number was expected in the form. Go back and mend it.")
        return found

    async def upload(self, name: str) -> tuple[str, bytes]:
        """The name and content of a file; both empty where none was chosen."""
        value = self.form.get(name)
        if not isinstance(value, UploadFile):
            return "", b""
        return value.filename or "", await value.read()

    def once(self, *asked: Any) -> Named:
        """The change under the name that its form carries, so that a form that is sent again is done once."""
        name = self.text("once")
        if not _ONCE.fullmatch(name):
            return PLAIN
        kept_for = self.service.settings.remember_replies
        return Named(Once.of(self.caller.tenant, f"page-{name}", asked, kept_for=kept_for), 200, lambda info: info.id)

    async def read(self, verb: Callable[..., Result], *given: Any, **options: Any) -> Result:
        """What a quick verb gives for this caller."""
        return await run_in_threadpool(verb, self.caller, *given, **options)

    async def work(self, act: Callable[[], Result]) -> Result:
        """What a longer piece of work gives, done in the tenant's turn."""
        found: Result = await asyncio.wrap_future(self.service.work.submit(self.caller.tenant, act))
        return found


def cookie_name(service: Service, kind: str = "session") -> str:
    """The name of a cookie; over HTTPS browsers themselves see to it that no other host sets it."""
    return f"{'__Host-' if service.settings.secure_cookies else ''}manymetrics-{kind}"


def set_cookie(response: Response, service: Service, value: str, *, kind: str = "session") -> None:
    """Give the browser a cookie that no script can read and no other site can make it send."""
    response.set_cookie(
        cookie_name(service, kind), value, max_age=int(LIFETIME.total_seconds()), path="/", httponly=True,
        samesite="strict", secure=service.settings.secure_cookies,
    )  # fmt: skip


def drop_cookie(response: Response, service: Service, *, kind: str = "session") -> None:
    """Let the browser forget a cookie."""
    response.delete_cookie(
        cookie_name(service, kind), path="/", httponly=True, samesite="strict", secure=service.settings.secure_cookies
    )


async def read_form(request: Request) -> FormData:
    """The form that was sent, from a page of this service."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden(FOREIGN)
    most = request.app.state.service.settings.most_body_bytes
    return await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=most)


def require_token(form: FormData, expected: str) -> None:
    """Refuse a form without the token of the session."""
    given = form.get("csrf")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), expected.encode()):
        raise Forbidden(FOREIGN)


def page_with(scope: str | None) -> Callable[..., Any]:
    """A dependency: whoever is signed in, whose key must have the scope; forms that are sent are read and checked."""

    async def visit(request: Request) -> Visit:
        service: Service = request.app.state.service
        token = request.cookies.get(cookie_name(service))
        caller = await run_in_threadpool(Sessions(service.database).find, token)
        request.scope["tenant"] = caller.tenant
        found = request.state.visit = Visit(service, caller, form_token(token or ""))
        service.take_rate(caller)
        if scope is not None:
            caller.require(scope)
        if request.method != "POST":
            return found
        form = await read_form(request)
        require_token(form, found.csrf)
        request.state.visit = Visit(service, caller, found.csrf, form)
        return request.state.visit  # type: ignore[no-any-return]

    visit.scope = scope or "session"  # type: ignore[attr-defined]
    return visit


Anybody = Annotated[Visit, Depends(page_with(None))]
Reader = Annotated[Visit, Depends(page_with(READ))]
Writer = Annotated[Visit, Depends(page_with(WRITE))]
Operator = Annotated[Visit, Depends(page_with(OPERATE))]


class PageRoute(APIRoute):
    """A route whose problems are pages; without a session it leads to the page to sign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route, with its problems made pages."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except Unauthenticated:
                return see(SIGN_IN)
            except Problem as problem:
                return problem_page(request, problem)
            except RequestValidationError:
                return problem_page(request, NotFound("There is nothing at this address."))
            except HTTPException:
                return problem_page(request, Malformed("The form cannot be read. Go back and send it again."))
            except (OperationalError, TimeoutError):
                return problem_page(request, Unavailable("The database cannot be reached for now.", retry_after=2))

        return answer


def see(address: str) -> Response:
    """An answer that sends the browser on to another page."""
    return RedirectResponse(address, 303)


def problem_page(request: Request, problem: Problem) -> Response:
    """A problem as a page."""
    visit = getattr(request.state, "visit", None)
    made = page("problem.html", status=problem.status, visit=visit, problem=problem)
    if problem.retry_after is not None:
        made.headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    return made
