"""Versions of classifiers and their examples: rows that are found for a caller, added, and shown as values."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

import manymetrics as mm
from manymetrics.service.domain import schemas
from manymetrics.service.domain.errors import NotFound, RequestError
from manymetrics.service.domain.schemas import Estimate, Labelled, state_tag
from manymetrics.service.domain.tenants import Caller
from manymetrics.service.storage.tables import Classifier, Example, Version, new_id

UNKNOWN = "There is no such classifier."
CURRENT_VERSIONS = select(Version).join(
    Classifier, (Version.classifier_id == Classifier.id) & (Version.number == Classifier.current)
)


@dataclass(frozen=True)
class State:
    """A version of a classifier as it was read."""

    classifier: Classifier
    version: Version
    rows: Sequence[Example]


@dataclass(frozen=True)
class Change:
    """How the next version differs from the current one."""

    reason: str
    options: Mapping[str, float]  # reject, margin
    add: Sequence[Labelled] = ()
    remove: frozenset[str] = frozenset()  # ids of examples
    _: KW_ONLY
    model: str  # fingerprint
    before: float | None = None  # accuracy with the earlier model
    naming: Mapping[str, Any] = field(default_factory=dict)  # name, shared


def find(session: Session, caller: Caller, classifier_id: str, *, lock: bool = False) -> Classifier:
    """A classifier of the caller; another tenant's is not found."""
    query = select(Classifier).where(Classifier.id == classifier_id, Classifier.tenant_id == caller.tenant)
    classifier = session.scalar(query.with_for_update() if lock else query)
    if classifier is None:
        raise NotFound(UNKNOWN)
    return classifier


def find_version(session: Session, classifier: Classifier, number: int) -> Version:
    """One version of a classifier."""
    version = session.get(Version, (classifier.id, number))
    if version is None:
        raise NotFound("There is no such version.")
    return version


def examples_of(session: Session, version: Version) -> Sequence[Example]:
    """The examples of one version of a classifier, in the order they were added."""
    of_classifier = (Example.classifier_id == version.classifier_id) & (Example.tenant_id == version.tenant_id)
    is_removed_later = or_(Example.removed_in.is_(None), Example.removed_in > version.number)
    query = select(Example).where(of_classifier, Example.added_in <= version.number, is_removed_later)
    return session.scalars(query.order_by(Example.id)).all()


@mm.encode.text_cache_of(None)
def estimate(classifier: mm.FewShotClassifier) -> Estimate | None:
    """The leave-one-out accuracy of a classifier; None if no example can be left out."""
    return Estimate.of(classifier.doctor())


def add_version(
    session: Session, classifier: Classifier, change: Change, fitted: mm.FewShotClassifier, accuracy: Estimate | None
) -> schemas.ClassifierInfo:
    """Add the rows of a fitted version, which is the current one of the classifier."""
    owner = {"classifier_id": classifier.id, "tenant_id": classifier.tenant_id}
    version = Version(
        **owner,
        number=classifier.current,
        model=change.model,
        reason=change.reason,
        settings=dict(change.options),
        examples=len(fitted.examples_) + len(fitted.counter_examples_),
        labels=len(fitted.classes_),
        before=change.before,
        **(asdict(accuracy) if accuracy else {"tried": 0}),
    )
    added = [
        Example(**owner, id=new_id("ex"), text=example.text, label=example.label, added_in=classifier.current)
        for example in change.add
    ]
    session.add_all([version, *added])
    session.flush()
    return classifier_info(session, classifier)


def check_tag(classifier: Classifier, tag: str | None) -> None:
    """Refuse a change that was meant for another state; None: it is meant for any."""
    if tag is not None and tag != state_tag(classifier.current, classifier.name, shared=classifier.shared):
        message = "The classifier has changed since it was read. Read it again, then decide."
        raise RequestError(message, status=HTTPStatus.PRECONDITION_FAILED)


def version_info(version: Version, current: int) -> schemas.VersionInfo:
    """A version as clients see it."""
    return schemas.VersionInfo(
        **_shown(version),
        **version.settings,
        current=version.number == current,
        reason=version.reason,
        labels=version.labels,
        accuracy_before=version.before,
        created_at=version.created_at,
    )


def classifier_info(session: Session, classifier: Classifier) -> schemas.ClassifierInfo:
    """A classifier as clients see it."""
    version = find_version(session, classifier, classifier.current)
    labels = [row.label for row in examples_of(session, version) if row.label is not None]
    counts = {"examples": len(labels), "counter_examples": version.examples - len(labels)}
    values = summary(version, classifier) | version.settings | counts
    return schemas.ClassifierInfo(**values, labels=sorted(set(labels)))


def summary(version: Version, classifier: Classifier) -> dict[str, Any]:
    """What a list tells of a classifier."""
    names = ("id", "name", "shared", "created_at", "updated_at")
    return {name: getattr(classifier, name) for name in names} | _shown(version)


def _shown(version: Version) -> dict[str, Any]:
    about = {"version": version.number, "model_version": version.model, "examples": version.examples}
    return {**about, "estimate": Estimate.of(version)}
