"""Strict reading of JSON bodies: no NaN, no name twice in an object, no depth or number beyond reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from manymetrics.service.problems import Malformed, UnsupportedMedia

DEEPEST, MOST_DIGITS = 20, 30


class StrictRequest(Request):
    """A request whose JSON body is read strictly."""

    parsed: Any = None

    async def read(self) -> None:
        """Receive the body and parse it; done before FastAPI does, which would hide what is wrong with it."""
        body = await self.body()
        self.parsed = read_json(body) if body else None

    async def json(self) -> Any:
        """The body."""
        return self.parsed


class StrictRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler, given a strict request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if self.body_field is not None and kind != "application/json":
                raise UnsupportedMedia("The body is not JSON. Send it with Content-Type: application/json.")
            strict = StrictRequest(request.scope, request.receive)
            if self.body_field is not None:
                await strict.read()
            return await handle(strict)

        return strictly


def read_json(body: bytes) -> Any:
    """A JSON document; whatever programs read in different ways is refused."""
    try:
        text = body.decode("utf-8")
        if _depth(text) > DEEPEST:
            raise Malformed("The body is nested too deeply. Send a flatter one.")
        return json.loads(text, parse_constant=_no_constant, parse_int=_whole, object_pairs_hook=_named_once)
    except (ValueError, RecursionError):
        raise Malformed("The body is no JSON that can be read. Send UTF-8, without NaN.") from None


def _depth(text: str) -> int:
    """How deeply brackets are nested; brackets in strings are counted too where they can do harm only."""
    depth = deepest = 0
    inside = escaped = False
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    for sign in text:
        if inside:
            inside = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            inside = True
        elif sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest


def _no_constant(_: str) -> NoReturn:
    raise ValueError("a number that is none")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number beyond reason")
    return int(digits)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed("A name comes twice in an object of the body. Give it once.")
    return found
