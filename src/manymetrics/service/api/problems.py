"""Every error as `application/problem+json` (RFC 9457), none of which repeats what the client sent."""

from __future__ import annotations

import logging
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from manymetrics.service.problems import Invalid, Problem, Unauthenticated, Unavailable

MEDIA_TYPE = "application/problem+json"
TITLES = {400: "Bad request", 404: "Not found", 405: "Method not allowed", 413: "Content too large"}
DETAILS = {
    404: "There is nothing at this address.",
    405: "This address does not know the method. The header Allow names those it knows.",
    413: "The body is larger than the service accepts. Send less at once.",
}
logger = logging.getLogger("manymetrics.service")


class ProblemField(BaseModel):
    """What is wrong with one field of the request."""

    field: str
    message: str


class ProblemBody(BaseModel):
    """An error."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[ProblemField] | None = None


def problem_response(problem: Problem, errors: list[dict[str, str]] | None = None) -> Response:
    """A problem as a response."""
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    if isinstance(problem, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return _response(problem.status, problem.title, problem.detail, headers, errors)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problems in the OpenAPI document."""
    about = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}}
    return {status: {"description": "A problem.", **about} for status in statuses}


def add_handlers(app: FastAPI) -> None:
    """Let the app answer every error as a problem."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, problem: Problem) -> Response:
        return problem_response(problem)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, problem: RequestValidationError) -> Response:
        return problem_response(Invalid("The request does not have the form it needs."), _fields(problem))

    @app.exception_handler(HTTPException)
    async def _http(_: Request, problem: HTTPException) -> Response:
        status = problem.status_code
        title = TITLES.get(status, "Error")
        return _response(status, title, DETAILS.get(status, "The request cannot be served."), problem.headers)

    @app.exception_handler(OperationalError)
    @app.exception_handler(TimeoutError)
    async def _database(_: Request, problem: Exception) -> Response:
        logger.error("database: %s", type(problem).__name__)
        return problem_response(Unavailable("The database cannot be reached for now. Try again.", retry_after=2))


def unexpected(problem: BaseException) -> Response:
    """The answer to a failure nobody thought of; the log says which kind and where, without any text."""
    trace, frames = problem.__traceback__, []
    while trace is not None:
        frames.append(f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    logger.error("unexpected %s at %s", type(problem).__name__, " ".join(frames[-6:]))
    return problem_response(Problem("The service failed unexpectedly. The operator finds it in the log."))


def _fields(problem: RequestValidationError) -> list[dict[str, str]]:
    """Which fields are wrong, and how; names that the client made up are not repeated."""
    told = []
    for one in problem.errors()[:20]:
        places = [str(place) for place in one["loc"]]
        made_up = one["type"] in ("extra_forbidden",)
        told.append({
            "field": ".".join(places[:-1] if made_up else places),
            "message": "There is no such field." if made_up else _message(one),
        })  # fmt: skip
    return told


def _message(one: dict[str, Any]) -> str:
    """What pydantic says of the kind of error, where that repeats nothing of the input."""
    if one["type"] in ("json_invalid", "value_error"):
        return "The value cannot be used."
    return str(one["msg"])


def _response(status: int, title: str, detail: str, headers: Any, errors: Any = None) -> Response:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body | ({"errors": errors} if errors else {}), status, headers, MEDIA_TYPE)
