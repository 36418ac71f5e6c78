"""Registered models, and which of them is live.

Every version of a classifier names the model it was adapted from, so older models are needed until no version
names them. Which one is live is read from the database, where another process may put another one live.
"""

import threading
from functools import lru_cache
from pathlib import Path

import manymetrics as mm
from manymetrics.service.domain.errors import Unavailable
from manymetrics.service.storage.database import Database
from manymetrics.service.storage.tables import Model, now

MAX_LOADED = 3  # models in memory


class Models:
    """The models of a database, loaded when they are needed."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._load = lru_cache(MAX_LOADED)(self._read)
        self._lock = threading.Lock()

    def put_live(self, path: str | Path) -> str:
        """Register the model of a folder, from which classifiers are adapted from now on; gives its fingerprint."""
        model = mm.load_model(path)
        folder = Path(model.folder or path).resolve()
        with self.database.write() as session:
            session.merge(Model(fingerprint=model.fingerprint, path=str(folder), live_at=now()))
        return model.fingerprint

    def find_live(self) -> str | None:
        """The fingerprint of the live model, if there is one."""
        with self.database.read() as session:
            return session.scalar(Model.latest_live())

    def live(self) -> mm.MetricModel:
        """The live model."""
        fingerprint = self.find_live()
        if fingerprint is None:
            raise Unavailable("No model is live. The operator puts one live with `manymetrics service model`.")
        return self.get(fingerprint)

    def get(self, fingerprint: str) -> mm.MetricModel:
        """A registered model, loaded if it is not in memory."""
        with self._lock:  # so that requests at the same time do not load it twice
            return self._load(fingerprint)

    def _read(self, fingerprint: str) -> mm.MetricModel:
        with self.database.read() as session:
            row = session.get(Model, fingerprint)
        if row is None:
            raise Unavailable("A model that is needed is not registered. The operator has to put it live again.")
        try:
            model = mm.load_model(row.path)
        except (mm.ManyMetricsError, OSError) as error:
            raise Unavailable("A model that is needed cannot be read. The operator has to restore it.") from error
        if model.fingerprint != fingerprint:
            raise Unavailable("The folder of a model holds another model. The operator has to restore it.")
        return model
