"""The verbs on a tenant's classifiers: create, list, get, change, delete, roll back.

A change reads the current version, fits a classifier outside of any transaction, and commits it as the next version,
provided that nobody else has committed one meanwhile; else it starts over from what is there by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

import manymetrics as mm
from manymetrics.service.cache import FittedCache
from manymetrics.service.database import Database
from manymetrics.service.fitting import as_estimate, check_examples, estimate, fit
from manymetrics.service.idempotency import PLAIN, Request
from manymetrics.service.models import Models
from manymetrics.service.problems import Conflict, Invalid, NotFound
from manymetrics.service.records import Classifier, Example, Tenant, Version, now
from manymetrics.service.rows import (
    UNKNOWN,
    example_rows,
    examples_of,
    find,
    find_version,
    labelled,
    require_version,
    shared_task,
    version_info,
    version_row,
)
from manymetrics.service.settings import Settings
from manymetrics.service.sharing import SharedTask
from manymetrics.service.tenants import Caller, new_id
from manymetrics.service.values import (
    ClassifierInfo,
    ClassifierSummary,
    Estimate,
    Labelled,
    StoredExample,
    VersionInfo,
)

ATTEMPTS = 5  # at a change that others keep interfering with


@dataclass(frozen=True)
class State:
    """A version of a classifier as it was read."""

    classifier: Classifier
    version: Version
    rows: Sequence[Example]


@dataclass(frozen=True)
class Change:
    """What the next version differs in."""

    reason: str
    add: Sequence[Labelled] = ()
    remove: frozenset[str] = frozenset()  # ids of examples
    options: dict[str, float] = field(default_factory=dict)  # reject, margin
    model: str | None = None  # fingerprint; None: as before
    before: float | None = None  # accuracy with the earlier model


class Overtaken(Exception):
    """Somebody else has written a version since the state was read."""


Plan = Callable[[State], Change]


class Classifiers:
    """The classifiers of all tenants; every verb acts for one caller and sees that tenant's rows only."""

    def __init__(self, database: Database, models: Models, cache: FittedCache, settings: Settings) -> None:
        self.database, self.models, self.cache, self.settings = database, models, cache, settings

    def create(self, caller: Caller, *, name: str, examples: Sequence[Labelled], reject: float = 0.0,
               margin: float = 0.0, shared: bool = False, request: Request = PLAIN) -> ClassifierInfo:  # fmt: skip
        """A classifier of these examples."""
        self._check_name(name)
        check_examples(examples, self.settings, most=self.limit(caller, "most_examples"))
        self._check_repeated(request)
        options, model = {"reject": reject, "margin": margin}, self.models.live()
        fitted = fit(model, examples, options)
        found = estimate(fitted)
        moment = now()
        classifier = Classifier(
            id=new_id("cls"), tenant_id=caller.tenant, name=name, current=1, latest=1, shared=shared,
            settled_model=model.fingerprint, created_at=moment, updated_at=moment,
        )  # fmt: skip

        def commit(session: Session) -> ClassifierInfo:
            self._check_count(session, caller)
            session.add(classifier)
            session.flush()
            of = model.fingerprint
            session.add(version_row(classifier, 1, of, "created", options=options, examples=examples, found=found))
            session.add_all(example_rows(classifier, 1, examples))
            session.flush()
            return self._info(session, classifier)

        info: ClassifierInfo = self._commit(request, commit)
        self.cache.keep((classifier.id, 1), fitted)
        return info

    def list(self, caller: Caller, *, limit: int = 50, after: str | None = None) -> Sequence[ClassifierSummary]:
        """The classifiers of a tenant, oldest first, after the one of this id."""
        query = (
            select(Classifier, Version)
            .join(Version, (Version.classifier_id == Classifier.id) & (Version.number == Classifier.current))
            .where(Classifier.tenant_id == caller.tenant)
        )
        query = query if after is None else query.where(Classifier.id > after)
        with self.database.read() as session:
            rows = session.execute(query.order_by(Classifier.id).limit(limit)).all()
        return [
            ClassifierSummary(one.id, one.name, one.current, version.examples, one.shared, version.model,
                              version.accuracy, one.created_at, one.updated_at)
            for one, version in rows
        ]  # fmt: skip

    def get(self, caller: Caller, classifier_id: str) -> ClassifierInfo:
        """One classifier."""
        with self.database.read() as session:
            return self._info(session, find(session, caller, classifier_id))

    def delete(self, caller: Caller, classifier_id: str, *, request: Request = PLAIN) -> None:
        """Delete a classifier with all its versions and examples."""

        def commit(session: Session) -> None:
            found = find(session, caller, classifier_id, lock=True)
            for table in (Example, Version):
                session.execute(delete(table).where(table.classifier_id == found.id))
            session.delete(found)

        self._commit(request, commit)

    def examples(self, caller: Caller, classifier_id: str, *, version: int | None = None, limit: int = 50,
                 after: str | None = None) -> Sequence[StoredExample]:  # fmt: skip
        """The examples of a version of a classifier, in the order they came, after the one of this id."""
        with self.database.read() as session:
            found = find(session, caller, classifier_id)
            rows = examples_of(session, find_version(session, found, version or found.current))
        later = [row for row in rows if after is None or row.id > after]
        return [StoredExample(row.id, row.text, row.label) for row in later[:limit]]

    def change_examples(self, caller: Caller, classifier_id: str, *, add: Sequence[Labelled] = (),
                        remove: Sequence[str] = (), if_version: int | None = None,
                        request: Request = PLAIN) -> ClassifierInfo:  # fmt: skip
        """Add examples, counter-examples among them, and remove some by their ids, as one new version."""
        gone = frozenset(remove)
        if not add and not gone:
            raise Invalid("Nothing is to be added or removed. Give examples, or ids of examples.")

        def plan(state: State) -> Change:
            if not gone <= {row.id for row in state.rows}:
                raise NotFound("There is no such example.")
            return Change("examples", add=add, remove=gone, options=dict(state.version.settings))

        return self._change(caller, classifier_id, plan, if_version=if_version, request=request)

    def update(self, caller: Caller, classifier_id: str, *, name: str | None = None, shared: bool | None = None,
               reject: float | None = None, margin: float | None = None, if_version: int | None = None,
               request: Request = PLAIN) -> ClassifierInfo:  # fmt: skip
        """Rename a classifier, opt in or out of sharing, or set when it rejects (which makes a new version)."""
        if name is not None:
            self._check_name(name)
        given = {key: value for key, value in (("reject", reject), ("margin", margin)) if value is not None}

        def commit(session: Session) -> ClassifierInfo:
            found = find(session, caller, classifier_id, lock=True)
            require_version(found, None if given else if_version)  # where the settings change, the plan has looked
            found.name = found.name if name is None else name
            found.shared = found.shared if shared is None else shared
            found.updated_at = now()
            session.flush()
            return self._info(session, found)

        if not given:
            return self._commit(request, commit)  # type: ignore[no-any-return]

        def plan(state: State) -> Change:
            return Change("settings", options={**state.version.settings, **given})

        return self._change(caller, classifier_id, plan, if_version=if_version, request=request, also=commit)

    def versions(self, caller: Caller, classifier_id: str) -> Sequence[VersionInfo]:
        """The versions of a classifier, oldest first."""
        with self.database.read() as session:
            found = find(session, caller, classifier_id)
            query = select(Version).where(Version.classifier_id == found.id).order_by(Version.number)
            return [version_info(one, found.current) for one in session.scalars(query).all()]

    def roll_back(self, caller: Caller, classifier_id: str, version: int, *, if_version: int | None = None,
                  request: Request = PLAIN) -> ClassifierInfo:  # fmt: skip
        """A new version that is like an earlier one: its examples, its settings, its model."""

        def plan(state: State) -> Change:
            with self.database.read() as session:
                target = find_version(session, state.classifier, version)
                wanted = examples_of(session, target)
            kept = {row.id for row in wanted}
            now_there = {row.id for row in state.rows}
            return Change(
                "rollback", labelled([row for row in wanted if row.id not in now_there]),
                frozenset(now_there - kept), dict(target.settings), target.model,
            )  # fmt: skip

        return self._change(caller, classifier_id, plan, if_version=if_version, request=request)

    def state(self, caller: Caller, classifier_id: str) -> State:
        """The current version of a classifier with its examples."""
        with self.database.read() as session:
            found = find(session, caller, classifier_id)
            version = find_version(session, found, found.current)
            return State(found, version, examples_of(session, version))

    def current(self, caller: Caller, classifier_id: str) -> Version:
        """The current version of a classifier, without its examples."""
        query = (
            select(Version)
            .join(Classifier, (Version.classifier_id == Classifier.id) & (Version.number == Classifier.current))
            .where(Classifier.id == classifier_id, Classifier.tenant_id == caller.tenant)
        )
        with self.database.read() as session:
            found = session.scalar(query)
        if found is None:
            raise NotFound(UNKNOWN)
        return found

    def fitted(self, version: Version) -> mm.FewShotClassifier:
        """The classifier of a version, from the cache or made again."""

        def make() -> mm.FewShotClassifier:
            with self.database.read() as session:
                rows = examples_of(session, version)
            if not rows:
                raise NotFound(UNKNOWN)  # deleted meanwhile
            return fit(self.models.get(version.model), labelled(rows), version.settings)

        return self.cache.get((version.classifier_id, version.number), make)

    def limit(self, caller: Caller, name: str) -> Any:
        """A limit of the caller's own, or the one of the settings."""
        return caller.limits.get(name, getattr(self.settings, name))

    def shared_tasks(self, *, limit: int = 50, after: str | None = None) -> Sequence[SharedTask]:
        """The labelled examples of classifiers, of all tenants, that may be learned from; for the operator alone."""
        query = (
            select(Version)
            .join(Classifier, (Version.classifier_id == Classifier.id) & (Version.number == Classifier.current))
            .where(Classifier.shared)
        )
        query = query if after is None else query.where(Classifier.id > after)
        with self.database.read() as session:
            versions = session.scalars(query.order_by(Classifier.id).limit(limit)).all()
            return [shared_task(version, examples_of(session, version)) for version in versions]

    def settle(self, caller: Caller, classifier_id: str, fingerprint: str) -> None:
        """Note that a classifier was compared with a live model."""
        with self.database.write() as session:
            find(session, caller, classifier_id, lock=True).settled_model = fingerprint

    def change(self, caller: Caller, classifier_id: str, plan: Plan) -> ClassifierInfo:
        """Make a new version by a plan that is made of the current one."""
        return self._change(caller, classifier_id, plan)

    def _change(self, caller: Caller, classifier_id: str, plan: Plan, *, if_version: int | None = None,
                request: Request = PLAIN, also: Callable[[Session], Any] | None = None) -> ClassifierInfo:  # fmt: skip
        self._check_repeated(request)
        for _ in range(ATTEMPTS):
            state = self.state(caller, classifier_id)
            require_version(state.classifier, if_version)
            change = plan(state)
            kept = labelled([row for row in state.rows if row.id not in change.remove])
            every = [*kept, *change.add]
            check_examples(every, self.settings, most=self.limit(caller, "most_examples"))
            model = self.models.get(change.model or state.version.model)
            fitted = fit(model, every, change.options)
            found = estimate(fitted)
            done = replace(change, model=model.fingerprint)

            def commit(session: Session, state: State = state, done: Change = done, every: Sequence[Labelled] = every,
                       found: Estimate | None = found) -> Any:  # fmt: skip
                self._apply(session, caller, state, done, every=every, found=found)
                return also(session) if also else self._info(session, find(session, caller, classifier_id))

            with contextlib.suppress(Overtaken):
                info: ClassifierInfo = self._commit(request, commit)
                self.cache.keep((classifier_id, info.version), fitted)
                return info
        raise Conflict("Others keep changing this classifier. Send the request again.")

    def _apply(self, session: Session, caller: Caller, state: State, change: Change, *, every: Sequence[Labelled],
               found: Estimate | None) -> None:  # fmt: skip
        """Write the next version, unless somebody else has written one since the state was read."""
        classifier = find(session, caller, state.classifier.id, lock=True)
        if classifier.latest != state.classifier.latest:
            raise Overtaken
        number = classifier.latest + 1
        classifier.current = classifier.latest = number
        classifier.updated_at = now()
        if change.remove:
            for row in state.rows:
                if row.id in change.remove:
                    session.merge(row, load=True).removed_in = number
        model = str(change.model)
        version = version_row(
            classifier, number, model, change.reason, options=change.options, examples=every, found=found
        )
        version.before = change.before
        session.add(version)
        session.add_all(example_rows(classifier, number, change.add))
        session.flush()

    def _commit(self, request: Request, change: Callable[[Session], Any]) -> Any:
        """Run a change in one transaction, and keep what is answered with it."""
        try:
            with self.database.write() as session:
                request.check(session)
                result = change(session)
                request.done(session, result)
        except IntegrityError:
            self._check_repeated(request)
            raise Conflict("Another request has changed the same thing. Send this one again.") from None
        return result

    def _check_repeated(self, request: Request) -> None:
        if request.once is not None:
            with self.database.read() as session:
                request.check(session)

    def _check_name(self, name: str) -> None:
        if not name.strip() or len(name) > self.settings.longest_name or "\0" in name:
            raise Invalid(f"The name is blank or longer than {self.settings.longest_name} characters. Give another.")

    def _check_count(self, session: Session, caller: Caller) -> None:
        session.get(Tenant, caller.tenant, with_for_update=True)  # so that two cannot pass the limit together
        count = session.scalar(select(func.count()).where(Classifier.tenant_id == caller.tenant))
        most = self.limit(caller, "most_classifiers")
        if (count or 0) >= most:
            raise Conflict(f"This tenant has {most:,} classifiers, which is its limit. Delete one first.")

    def _info(self, session: Session, classifier: Classifier) -> ClassifierInfo:
        version = find_version(session, classifier, classifier.current)
        rows = examples_of(session, version)
        labels = sorted({row.label for row in rows if row.label is not None})
        counters = sum(row.label is None for row in rows)
        return ClassifierInfo(
            classifier.id, classifier.name, version.number, labels, len(rows) - counters, counters,
            version.settings["reject"], version.settings["margin"], classifier.shared, version.model,
            as_estimate(version.accuracy, version.low, version.high, version.tried),
            classifier.created_at, classifier.updated_at,
        )  # fmt: skip
