"""The classifiers of tenants: create, list, get, change, delete, roll back.

A change reads the current version, fits the next one outside of any transaction, and commits it, provided that no other
version was committed meanwhile; else it starts again from the version that is current then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, load_only

import manymetrics as mm
from manymetrics.service.domain import schemas
from manymetrics.service.domain import versions as rows_of
from manymetrics.service.domain.errors import Conflict, Invalid, NotFound
from manymetrics.service.domain.fitting import FittedClassifiers, check_examples, fit
from manymetrics.service.domain.models import Models
from manymetrics.service.domain.schemas import Labelled, Page, labelled
from manymetrics.service.domain.shared_tasks import SharedTask, hidden_name
from manymetrics.service.domain.tenants import Caller
from manymetrics.service.domain.versions import CURRENT_VERSIONS, UNKNOWN, Change, State
from manymetrics.service.settings import Settings
from manymetrics.service.storage.database import Database
from manymetrics.service.storage.idempotency import IdempotentRequest, refuse_repetition, store_reply
from manymetrics.service.storage.tables import Classifier, Example, Tenant, Version, new_id, now

MAX_ATTEMPTS = 5  # at a change while others change the same classifier
Plan = Callable[[State], Change]
Request = IdempotentRequest | None
Examples = Sequence[Labelled]


class Classifiers:
    """The classifiers of all tenants; every method acts for one caller and sees that tenant's rows only."""

    def __init__(self, database: Database, models: Models, settings: Settings) -> None:
        self.database, self.models, self.settings = database, models, settings
        self.fitted = FittedClassifiers(database, models, settings)

    def create(self, caller: Caller, *, name: str, examples: Examples, shared: bool = False, request: Request = None,
               **rule: Any) -> schemas.ClassifierInfo:  # fmt: skip
        """Make a classifier of examples; the rules are `reject` and `margin`."""
        self._check_name(name)
        self._check_replay(request)
        model = self.models.live().fingerprint
        change = Change("created", {"reject": 0.0, "margin": 0.0, **rule}, examples, model=model)
        fitted, accuracy = self._fit(caller, examples, change)
        with self._transaction(request) as session:
            session.get(Tenant, caller.tenant, with_for_update=True)  # two requests cannot pass the limit together
            count = session.scalar(select(func.count()).where(Classifier.tenant_id == caller.tenant)) or 0
            most = caller.limits.get("most_classifiers", self.settings.most_classifiers)
            if count >= most:
                raise Conflict(f"This tenant has {most:,} classifiers, which is its limit. Delete one first.")
            about = {"name": name, "shared": shared, "current": 1, "latest": 1, "settled_model": model}
            classifier = Classifier(id=new_id("cls"), tenant_id=caller.tenant, **about)
            session.add(classifier)
            session.flush()
            info = rows_of.add_version(session, classifier, change, fitted, accuracy)
            store_reply(session, request, info.as_json())
        self.fitted.put((info.id, info.version), fitted)
        return info

    def list(self, caller: Caller, *, limit: int = 50, after: str | None = None) -> Page[schemas.ClassifierSummary]:
        """The classifiers of a tenant, oldest first, after the one of this id."""
        query = CURRENT_VERSIONS.add_columns(Classifier).where(Classifier.tenant_id == caller.tenant)
        query = query.where(Classifier.id > (after or "")).order_by(Classifier.id).limit(limit + 1)
        with self.database.read() as session:
            summaries = [schemas.ClassifierSummary(**rows_of.summary(*row)) for row in session.execute(query)]
        return Page.of(summaries, limit)

    def get(self, caller: Caller, classifier_id: str) -> schemas.ClassifierInfo:
        """One classifier."""
        with self.database.read() as session:
            return rows_of.classifier_info(session, rows_of.find(session, caller, classifier_id))

    def delete(self, caller: Caller, classifier_id: str) -> None:
        """Delete a classifier with all its versions and examples."""
        with self.database.write() as session:
            session.delete(rows_of.find(session, caller, classifier_id, lock=True))

    def examples(self, caller: Caller, classifier_id: str, *, version: int | None = None, limit: int = 50,
                 after: str | None = None) -> Page[schemas.StoredExample]:  # fmt: skip
        """The examples of a version, by default the current one, as they were added, after the one of this id."""
        with self.database.read() as session:
            classifier = rows_of.find(session, caller, classifier_id)
            rows = rows_of.examples_of(
                session, rows_of.find_version(session, classifier, version or classifier.current)
            )
        examples = [schemas.StoredExample(row.text, row.label, row.id) for row in rows if row.id > (after or "")]
        return Page.of(examples, limit)

    def change_examples(
        self, caller: Caller, classifier_id: str, *, add: Examples = (), remove: Sequence[str] = (), **conditions: Any
    ) -> schemas.ClassifierInfo:
        """Add examples, counter-examples among them, and remove some by their ids, as one new version."""
        removed = frozenset(remove)
        if not add and not removed:
            raise Invalid("Nothing is to be added or removed. Give examples, or ids of examples.")

        def plan(state: State) -> Change:
            if not removed <= {row.id for row in state.rows}:
                raise NotFound("There is no such example.")
            return Change("examples", state.version.settings, add, removed, model=state.version.model)

        return self.change(caller, classifier_id, plan, **conditions)

    def update(self, caller: Caller, classifier_id: str, *, values: Mapping[str, Any], if_tag: str | None = None,
               request: Request = None) -> schemas.ClassifierInfo:  # fmt: skip
        """Set `name` or `shared`; or `reject` or `margin`, which makes a new version."""
        if "name" in values:
            self._check_name(values["name"])
        naming = {name: values[name] for name in ("name", "shared") if name in values}
        options = {name: values[name] for name in ("reject", "margin") if name in values}

        def plan(state: State) -> Change:
            return Change("settings", {**state.version.settings, **options}, model=state.version.model, naming=naming)

        if options:
            return self.change(caller, classifier_id, plan, if_tag=if_tag, request=request)
        with self._transaction(request) as session:
            classifier = rows_of.find(session, caller, classifier_id, lock=True)
            rows_of.check_tag(classifier, if_tag)
            _set(classifier, **naming)
            info = rows_of.classifier_info(session, classifier)
            store_reply(session, request, info.as_json())
            return info

    def versions(self, caller: Caller, classifier_id: str) -> Sequence[schemas.VersionInfo]:
        """The versions of a classifier, oldest first."""
        with self.database.read() as session:
            classifier = rows_of.find(session, caller, classifier_id)
            query = select(Version).where(Version.classifier_id == classifier.id).order_by(Version.number)
            return [rows_of.version_info(version, classifier.current) for version in session.scalars(query)]

    def roll_back(self, caller: Caller, classifier_id: str, version: int, **conditions: Any) -> schemas.ClassifierInfo:
        """Make a new version with the examples, the settings and the model of an earlier one."""

        def plan(state: State) -> Change:
            with self.database.read() as session:
                target = rows_of.find_version(session, state.classifier, version)
                rows = {row.id: row for row in rows_of.examples_of(session, target)}
            current = {row.id for row in state.rows}
            add = labelled([row for row in rows.values() if row.id not in current])
            return Change("rollback", target.settings, add, frozenset(current - rows.keys()), model=target.model)

        return self.change(caller, classifier_id, plan, **conditions)

    def state(self, caller: Caller, classifier_id: str) -> State:
        """The current version of a classifier with its examples."""
        with self.database.read() as session:
            classifier = rows_of.find(session, caller, classifier_id)
            version = rows_of.find_version(session, classifier, classifier.current)
            return State(classifier, version, rows_of.examples_of(session, version))

    def current(self, caller: Caller, classifier_id: str) -> Version:
        """The current version of a classifier: number, model and settings."""
        query = CURRENT_VERSIONS.where(Classifier.id == classifier_id, Classifier.tenant_id == caller.tenant)
        query = query.options(load_only(Version.model, Version.settings, Version.tenant_id))
        with self.database.read() as session:
            version = session.scalar(query)
        if version is None:
            raise NotFound(UNKNOWN)
        return version

    def shared_tasks(self, *, limit: int = 50, after: str | None = None) -> Page[SharedTask]:
        """The labelled examples of all shared classifiers, without the names of anybody; for the operator only."""
        query = CURRENT_VERSIONS.where(Classifier.shared, Classifier.id > (after or ""))
        tasks = []
        with self.database.read() as session:
            for version in session.scalars(query.order_by(Classifier.id).limit(limit + 1)).all():
                rows = [row for row in rows_of.examples_of(session, version) if row.label is not None]
                names = hidden_name("task", version.classifier_id), hidden_name("client", version.tenant_id)
                texts, labels = [row.text for row in rows], [str(row.label) for row in rows]
                tasks.append(SharedTask(version.classifier_id, *names, texts, labels))
        return Page.of(tasks, limit)

    def change(
        self, caller: Caller, classifier_id: str, plan: Plan, *, if_tag: str | None = None, request: Request = None
    ) -> schemas.ClassifierInfo:
        """Write the next version, which `plan` derives from the current one."""
        self._check_replay(request)
        for _ in range(MAX_ATTEMPTS):
            state = self.state(caller, classifier_id)
            rows_of.check_tag(state.classifier, if_tag)
            change = plan(state)
            rows = [row for row in state.rows if row.id not in change.remove]
            fitted, accuracy = self._fit(caller, [*labelled(rows), *change.add], change)
            with self._transaction(request) as session:
                classifier = rows_of.find(session, caller, classifier_id, lock=True)
                if classifier.latest != state.classifier.latest:
                    continue  # another version was written since the state was read
                rows_of.check_tag(classifier, if_tag)  # its name or sharing may have changed since
                number = classifier.latest + 1
                _set(classifier, current=number, latest=number, **change.naming)
                removed = [{"id": example_id, "removed_in": number} for example_id in change.remove]
                session.bulk_update_mappings(Example.__mapper__, removed)
                info = rows_of.add_version(session, classifier, change, fitted, accuracy)
                store_reply(session, request, info.as_json())
            self.fitted.put((info.id, number), fitted)
            return info
        raise Conflict("Others keep changing this classifier. Send the request again.")

    def _fit(
        self, caller: Caller, examples: Examples, change: Change
    ) -> tuple[mm.FewShotClassifier, schemas.Estimate | None]:
        """Fit a classifier to all examples of its next version, and estimate its accuracy."""
        check_examples(examples, self.settings, most=caller.limits.get("most_examples", self.settings.most_examples))
        fitted = fit(self.models.get(change.model), examples, change.options, tenant=caller.tenant)
        return fitted, rows_of.estimate(fitted)

    @contextmanager
    def _transaction(self, request: Request) -> Iterator[Session]:
        """A transaction, unless the request has an idempotency key under which it was done before."""
        try:
            with self.database.write() as session:
                refuse_repetition(session, request)
                yield session
        except IntegrityError:
            self._check_replay(request)
            raise Conflict("Another request has changed the same thing. Send this one again.") from None

    def _check_replay(self, request: Request) -> None:
        with self.database.read() as session:
            refuse_repetition(session, request)

    def _check_name(self, name: str) -> None:
        if not name.strip() or len(name) > self.settings.longest_name or "\0" in name:
            raise Invalid(f"The name is blank or longer than {self.settings.longest_name} characters. Give another.")


def _set(classifier: Classifier, **values: Any) -> None:
    for name, value in values.items():
        setattr(classifier, name, value)
    classifier.updated_at = now()
