"""Templates -> responses: every value is escaped, and a page may load or run only what this service serves."""

import hashlib
import re
import secrets
from pathlib import Path
from typing import Annotated, Any

import fastapi
from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

import manymetrics as mm
from manymetrics.service.domain.errors import Malformed, NotFound, RequestError, Unauthenticated
from manymetrics.service.domain.schemas import ID

SIGN_IN = "/sign-in"
UNKNOWN_ADDRESS = "There is nothing at this address."
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ASSET_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}  # name -> media type
_STATIC = Path(__file__).parent / "static"
_DIGESTS = {name: hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:12] for name in ASSETS}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
PAGES = "pages"  # the tag of their routes
router = APIRouter(include_in_schema=False)
ClassifierId = Annotated[str, fastapi.Path(max_length=40, pattern=ID)]
Cursor = Annotated[str | None, Query(max_length=40, pattern=ID)]  # the last id of the page before


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    """A style sheet, script or icon."""
    if name not in ASSETS:
        raise NotFound(UNKNOWN_ADDRESS)
    return FileResponse(_STATIC / name, headers=ASSET_HEADERS, media_type=ASSETS[name])


def visible(text: Any) -> str:
    """A text with its control characters escaped, including those that change the writing direction."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))


TEMPLATES = Environment(
    loader=PackageLoader("manymetrics.service.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
TEMPLATES.filters |= {
    "visible": visible,
    "percent": lambda share: "–" if share is None else f"{100 * share:.0f}\u00a0%",
    "minute": lambda time: f"{time:%Y-%m-%d %H:%M} UTC",
}
TEMPLATES.globals |= {
    "asset": lambda name: f"/static/{name}?{_DIGESTS[name]}",  # an address that changes with the content
    "form_id": lambda: secrets.token_hex(16),
    "package_version": mm.__version__,
}


def page(template: str, *, visit: Any = None, error: RequestError | None = None, **values: Any) -> Response:
    """A page, with the status of the error that it shows; the layout has a message for each value of `done`."""
    values = {"visit": visit, "done": visit and visit.done, "error": error, **values}
    content = TEMPLATES.get_template(template).render(values)
    return HTMLResponse(content, error.status if error else 200, PAGE_HEADERS | (error.headers if error else {}))


def redirect(address: str) -> Response:
    """A response that sends the browser to another page."""
    return RedirectResponse(address, 303)


def is_page(request: Request) -> bool:
    """Whether a request is for one of the pages, with a method that the page knows."""
    route = request.scope.get("route")
    return PAGES in getattr(route, "tags", ()) and request.method in getattr(route, "methods", ())


def error_page(request: Request, error: Exception) -> Response:
    """The page about an error; without a session, a redirect to the page for signing in."""
    if isinstance(error, Unauthenticated):
        return redirect(SIGN_IN)
    if isinstance(error, RequestValidationError):
        error = NotFound(UNKNOWN_ADDRESS)
    if not isinstance(error, RequestError):
        error = Malformed("The form cannot be read. Go back and send it again.")
    return page("error.html", error=error, visit=getattr(request.state, "visit", None))
