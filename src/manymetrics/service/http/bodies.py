"""Bodies of requests, read strictly, and pages of lists.

A body is parsed in a worker thread if it is large. Refused are unknown fields, a name that occurs twice in an object or
too many names in one, and too many arrays and objects.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Self, TypeVar

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints

from manymetrics.service.domain.errors import Malformed, UnsupportedMedia

MAX_NAMES = 100  # of an object
MAX_ITEMS = 100_000  # of a list; only its first wrong item is reported
MAX_BRACKETS = 2**17  # arrays and objects of a body; more than the items of a list
LARGE = 2**16  # bytes of a body that is parsed in a worker thread
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)  # the last one may lack its end
Item = TypeVar("Item")
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
ID = r"^[a-z]+_[0-9a-f]+$"
Id = Annotated[str, StringConstraints(max_length=40)]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=40, pattern=ID, description="`next` of the page before.")]


class Body(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExampleBody(Body):
    """A labelled text; without a label it is a counter-example: a text that is out of scope."""

    text: Text
    label: Label | None = None


class CreateBody(Body):
    """A new classifier."""

    name: Name
    examples: Annotated[list[ExampleBody], FailFast(), Field(min_length=2, max_length=MAX_ITEMS)]
    reject: Share = 0.0
    margin: Share = 0.0
    shared: bool = False


class UpdateBody(Body):
    """What is to be changed of a classifier; a field that is missing is not changed."""

    name: Name | None = None
    reject: Share | None = None
    margin: Share | None = None
    shared: bool | None = None


class ChangeExamplesBody(Body):
    """Examples to be added, and ids of examples to be removed, in one step."""

    add: Annotated[list[ExampleBody], FailFast(), Field(max_length=MAX_ITEMS)] = []
    remove: Annotated[list[Id], FailFast(), Field(max_length=MAX_ITEMS)] = []


class TextsBody(Body):
    """Texts to be predicted, and how many near examples to name with each prediction."""

    texts: Annotated[list[Text], FailFast(), Field(min_length=1, max_length=MAX_ITEMS)]
    nearest: Annotated[int, Field(ge=0, le=20)] = 3


class ExplainBody(Body):
    """A text whose prediction is to be explained."""

    text: Text


class EvaluateBody(Body):
    """A labelled test set, if there is one."""

    test: Annotated[list[ExampleBody], FailFast(), Field(max_length=MAX_ITEMS)] = []


class SuggestBody(Body):
    """Unlabelled texts, and how many of them to label next."""

    texts: Annotated[list[Text], FailFast(), Field(min_length=1, max_length=MAX_ITEMS)]
    count: Annotated[int, Field(ge=1, le=1000)] = 10


class RollBackBody(Body):
    """The version to go back to."""

    version: Annotated[int, Field(ge=1, le=10**9)]


class Page(BaseModel, Generic[Item]):
    """Some items of a list; `next` is the cursor of those that follow."""

    items: list[Item]
    next: str | None = None

    @classmethod
    def of(cls, items: Sequence[Any], limit: int) -> "Page[Any]":
        """The first `limit` items, and a cursor if there are more."""
        return Page(items=list(items[:limit]), next=items[limit - 1].id if len(items) > limit else None)


class StrictRequest(Request):
    """A request whose body must be JSON, and is read strictly."""

    @classmethod
    def of(cls, request: Request) -> Self:
        """The same request; refused if its body is no JSON."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise UnsupportedMedia("The body is not JSON. Send it with Content-Type: application/json.")
        return cls(request.scope, request.receive)

    async def json(self) -> Any:
        """The parsed body."""
        body = await self.body()
        return await run_in_threadpool(read_json, body) if len(body) > LARGE else read_json(body)


def read_json(body: bytes) -> Any:
    """Parse a JSON document that is not too large; pydantic checks its values."""
    if sum(map(_STRING.sub(b"", body).count, (b"[", b"{"))) > MAX_BRACKETS:
        raise Malformed("The body has too many arrays and objects. Send less at once.")
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise Malformed("The body is no JSON that can be read. Send UTF-8.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Malformed("A name comes twice in an object of the body. Give it once.")
    if len(fields) > MAX_NAMES:  # each would be an error of its own
        raise Malformed(f"An object of the body has more than {MAX_NAMES} names. Send the fields that are documented.")
    return fields
