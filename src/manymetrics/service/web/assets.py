"""Style, script and icon: small files of this package, kept in memory and named by their content."""

from __future__ import annotations

import hashlib
from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

from manymetrics.service.problems import NotFound

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("page.css", "page.js", "icon.svg")
router = APIRouter(include_in_schema=False)


def _content(name: str) -> bytes:
    return resources.files("manymetrics.service.web").joinpath("static", name).read_bytes()


_CONTENTS = {name: _content(name) for name in NAMES}
_MARKS = {name: hashlib.sha256(content).hexdigest()[:12] for name, content in _CONTENTS.items()}


def asset_url(name: str) -> str:
    """The address of a file, which changes with its content."""
    return f"/static/{name}?{_MARKS[name]}"


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    """One of the files."""
    content = _CONTENTS.get(name)
    if content is None:
        raise NotFound("There is nothing at this address.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Cross-Origin-Resource-Policy": "same-origin"}
    return Response(content, headers=headers, media_type=TYPES[name.rpartition(".")[2]])
