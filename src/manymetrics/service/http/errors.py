"""Every error as `application/problem+json` (RFC 9457); none repeats what the client sent."""

import logging
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from manymetrics.service.domain.errors import Invalid, RequestError, Unauthenticated, Unavailable
from manymetrics.service.runtime.logs import frames_of
from manymetrics.service.storage.idempotency import ReplayReply

MEDIA_TYPE = "application/problem+json"
MAX_FIELDS = 20  # listed of a request that is not valid
OTHER_ERRORS = {  # of routing: title and detail
    404: ("Not found", "There is nothing at this address."),
    405: ("Method not allowed", "This address does not know the method. The header Allow names those it knows."),
    413: ("Content too large", "The body is larger than the service accepts. Send less at once."),
    400: ("Bad request", "The request cannot be served."),
}
logger = logging.getLogger("manymetrics.service")


class ProblemBody(BaseModel):
    """An error; `errors` are the fields of the request that are wrong, each with a message."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


def error_response(error: RequestError, fields: list[dict[str, str]] | None = None) -> Response:
    """An error as a response."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return _response(error.status, error.title, error.detail, headers, fields)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Errors in the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}}
    return {status: {"description": "A problem.", "content": content} for status in statuses}


def add_handlers(app: FastAPI) -> None:
    """Let the app answer every error as a problem, and a repeated request with the stored reply."""

    @app.exception_handler(RequestError)
    async def _refused(_: Request, error: RequestError) -> Response:
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(Invalid("The request does not have the form it needs."), _fields(error))

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        title, detail = OTHER_ERRORS.get(error.status_code, ("Error", "The request cannot be served."))
        return _response(error.status_code, title, detail, error.headers)

    @app.exception_handler(OperationalError)
    @app.exception_handler(TimeoutError)
    async def _database(_: Request, error: Exception) -> Response:
        logger.error("database: %s", type(error).__name__)
        return error_response(Unavailable("The database cannot be reached for now. Try again.", retry_after=2))

    @app.exception_handler(ReplayReply)
    async def _replay(_: Request, replay: ReplayReply) -> Response:
        reply = replay.reply
        return Response(reply.body, reply.status, {"Idempotent-Replay": "true"}, "application/json")


def unexpected(error: BaseException) -> Response:
    """The response to an unforeseen failure; the log names its type and lines of code, without any text."""
    logger.error("unexpected %s at %s", type(error).__name__, " ".join(frames_of(error)))
    return error_response(RequestError("The service failed unexpectedly. The operator finds it in the log."))


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


def _response(status: int, title: str, detail: str, headers: Any, fields: Any = None) -> Response:
    problem = ProblemBody(title=title, status=status, detail=detail, errors=fields or None)
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)
