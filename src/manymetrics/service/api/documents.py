"""The OpenAPI document, and a page of it that needs no script and no network."""

from __future__ import annotations

import html
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse

from manymetrics.service.api.problems import ProblemBody

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def documentation(request: Request) -> HTMLResponse:
    """Every route, as a plain page."""
    document = request.app.openapi()
    rows = [
        f"<tr><td><code>{method.upper()}</code></td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(about.get('description', ''))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]
    title = html.escape(document["info"]["title"])
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><h1>{title}</h1>"
        "<p>Send a key with every request: <code>Authorization: Bearer KEY</code>. Bodies and answers are JSON; the "
        "whole document is <a href=openapi.json>openapi.json</a>.</p>"
        f"<table><tr><th>method<th>address<th>what it does</tr>{''.join(rows)}</table></html>"
    )


def complete_document(app: FastAPI) -> None:
    """Give the document the form of problems, and leave out the forms of errors that are never sent."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemas = document["components"]["schemas"]
        schemas["ProblemBody"] = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schemas["ProblemBody"].pop("$defs", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for methods in document["paths"].values():
            for about in methods.values():
                _without_default_errors(about)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _without_default_errors(about: dict[str, Any]) -> None:
    for status, answer in list(about["responses"].items()):
        if "HTTPValidationError" in str(answer):
            del about["responses"][status]
