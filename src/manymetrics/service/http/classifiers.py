"""Routes of classifiers: create, list, get, update, delete, examples, versions, predictions and other questions.

Unknown fields of a body are refused.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints
from starlette.responses import Response

import manymetrics as mm
from manymetrics.service.domain import schemas
from manymetrics.service.http.auth import KeyRoute, Reader, Writer
from manymetrics.service.http.errors import documented

MAX_ITEMS = 100_000  # of a list; only its first wrong item is reported
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]  # of a classifier or a label
ClassifierId = Annotated[str, Path(min_length=1, max_length=40, pattern=schemas.ID)]
Id = Annotated[str, StringConstraints(max_length=40)]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=40, pattern=schemas.ID, description="`next` of the page before.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        description="Names the request, so that it is done once.", min_length=1, max_length=200, pattern=r"^[!-~]+$"
    ),
]
IfMatch = Annotated[
    str | None,
    Header(description="The ETag of the state that the change is meant for.", pattern=r'^"[0-9]{1,9}-[0-9a-f]{16}"$'),
]
router = APIRouter(
    prefix="/v1/classifiers",
    tags=["classifiers"],
    route_class=KeyRoute,
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503),
)


class Body(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExampleBody(Body):
    """A labelled text; without a label it is a counter-example: a text that is out of scope."""

    text: Text
    label: Name | None = None


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


Verb = Callable[..., schemas.ClassifierInfo]


@dataclass(frozen=True)
class Creation:
    """A request that changes something, in the turn of its tenant, and once for an idempotency key."""

    http: Request
    call: Writer
    idempotency_key: IdempotencyKey = None
    if_match: str | None = field(default=None, init=False)

    async def run(self, verb: Verb, body: BaseModel, *args: Any, status: int = 200, **options: Any) -> Response:
        """Make the change; the reply belongs to all that the request asks for."""
        if self.idempotency_key is not None:
            content = [self.http.method, self.http.url.path, body.model_dump(), self.if_match]
            options["request"] = self.call.once(self.idempotency_key, content, status)
        if self.if_match is not None:
            options["if_tag"] = self.if_match.strip('"')
        info = await self.call.work(verb, *args, **options)
        return Response(info.as_json(), status, {"ETag": f'"{info.tag}"'}, "application/json")


@dataclass(frozen=True)
class Modification(Creation):
    """The same for a classifier that may have to be in a certain state."""

    if_match: IfMatch = None


Create = Annotated[Creation, Depends()]
Modify = Annotated[Modification, Depends()]


@router.post("", status_code=201, response_model=schemas.ClassifierInfo, responses=documented(409))
async def create_classifier(body: CreateBody, change: Create) -> Response:
    """Make a classifier of examples."""
    options = {**body.model_dump(exclude={"examples"}), "examples": schemas.labelled(body.examples)}
    return await change.run(change.call.service.classifiers.create, body, status=201, **options)


@router.get("")
def list_classifiers(call: Reader, limit: Limit = 50, cursor: Cursor = None) -> schemas.Page[schemas.ClassifierSummary]:
    """The classifiers of this tenant, oldest first."""
    return call.service.classifiers.list(call.caller, limit=limit, after=cursor)


@router.get("/{classifier_id}")
def get_classifier(classifier_id: ClassifierId, call: Reader, response: Response) -> schemas.ClassifierInfo:
    """One classifier; the header ETag names its state: version, name and sharing."""
    info = call.service.classifiers.get(call.caller, classifier_id)
    response.headers["ETag"] = f'"{info.tag}"'
    return info


@router.patch("/{classifier_id}", response_model=schemas.ClassifierInfo, responses=documented(409, 412))
async def update_classifier(classifier_id: ClassifierId, body: UpdateBody, change: Modify) -> Response:
    """Rename a classifier, opt in or out of sharing, or set when it rejects."""
    values = body.model_dump(exclude_none=True)
    return await change.run(change.call.service.classifiers.update, body, classifier_id, values=values)


@router.delete("/{classifier_id}", status_code=204, response_class=Response)
def delete_classifier(classifier_id: ClassifierId, call: Writer) -> Response:
    """Delete a classifier with all its versions and examples."""
    call.service.classifiers.delete(call.caller, classifier_id)
    return Response(status_code=204)


@router.get("/{classifier_id}/examples")
def list_examples(
    classifier_id: ClassifierId,
    call: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    version: Annotated[int | None, Query(ge=1, le=10**9)] = None,
) -> schemas.Page[schemas.StoredExample]:
    """The examples of a classifier, counter-examples among them, in the order they came."""
    find = call.service.classifiers.examples
    return find(call.caller, classifier_id, version=version, limit=limit, after=cursor)


@router.post("/{classifier_id}/examples", response_model=schemas.ClassifierInfo, responses=documented(409, 412))
async def change_examples(classifier_id: ClassifierId, body: ChangeExamplesBody, change: Modify) -> Response:
    """Add examples and remove others, in one step; an example is corrected by removing and adding it."""
    verb, add = change.call.service.classifiers.change_examples, schemas.labelled(body.add)
    return await change.run(verb, body, classifier_id, add=add, remove=body.remove)


@router.get("/{classifier_id}/versions")
def list_versions(classifier_id: ClassifierId, call: Reader) -> schemas.Page[schemas.VersionInfo]:
    """The versions of a classifier with their estimated accuracy, oldest first."""
    return schemas.Page(items=list(call.service.classifiers.versions(call.caller, classifier_id)))


@router.post("/{classifier_id}/rollback", response_model=schemas.ClassifierInfo, responses=documented(409, 412))
async def roll_back(classifier_id: ClassifierId, body: RollBackBody, change: Modify) -> Response:
    """Make a new version that is like an earlier one: its examples, its settings, its model."""
    return await change.run(change.call.service.classifiers.roll_back, body, classifier_id, body.version)


@router.post("/{classifier_id}/predictions", response_model=schemas.Predictions)
async def predict(classifier_id: ClassifierId, body: TextsBody, call: Reader) -> Response:
    """Answer some texts; requests that arrive together are answered together."""
    ask = call.service.answering.question
    question = await run_in_threadpool(ask, call.caller, classifier_id, body.texts, nearest=body.nearest)
    answers = call.service.answers.submit(call.caller.tenant, question, size=len(body.texts))
    predictions: schemas.Predictions = await asyncio.wrap_future(answers)
    return Response(schemas.adapter(schemas.Predictions).dump_json(predictions), media_type="application/json")


@router.post("/{classifier_id}/explanations")
async def explain(classifier_id: ClassifierId, body: ExplainBody, call: Reader) -> schemas.ExplanationInfo:
    """Why a text is answered as it is."""
    return await call.work(call.service.answering.explain, classifier_id, body.text)


@router.post("/{classifier_id}/evaluation")
async def evaluate(classifier_id: ClassifierId, body: EvaluateBody, call: Reader) -> schemas.EvaluationInfo:
    """The leave-one-out estimate, what is wrong with the examples, and how a labelled test set is answered."""
    return await call.work(call.service.answering.evaluate, classifier_id, schemas.labelled(body.test))


@router.post("/{classifier_id}/suggestions")
async def suggest(
    classifier_id: ClassifierId, body: SuggestBody, call: Reader
) -> schemas.Page[mm.classifier.Suggestion]:
    """Which of some unlabelled texts to label next, and why."""
    suggest_texts = call.service.answering.suggest
    return schemas.Page(items=list(await call.work(suggest_texts, classifier_id, body.texts, count=body.count)))
