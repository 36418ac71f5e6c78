"""Every error as `application/problem+json` (RFC 9457), or as a page; none repeats what the client sent."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from manymetrics.service.domain.errors import Invalid, RequestError, Unauthenticated, Unavailable
from manymetrics.service.runtime.monitoring import frames_of
from manymetrics.service.storage.idempotency import ReplayReply
from manymetrics.service.web.pages import error_page, is_page

MEDIA_TYPE = "application/problem+json"
MAX_FIELDS = 20  # listed of a request that is not valid
ROUTING_ERRORS = {
    404: "There is nothing at this address.",
    405: "This address does not know the method. The header Allow names those it knows.",
}
logger = logging.getLogger("manymetrics.service")


class ProblemBody(BaseModel):
    """An error; `errors` are the fields of the request that are wrong, each with a message."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Errors in the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}}
    return {status: {"description": "A problem.", "content": content} for status in statuses}


def add_handlers(app: FastAPI) -> None:
    """Let the app answer every error as a problem or a page, and a repeated request with the stored reply."""
    for kind in (ReplayReply, RequestError, RequestValidationError, HTTPException, OperationalError, TimeoutError):
        app.add_exception_handler(kind, _respond)


async def _respond(request: Request, error: Exception) -> Response:
    if isinstance(error, ReplayReply):
        return Response(error.reply.body, error.reply.status, {"Idempotent-Replay": "true"}, "application/json")
    if isinstance(error, HTTPException) and isinstance(error.__cause__, RequestError):  # while FastAPI read the body
        error = error.__cause__
    if isinstance(error, OperationalError | TimeoutError):
        logger.error("database: %s", type(error).__name__)
        error = Unavailable("The database cannot be reached for now. Try again.", retry_after=2)
    return error_page(request, error) if is_page(request) else error_response(error)


def error_response(error: Exception) -> Response:
    """An error as a problem; an unforeseen one is named in the log, by its type and lines of code without any text."""
    match error:
        case RequestError():
            challenge = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthenticated) else {}
            return _problem(error.status, error.detail, error.headers | challenge)
        case RequestValidationError():
            detail = "The request does not have the form it needs."
            return _problem(Invalid.status, detail, errors=_fields(error))
        case HTTPException(status_code=status):
            return _problem(status, ROUTING_ERRORS.get(status, "The request cannot be served."), error.headers)
    logger.error("unexpected %s at %s", type(error).__name__, " ".join(frames_of(error)))
    return error_response(RequestError("The service failed unexpectedly. The operator finds it in the log."))


def _problem(status: int, detail: str, headers: Any = None, **more: Any) -> Response:
    title = HTTPStatus(status).phrase.capitalize()
    problem = ProblemBody(title=title, status=status, detail=detail, **more)
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)


def _fields(error: RequestValidationError) -> list[dict[str, str]]:
    """Which fields are wrong, and how; neither names that the client made up nor values are repeated."""
    fields = []
    for details in error.errors()[:MAX_FIELDS]:
        path, message = [str(part) for part in details["loc"]], str(details["msg"])
        if details["type"] == "extra_forbidden":
            path, message = path[:-1], "There is no such field."
        elif details["type"] in ("json_invalid", "value_error"):
            message = "The value cannot be used."
        fields.append({"field": ".".join(path), "message": message})
    return fields
