"""Examples -> a fitted classifier; fitted classifiers in memory.

A version of a classifier never changes, so what is cached under its number is never stale, in whichever process:
another process that changes the classifier makes another version, and the current number is read from the database.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import manymetrics as mm
from manymetrics.service.domain.errors import Invalid, NotFound
from manymetrics.service.domain.models import Models
from manymetrics.service.domain.schemas import Labelled, labelled
from manymetrics.service.domain.versions import UNKNOWN, examples_of
from manymetrics.service.settings import Settings
from manymetrics.service.storage.database import Database
from manymetrics.service.storage.tables import Version

MAX_LABELS = 1000
VersionKey = tuple[str, int]  # classifier, version


def check_examples(examples: Sequence[Labelled], settings: Settings, *, most: int) -> None:
    """Refuse examples from which no classifier can be fitted."""
    labels = {example.label for example in examples if example.label is not None}
    if len(examples) > most:
        raise Invalid(f"A classifier has at most {most:,} examples. Give fewer.")
    if len(labels) < 2:
        raise Invalid("A classifier needs examples of at least two labels. Add some of another label.")
    if len(labels) > MAX_LABELS:
        raise Invalid(f"A classifier has at most {MAX_LABELS:,} labels. Are the texts and the labels swapped?")
    check_texts([example.text for example in examples], settings)
    if any(not label.strip() or len(label) > settings.longest_label or "\0" in label for label in labels):
        raise Invalid(
            f"A label is blank, longer than {settings.longest_label} characters, or holds a NUL character. Correct it."
        )


def check_texts(texts: Sequence[str], settings: Settings) -> None:
    """Refuse texts that are blank, too long, or cannot be stored."""
    for number, text in enumerate(texts, start=1):
        if not text.strip() or "\0" in text:
            raise Invalid(f"Text {number} is blank or holds a NUL character. Leave it out.")
        if len(text) > settings.longest_text:
            raise Invalid(f"Text {number} has more than {settings.longest_text:,} characters. Shorten it.")


def fit(
    model: mm.MetricModel, examples: Sequence[Labelled], options: Mapping[str, Any], *, tenant: str
) -> mm.FewShotClassifier:
    """Fit a classifier to the examples of a tenant; those without a label are counter-examples."""
    texts = [example.text for example in examples if example.label is not None]
    labels = [example.label for example in examples if example.label is not None]
    counter_examples = [example.text for example in examples if example.label is None]
    try:
        with mm.encode.text_cache_of(tenant):
            return model.adapt(texts, labels, counter_examples, **options)
    except mm.InputError as error:
        raise Invalid("No classifier can be made of these examples. Give two labels with examples each.") from error


class FittedClassifiers:
    """The fitted classifiers used last; bounded by their number and by the examples of all together."""

    def __init__(self, database: Database, models: Models, settings: Settings) -> None:
        self._database, self._models, self._settings = database, models, settings
        self._fitted: OrderedDict[VersionKey, mm.FewShotClassifier] = OrderedDict()
        self._examples = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._fitted)

    def get(self, version: Version) -> mm.FewShotClassifier:
        """The classifier of a version, from memory or fitted again."""
        key = version.classifier_id, version.number
        with self._lock:
            if key in self._fitted:
                self._fitted.move_to_end(key)
                return self._fitted[key]
        with self._database.read() as session:
            examples = labelled(examples_of(session, version))
        if not examples:
            raise NotFound(UNKNOWN)  # deleted meanwhile
        classifier = fit(self._models.get(version.model), examples, version.settings, tenant=version.tenant_id)
        self.put(key, classifier)
        return classifier

    def put(self, key: VersionKey, classifier: mm.FewShotClassifier) -> None:
        """Keep the classifier of a version, and drop those not used for longest."""
        max_classifiers, max_examples = self._settings.cached_classifiers, self._settings.cached_examples
        with self._lock:
            if key in self._fitted:
                return
            self._fitted[key] = classifier
            self._examples += _n_examples(classifier)
            while len(self._fitted) > 1 and (len(self._fitted) > max_classifiers or self._examples > max_examples):
                _, dropped = self._fitted.popitem(last=False)
                self._examples -= _n_examples(dropped)


def _n_examples(classifier: mm.FewShotClassifier) -> int:
    return len(classifier.examples_) + len(classifier.counter_examples_)
