"""Signing in with a key, and signing out."""

import secrets

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from manymetrics.service.domain.errors import Malformed, RequestError, Unauthenticated
from manymetrics.service.domain.service import Service
from manymetrics.service.domain.tenants import Caller
from manymetrics.service.web.pages import PAGES, SIGN_IN, page, redirect
from manymetrics.service.web.session import (
    Sessions,
    SignedIn,
    check_form_token,
    cookie_name,
    form_token,
    read_form,
    set_cookie,
)

FIRST_PAGE = "/classifiers"
FORM = "form"  # the kind of the cookie that stands in for a session before there is one
router = APIRouter(include_in_schema=False, tags=[PAGES])


@router.get("/")
async def home(request: Request) -> Response:
    """Redirect to the classifiers, or to the page for signing in."""
    service: Service = request.app.state.service
    token = request.cookies.get(cookie_name(request))
    await run_in_threadpool(Sessions(service.database).find, token)
    return redirect(FIRST_PAGE)


@router.get(SIGN_IN)
async def ask_for_key(request: Request) -> Response:
    """The page for signing in."""
    return _form(request)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Open a session for a key; it replaces the browser's earlier session."""
    service: Service = request.app.state.service
    form = await read_form(request)
    token = request.cookies.get(cookie_name(request, FORM))
    if token is None:
        return _form(request, Malformed("The browser did not send the form's cookie. Allow cookies, then try again."))
    check_form_token(form, form_token(token))
    try:
        caller = await run_in_threadpool(service.tenants.authenticate, form.fields.get("key", "").strip())
        service.take_rate(caller)
    except Unauthenticated:
        return _form(request, Unauthenticated("This key is not valid. Copy all of it, from mm_ to the end."))
    except RequestError as error:
        return _form(request, error)
    request.scope["tenant"] = caller.tenant
    return await run_in_threadpool(_open_session, request, caller)


@router.post("/sign-out")
async def sign_out(request: Request, visit: SignedIn) -> Response:
    """End the session."""
    token = request.cookies.get(cookie_name(request))
    await run_in_threadpool(Sessions(visit.service.database).close, token)
    response = redirect(SIGN_IN)
    set_cookie(request, response, "")
    return response


def _open_session(request: Request, caller: Caller) -> Response:
    sessions = Sessions(request.app.state.service.database)
    if earlier := request.cookies.get(cookie_name(request)):
        sessions.close(earlier)
    response = redirect(FIRST_PAGE)
    set_cookie(request, response, sessions.open(caller))
    set_cookie(request, response, "", kind=FORM)
    return response


def _form(request: Request, error: RequestError | None = None) -> Response:
    token = request.cookies.get(cookie_name(request, FORM)) or secrets.token_hex(32)
    response = page("sign_in.html", error=error, csrf=form_token(token))
    set_cookie(request, response, token, kind=FORM)
    return response
