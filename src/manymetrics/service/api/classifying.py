"""Routes of classifiers: create, list, get, update, delete, their examples and versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import TypeAdapter
from starlette.responses import Response

from manymetrics.service.api.access import IdempotencyKey, IfMatch, Reader, TheService, Writer, named, version_of
from manymetrics.service.api.bodies import ChangeExamplesBody, CreateBody, Page, RollBackBody, UpdateBody
from manymetrics.service.api.paging import Cursor, Limit, opened, page_of
from manymetrics.service.api.problems import documented
from manymetrics.service.api.reading import StrictRoute
from manymetrics.service.assembly import Service
from manymetrics.service.idempotency import Request as Named
from manymetrics.service.tenants import Caller
from manymetrics.service.values import ClassifierInfo, ClassifierSummary, StoredExample, VersionInfo

router = APIRouter(
    prefix="/v1/classifiers",
    tags=["classifiers"],
    route_class=StrictRoute,
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503),
)
Id = Annotated[str, Path(min_length=1, max_length=40, pattern=r"^[a-z]+_[0-9a-f]+$")]
_INFO = TypeAdapter(ClassifierInfo)
Change = Callable[[Named], ClassifierInfo]


@router.post("", status_code=201, response_model=ClassifierInfo, responses=documented(409))
async def create_classifier(
    body: CreateBody, caller: Writer, service: TheService, idempotency_key: IdempotencyKey = None
) -> Response:
    """Make a classifier of examples."""
    examples = [one.value() for one in body.examples]
    options = body.model_dump(exclude={"examples"})

    def create(request: Named) -> ClassifierInfo:
        return service.classifiers.create(caller, examples=examples, request=request, **options)

    asked = ["create", body.model_dump()]
    return await _changed(service, caller, create, idempotency_key, asked, status=201)


@router.get("")
def list_classifiers(
    caller: Reader, service: TheService, limit: Limit = 50, cursor: Cursor = None
) -> Page[ClassifierSummary]:
    """The classifiers of this tenant, oldest first."""
    found = service.classifiers.list(caller, limit=limit + 1, after=opened(cursor))
    return Page(**page_of(found, limit))


@router.get("/{classifier_id}")
def get_classifier(classifier_id: Id, *, caller: Reader, service: TheService, response: Response) -> ClassifierInfo:
    """One classifier; the header ETag has its version."""
    found = service.classifiers.get(caller, classifier_id)
    response.headers["ETag"] = f'"{found.version}"'
    return found


@router.patch("/{classifier_id}", response_model=ClassifierInfo, responses=documented(409, 412))
async def update_classifier(classifier_id: Id, *, body: UpdateBody, caller: Writer, service: TheService,
                            idempotency_key: IdempotencyKey = None, if_match: IfMatch = None) -> Response:  # fmt: skip
    """Rename a classifier, opt in or out of sharing, or set when it rejects."""
    given = body.model_dump(exclude_none=True)

    def update(request: Named) -> ClassifierInfo:
        version = version_of(if_match)
        return service.classifiers.update(caller, classifier_id, if_version=version, request=request, **given)

    asked = ["update", classifier_id, given, if_match]
    return await _changed(service, caller, update, idempotency_key, asked)


@router.delete("/{classifier_id}", status_code=204, response_class=Response)
def delete_classifier(classifier_id: Id, *, caller: Writer, service: TheService) -> Response:
    """Delete a classifier with all its versions and examples."""
    service.classifiers.delete(caller, classifier_id)
    return Response(status_code=204)


@router.get("/{classifier_id}/examples")
def list_examples(classifier_id: Id, *, caller: Reader, service: TheService, limit: Limit = 50, cursor: Cursor = None,
                  version: Annotated[int | None, Query(ge=1, le=10**9)] = None) -> Page[StoredExample]:  # fmt: skip
    """The examples of a classifier, counter-examples among them, in the order they came."""
    after = opened(cursor)
    found = service.classifiers.examples(caller, classifier_id, version=version, limit=limit + 1, after=after)
    return Page(**page_of(found, limit))


@router.post("/{classifier_id}/examples", response_model=ClassifierInfo, responses=documented(409, 412))
async def change_examples(classifier_id: Id, *, body: ChangeExamplesBody, caller: Writer, service: TheService,
                          idempotency_key: IdempotencyKey = None, if_match: IfMatch = None) -> Response:  # fmt: skip
    """Add examples and remove others, in one step; an example is corrected by removing and adding it."""
    add = [one.value() for one in body.add]

    def change(request: Named) -> ClassifierInfo:
        return service.classifiers.change_examples(
            caller, classifier_id, add=add, remove=body.remove, if_version=version_of(if_match), request=request
        )

    asked = ["examples", classifier_id, body.model_dump(), if_match]
    return await _changed(service, caller, change, idempotency_key, asked)


@router.delete("/{classifier_id}/examples/{example_id}", response_model=ClassifierInfo, responses=documented(409))
async def remove_example(classifier_id: Id, example_id: Id, caller: Writer, service: TheService) -> Response:
    """Remove one example."""

    def remove(request: Named) -> ClassifierInfo:
        return service.classifiers.change_examples(caller, classifier_id, remove=[example_id], request=request)

    return await _changed(service, caller, remove, None, None)


@router.get("/{classifier_id}/versions")
def list_versions(classifier_id: Id, *, caller: Reader, service: TheService) -> Page[VersionInfo]:
    """The versions of a classifier with their estimated accuracy, oldest first."""
    return Page(items=list(service.classifiers.versions(caller, classifier_id)))


@router.post("/{classifier_id}/rollback", response_model=ClassifierInfo, responses=documented(409, 412))
async def roll_back(classifier_id: Id, *, body: RollBackBody, caller: Writer, service: TheService,
                    idempotency_key: IdempotencyKey = None, if_match: IfMatch = None) -> Response:  # fmt: skip
    """Make a new version that is like an earlier one: its examples, its settings, its model."""

    def back(request: Named) -> ClassifierInfo:
        version = version_of(if_match)
        return service.classifiers.roll_back(caller, classifier_id, body.version, if_version=version, request=request)

    asked = ["rollback", classifier_id, body.model_dump(), if_match]
    return await _changed(service, caller, back, idempotency_key, asked)


async def _changed(service: Service, caller: Caller, change: Change, key: str | None, asked: Any, *,
                   status: int = 200) -> Response:  # fmt: skip
    """Make a change in the tenant's turn, and answer with the classifier as it is afterwards."""
    request = named(service, caller, key, asked, status=status, write=_written)
    info = await asyncio.wrap_future(service.work.submit(caller.tenant, lambda: change(request)))
    return Response(_written(info), status, {"ETag": f'"{info.version}"'}, "application/json")


def _written(info: ClassifierInfo) -> str:
    return _INFO.dump_json(info).decode()
