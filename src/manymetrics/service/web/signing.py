"""Signing in with a key, and out."""

from __future__ import annotations

import secrets

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from manymetrics.service.assembly import Service
from manymetrics.service.problems import Problem, Unauthenticated
from manymetrics.service.tenants import OPERATE, READ, Caller
from manymetrics.service.web.access import (
    SIGN_IN,
    Anybody,
    PageRoute,
    cookie_name,
    drop_cookie,
    read_form,
    require_token,
    see,
    set_cookie,
)
from manymetrics.service.web.rendering import page
from manymetrics.service.web.sessions import Sessions, form_token

FORM = "form"  # the cookie of those who are not signed in yet
router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/")
async def home(request: Request) -> Response:
    """The first page: that of whoever is signed in, or the one to sign in."""
    service: Service = request.app.state.service
    token = request.cookies.get(cookie_name(service))
    return see(_first_page(await run_in_threadpool(Sessions(service.database).find, token)))


@router.get(SIGN_IN)
async def ask_for_key(request: Request) -> Response:
    """The page to sign in."""
    return _form(request)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Open a session for a key; the cookie of any earlier one is replaced."""
    service: Service = request.app.state.service
    form = await read_form(request)
    mark = request.cookies.get(cookie_name(service, FORM))
    if mark is None:
        return _form(request, "The browser did not send the cookie of this form. Allow cookies, then try again.", 400)
    require_token(form, form_token(mark))
    key = form.get("key")
    try:
        caller = await run_in_threadpool(service.tenants.authenticate, key.strip() if isinstance(key, str) else None)
        service.take_rate(caller)
    except Unauthenticated:
        return _form(request, "This key opens nothing. Check that it was copied whole, from mm_ to its end.", 401)
    except Problem as problem:
        return _form(request, problem.detail, problem.status)
    request.scope["tenant"] = caller.tenant
    return await run_in_threadpool(_opened, request, caller)


@router.post("/sign-out")
async def sign_out(request: Request, visit: Anybody) -> Response:
    """End the session, whatever its key may do."""
    token = request.cookies.get(cookie_name(visit.service))
    await run_in_threadpool(Sessions(visit.service.database).close, token)
    response = see(SIGN_IN)
    drop_cookie(response, visit.service)
    return response


def _opened(request: Request, caller: Caller) -> Response:
    service: Service = request.app.state.service
    sessions = Sessions(service.database)
    earlier = request.cookies.get(cookie_name(service))
    if earlier:
        sessions.close(earlier)
    response = see(_first_page(caller))
    set_cookie(response, service, sessions.open(caller))
    drop_cookie(response, service, kind=FORM)
    return response


def _first_page(caller: Caller) -> str:
    return "/operator" if READ not in caller.scopes and OPERATE in caller.scopes else "/classifiers"


def _form(request: Request, error: str | None = None, status: int = 200) -> Response:
    service: Service = request.app.state.service
    mark = request.cookies.get(cookie_name(service, FORM)) or secrets.token_hex(32)
    response = page("sign_in.html", status=status, csrf=form_token(mark), error=error)
    set_cookie(response, service, mark, kind=FORM)
    return response
