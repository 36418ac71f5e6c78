"""50,000 texts through one encoder, projection included, against torch's dense convolution and MiniLM."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import minilm
from benchmarks.dense import DenseConvolution
from benchmarks.harness import (
    PROCESSOR,
    WALL,
    Options,
    Race,
    Row,
    Target,
    installed,
    race_row,
    rate,
    settle,
    without_peer,
)
from benchmarks.material import (
    WIDTH,
    WINDOW,
    about,
    natural_texts,
    paper_vectors,
    random_encoder,
    short_texts,
    some,
    usual_vectors,
)
from manymetrics.encode import WordVectors, normalize
from manymetrics.encode.tokens import Tokens

TWENTY, HUNDRED = Target(20, "×"), Target(100, "×")
EXACT = 1e-5


def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    count = options.size(50_000, 400)
    short, natural = short_texts(count, options.seed), natural_texts(count, options.seed)
    cases = [
        ("short texts", short, usual_vectors()),
        ("short texts", short, paper_vectors()),
        ("texts of 30,000 words (Zipf)", natural, paper_vectors()),
    ]
    rows = [_against_dense(what, texts, vectors, 1, options) for what, texts, vectors in cases]
    rows.append(_against_dense(*cases[0], 2, options))
    rows.append(_against_minilm(short, usual_vectors(), options))
    return rows


def _against_dense(what: str, texts: list[str], vectors: WordVectors, threads: int, options: Options) -> Row:
    tokens, encoder = vectors.tokens(texts), random_encoder(vectors, options.seed)
    title = f"{len(texts):,} {what}, {about(vectors)}, window {WINDOW}, width {WIDTH}"
    title += f"; torch on {threads} thread{'s' * (threads > 1)}"
    target = TWENTY if threads == 1 else None

    def ours() -> Any:
        return encoder.respond(anew(tokens))

    if not (options.peers and installed("torch")):
        return without_peer(title, ours, options, target=target)
    part, peer = some(texts, options.size(4000, 100), options.seed), DenseConvolution(encoder)
    batches = peer.prepare(vectors.tokens(part))

    def judge(_: Any, theirs: Any) -> tuple[bool, str]:
        error = float(np.abs(encoder.encode(part) - theirs).max() / np.abs(theirs).max())
        note = f"torch timed on {len(part):,} texts and scaled; largest difference {error:.0e} of the largest response"
        if threads > 1:
            note += "; ours on 1 thread; wall clock, so other work on the machine (see the load) counts"
        return error <= EXACT, note

    settle(threads)
    clock = WALL if threads > 1 else PROCESSOR
    race = Race(ours, lambda: peer.responses(batches), peer_scale=len(texts) / len(part), clock=clock)
    row = race_row(title, race, options, target=target, judge=judge)
    settle(1)
    return row


def anew(tokens: Tokens) -> Tokens:
    """The same tokens, whose distinct words are not known yet, as those of texts that come in."""
    vars(tokens).pop("words", None)
    return tokens


def _against_minilm(texts: list[str], vectors: WordVectors, options: Options) -> Row:
    encoder, strings = random_encoder(vectors, options.seed), list(texts)
    title = f"{len(texts):,} short texts from strings to vectors, {about(vectors)}; MiniLM on 1 thread"

    def ours() -> object:
        return normalize(encoder.encode(strings))

    write = partial(rate, len(texts))
    model = minilm.load() if options.peers else None
    if model is None:
        return without_peer(title, ours, options, target=HUNDRED, write=write)
    settle(1)
    part = strings[: options.size(256, 16)]
    note = f"MiniLM timed on {len(part):,} texts and scaled"
    race = Race(ours, lambda: minilm.encode(model, part), peer_scale=len(texts) / len(part))
    return race_row(title, race, options, target=HUNDRED, judge=lambda *_: (True, note), write=write)
