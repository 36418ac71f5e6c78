"""Templates -> pages: everything is escaped, and no page may load or run anything that is not served beside it."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

import manymetrics as mm
from manymetrics.service.web.assets import asset_url

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
DONE = {  # what a page may be asked to say at its top
    "added": "Added.",
    "corrected": "Corrected.",
    "removed": "Removed.",
    "created": "The classifier is ready. Try a text.",
    "deleted": "The classifier is deleted.",
    "saved": "Saved.",
    "rolled-back": "Rolled back. The earlier state answers again, as a version of its own.",
}
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def shown(text: Any) -> str:
    """A text with its control characters made visible, those among them that turn the direction of writing."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text))


def percent(share: float | None) -> str:
    """A share, for people."""
    return "–" if share is None else f"{100 * share:.0f}\u00a0%"  # which is never parted at the end of a line


def milliseconds(seconds: float) -> str:
    """A short time, for people."""
    return f"{1000 * seconds:,.0f}\u00a0ms"


def moment(when: datetime) -> str:
    """A time, for people."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("manymetrics.service.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters |= {"shown": shown, "percent": percent, "moment": moment, "milliseconds": milliseconds}
    made.globals |= {"asset": asset_url, "version_of_package": mm.__version__, "once": lambda: secrets.token_hex(16)}
    return made


_PAGES = _environment()


def page(
    template: str, *, status: int = 200, visit: Any = None, done: str | None = None, **values: Any
) -> HTMLResponse:
    """A page; `visit` says who sees it, `done` what has just been done."""
    content = _PAGES.get_template(template).render(visit=visit, done=DONE.get(done or ""), **values)
    return HTMLResponse(content, status, HEADERS)
