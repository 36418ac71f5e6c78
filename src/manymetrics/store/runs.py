"""A run on disk: one sealed file for each finished unit, named by the hash of all that went into it.

    run/recipe.toml            what was asked for, for people to read
    run/units/ab/ab12…         SHA-256 and result of one unit; key = hash of stage, name, spec, and inputs
    run/learned/               what a report needs: S, X, E, clusters, recipe and rules of the model
    run/manifest.json          written last: every unit's key and the hash of its result, the identity of the run

A unit that is there is not done again; a damaged one counts as not there. Changing a task changes the keys of what
depends on it and of nothing else.
"""

import hashlib
import json
from pathlib import Path

from manymetrics.errors import InputError
from manymetrics.recipe import Recipe
from manymetrics.store.files import read_checked, sealed, write_atomically
from manymetrics.values import Unit

FORMAT = 1


class Run:
    """The finished units of a long computation, in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._results: dict[str, str] = {}

    @classmethod
    def open(cls, folder: str | Path, recipe: Recipe) -> "Run":
        """A run in this folder, new or to be gone on with; the recipe is written down for people to read."""
        run = cls(folder)
        if run.folder.exists() and not run.folder.is_dir():
            raise InputError(f"{run.folder} is a file, and a run is a folder. Give another path.")
        write_atomically(run.folder / "recipe.toml", recipe.as_toml().encode())
        return run

    @staticmethod
    def key(stage: str, unit: Unit) -> str:
        """The hash of everything a unit's result depends on."""
        inputs = [hashlib.sha256(part).hexdigest() for part in unit.inputs]
        said = json.dumps([FORMAT, stage, unit.name, unit.spec, inputs], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    def get(self, key: str) -> bytes | None:
        """The result of a unit, or None where it has to be done."""
        payload = read_checked(self._path(key))
        if payload is not None:
            self._results[key] = hashlib.sha256(payload).hexdigest()
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep the result of a unit."""
        write_atomically(self._path(key), sealed(payload))
        self._results[key] = hashlib.sha256(payload).hexdigest()

    def finish(self) -> None:
        """Write down which units made up the run."""
        manifest = {"format": FORMAT, "units": dict(sorted(self._results.items()))}
        write_atomically(self.folder / "manifest.json", json.dumps(manifest, indent=1).encode())

    def _path(self, key: str) -> Path:
        return self.folder / "units" / key[:2] / key
