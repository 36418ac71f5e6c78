"""Registered models, and which of them is live.

Every version of a classifier names the model it was adapted from, so older models stay where they are until no version
needs them. All processes look now and then whether another model was put live.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path

from sqlalchemy import select

import manymetrics as mm
from manymetrics.service.database import Database
from manymetrics.service.problems import Unavailable
from manymetrics.service.records import Model, now
from manymetrics.service.values import ClusterInfo, MetricInfo, ModelInfo

LOADED = 3  # models in memory
SPOKEN = "turn on the lamp in the kitchen and play some music until it is seven in the evening please"


class Models:
    """The models of a database, loaded when they are needed."""

    def __init__(self, database: Database, *, check: float = 2.0) -> None:
        self.database = database
        self._check = check  # seconds
        self._loaded: OrderedDict[str, mm.MetricModel] = OrderedDict()
        self._lock = threading.Lock()
        self._live: tuple[float, str] | None = None  # when it was looked up, its fingerprint

    def put_live(self, path: str | Path) -> str:
        """Register the model of a folder and let classifiers be adapted from it; gives its fingerprint."""
        folder = Path(path).resolve()
        model = mm.load_model(folder)
        with self.database.write() as session:
            found = session.get(Model, model.fingerprint)
            if found is None:
                found = Model(fingerprint=model.fingerprint, created_at=now())
                session.add(found)
            found.path, found.live_at = str(folder), now()
        with self._lock:
            self._keep(model)
            self._live = None
        return model.fingerprint

    def put_live_if_none(self, path: str | Path) -> str:
        """Put the model of a folder live in a database that has none; gives the fingerprint of the live one."""
        found = self._find_live()
        return found if found is not None else self.put_live(path)

    def live(self) -> mm.MetricModel:
        """The model that is live."""
        moment = time.monotonic()
        known = self._live
        if known is None or moment - known[0] > self._check:
            found = self._find_live()
            if found is None:
                raise Unavailable("No model is live. The operator puts one live with `manymetrics service model`.")
            known = self._live = (moment, found)
        return self.get(known[1])

    def warm_up(self) -> None:
        """Let one encoder of each kind read something, so that what is loaded late is there before a client asks."""
        by_kind = {type(metric.encoder): metric.encoder for metric in self.live().metrics}
        for encoder in by_kind.values():
            many = 1 if isinstance(encoder, mm.SentenceEncoder) else 100_000 // len(SPOKEN.split()) + 1
            encoder.encode(mm.Texts([SPOKEN] * many))  # loops are compiled after some hundred thousand words

    def get(self, fingerprint: str) -> mm.MetricModel:
        """A registered model; loaded where it is not."""
        with self._lock:
            if fingerprint not in self._loaded:
                self._keep(self._load(fingerprint))
            self._loaded.move_to_end(fingerprint)
            return self._loaded[fingerprint]

    def describe(self) -> ModelInfo:
        """The live model as any client may see it: no task is named."""
        model = self.live()
        clusters = [ClusterInfo(number, len(tasks)) for number, tasks in enumerate(model.clusters)]
        metrics = [MetricInfo(one.name, one.kind, one.cluster, len(one.tasks)) for one in model.metrics]
        return ModelInfo(model.fingerprint, len(model.clusters.names), clusters, metrics)

    def _find_live(self) -> str | None:
        with self.database.read() as session:
            latest = select(Model.fingerprint).where(Model.live_at.is_not(None)).order_by(Model.live_at.desc())
            return session.scalar(latest.limit(1))

    def _load(self, fingerprint: str) -> mm.MetricModel:
        with self.database.read() as session:
            found = session.get(Model, fingerprint)
        if found is None:
            raise Unavailable("A model that is needed is not registered. The operator has to put it live again.")
        try:
            model = mm.load_model(found.path)
        except (mm.ManyMetricsError, OSError) as problem:
            raise Unavailable("A model that is needed cannot be read. The operator has to restore it.") from problem
        if model.fingerprint != fingerprint:
            raise Unavailable("The folder of a model holds another model. The operator has to restore it.")
        return model

    def _keep(self, model: mm.MetricModel) -> None:
        self._loaded[model.fingerprint] = model
        while len(self._loaded) > LOADED:
            self._loaded.popitem(last=False)
