"""Rows of classifiers, versions and examples: found for a caller, made, and as plain values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from manymetrics.service.fitting import as_estimate
from manymetrics.service.problems import NotFound, Stale
from manymetrics.service.records import Classifier, Example, Version, now
from manymetrics.service.sharing import SharedTask, hidden
from manymetrics.service.tenants import Caller, new_id
from manymetrics.service.values import Estimate, Labelled, VersionInfo

UNKNOWN = "There is no such classifier."


def find(session: Session, caller: Caller, classifier_id: str, *, lock: bool = False) -> Classifier:
    """A classifier of the caller's; another tenant's is not found."""
    query = select(Classifier).where(Classifier.id == classifier_id, Classifier.tenant_id == caller.tenant)
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise NotFound(UNKNOWN)
    return found


def find_version(session: Session, classifier: Classifier, number: int) -> Version:
    """One version of a classifier."""
    found = session.get(Version, (classifier.id, number))
    if found is None:
        raise NotFound("There is no such version.")
    return found


def require_version(classifier: Classifier, version: int | None) -> None:
    """Refuse a change that was meant for another version."""
    if version is not None and classifier.current != version:
        raise Stale("The classifier has changed since that version. Read it again, then decide.")


def example_rows(classifier: Classifier, number: int, examples: Sequence[Labelled]) -> list[Example]:
    """Rows for examples that come with a version."""
    return [
        Example(
            id=new_id("ex"), classifier_id=classifier.id, tenant_id=classifier.tenant_id, text=one.text,
            label=one.label, added_in=number,
        )
        for one in examples
    ]  # fmt: skip


def version_row(classifier: Classifier, number: int, model: str, reason: str, *, options: dict[str, float],
             examples: Sequence[Labelled], found: Estimate | None) -> Version:  # fmt: skip
    """The row of a version."""
    return Version(
        classifier_id=classifier.id, number=number, tenant_id=classifier.tenant_id, model=model, reason=reason,
        settings=dict(options), examples=len(examples),
        labels=len({one.label for one in examples if one.label is not None}),
        tried=found.tried if found else 0, accuracy=found.accuracy if found else None, low=found.low if found else None,
        high=found.high if found else None, created_at=now(),
    )  # fmt: skip


def shared_task(version: Version, rows: Sequence[Example]) -> SharedTask:
    """A version as a task to learn from, without the names of anybody."""
    known = [(row.text, row.label) for row in rows if row.label is not None]
    return SharedTask(
        version.classifier_id, hidden("task", version.classifier_id), hidden("client", version.tenant_id),
        [text for text, _ in known], [label for _, label in known],
    )  # fmt: skip


def version_info(one: Version, current: int) -> VersionInfo:
    """A version as clients see it."""
    return VersionInfo(
        one.number, one.number == current, one.reason, one.examples, one.labels, one.settings["reject"],
        one.settings["margin"], one.model, as_estimate(one.accuracy, one.low, one.high, one.tried), one.before,
        one.created_at,
    )  # fmt: skip


def examples_of(session: Session, version: Version) -> Sequence[Example]:
    """The examples of one version of a classifier."""
    return session.scalars(
        select(Example)
        .where(
            Example.classifier_id == version.classifier_id,
            Example.tenant_id == version.tenant_id,
            Example.added_in <= version.number,
            or_(Example.removed_in.is_(None), Example.removed_in > version.number),
        )
        .order_by(Example.id)
    ).all()


def labelled(rows: Sequence[Example]) -> list[Labelled]:
    """Rows of examples as plain values."""
    return [Labelled(row.text, row.label) for row in rows]
