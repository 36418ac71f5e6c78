"""Strings to embeddings on one core: the encoder of the default recipe, alone, tuned, and beside other libraries."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from experiments.baselines.setfit import write_sentence_folder

import manymetrics as mm
from benchmarks import peers
from benchmarks.harness import NOT_RUN, Options, Row, Target, installed, race, rate, seconds, settle, timed
from benchmarks.material import load_base, needs_encoder, reviews, short_texts
from manymetrics.encode import LowRankFactors

SOURCES = ("encode",)
EARLIER = {"short texts": Target(1.7, "×"), "reviews": Target(1.05, "×")}  # the package's graph, text by text
NOT_BEHIND, TWICE = Target(1, "×"), Target(2, "×")
COSINE, TUNED = Target(0.998, ""), Target(0.85, "×")
SIZE, NO_REBUILD = Target(1.5, "MB", at_least=False), Target(0.7, "×")
RANK = 8  # of factors
NOTE = "texts a second of one core; processor seconds"


@needs_encoder
def run(options: Options) -> list[Row]:
    """The rows of this theme."""
    encoder = load_base()
    texts = {
        "short texts": short_texts(options.size(400, 16), options.seed),
        "reviews": reviews(options.size(66, 3), options.seed),
    }
    some = [*texts["short texts"][:200], *texts["reviews"][:40]]
    tuned = encoder.with_factors(_factors(encoder, 0))
    return [
        *_against_others(encoder, texts, options),
        _same_bits((encoder, tuned), some),
        _exactness(encoder, some),
        *(_tuned(kind, encoder, tuned, own, options) for kind, own in texts.items()),
        _size(tuned),
        _switching(encoder, options),
    ]


def _against_others(encoder: mm.SentenceEncoder, texts: dict[str, list[str]], options: Options) -> list[Row]:
    """Every kind of text against every library, on the same weights."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_sentence_folder(encoder, folder)
        others: dict[str, tuple[Callable[[], peers.Embed | None], Callable[[str], Target | None], str]] = {
            "the int8 graph of its package, text by text": (
                lambda: peers.package_graph(encoder), EARLIER.get, "onnxruntime"),
            "CTranslate2 in int8": (
                lambda: peers.ctranslate2(encoder, folder), lambda _: NOT_BEHIND, "sorted batches of 16"),
            "sentence-transformers with torch": (
                lambda: peers.sentence_transformers(folder), lambda _: TWICE, "floats, batches of 32"),
            "fastembed": (
                lambda: peers.fastembed(encoder, folder), lambda _: None,
                "the package's int8 graph from a local folder, padded batches of 32"),
        }  # fmt: skip
        rows = []
        for name, (load, target, how) in others.items():
            peer = load() if options.peers else None
            settle(1)
            for kind, own in texts.items():
                tokens = np.mean([len(ids) for ids in encoder.tokenize(own)])
                title = f"{len(own)} {kind} of {tokens:.0f} tokens, strings to embeddings; {name}"
                rows.append(_against(title, encoder, peer, own, (target(kind), how), options=options))
        return rows


def _against(title: str, encoder: mm.SentenceEncoder, peer: peers.Embed | None, texts: list[str],
             expected: tuple[Target | None, str], *, options: Options) -> Row:  # fmt: skip
    target, how = expected

    def judge(ours: Any, theirs: Any) -> tuple[bool, str]:
        return True, f"{how}; lowest cosine of the two {_cosines(ours, theirs).min():.4f}; {NOTE}"

    return race(title, partial(encode, encoder, texts), peer and partial(peer, texts),
                replace(options, rounds=2 * options.rounds), target=target, judge=judge,
                write=partial(rate, len(texts)))  # fmt: skip


def _same_bits(encoders: Sequence[mm.SentenceEncoder], texts: list[str]) -> Row:
    equal = all(
        (encode(each, texts) == np.concatenate([encode(each, [text]) for text in texts])).all() for each in encoders
    )
    title = f"{len(texts)} texts alone and together, with and without factors"
    return Row(title, "the same bits" if equal else "other bits", target=Target(1, "(equal)"), value=float(equal))


def _exactness(encoder: mm.SentenceEncoder, texts: list[str]) -> Row:
    title = f"lowest cosine of {len(texts)} texts to 32-bit floats of the weights as they are served"
    if installed("torch") is None:
        return Row(title, NOT_RUN, target=COSINE, note="torch is not installed")
    import torch

    from manymetrics.encode.training.transformer import LowRankTransformer

    transformer = LowRankTransformer(encoder, n_frozen=encoder.bert.n_layers, rank=1, start=None, seed=0)
    with torch.no_grad():
        exact = np.concatenate([transformer.embed([text], max_tokens=128).numpy() for text in texts])
    cosines = _cosines(encode(encoder, texts), exact)
    lowest, note = float(cosines.min()), f"mean {cosines.mean():.4f}"
    return Row(title, f"{lowest:.4f}", target=COSINE, value=lowest, note=note)


def _cosines(rows: Any, others: Any) -> Any:
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
    return (rows * others).sum(axis=1) / lengths


def _tuned(kind: str, base: mm.SentenceEncoder, tuned: mm.SentenceEncoder, texts: list[str], options: Options) -> Row:
    """The speed of an encoder with factors, over that of its base."""
    return race(f"{len(texts)} {kind} with factors of rank {RANK} of every matrix; the base without factors",
                partial(encode, tuned, texts), partial(encode, base, texts),
                replace(options, rounds=2 * options.rounds, peers=True), target=TUNED,
                judge=lambda *_: (True, NOTE), write=partial(rate, len(texts)))  # fmt: skip


def _size(tuned: mm.SentenceEncoder) -> Row:
    megabytes = sum(tensor.nbytes for tensor in tuned.state().tensors.values()) / 1e6
    title = "what a tuned encoder adds to its base, on disk and in memory"
    return Row(title, f"{megabytes:.2f} MB", target=SIZE, value=megabytes, note="half precision")


def _switching(base: mm.SentenceEncoder, options: Options) -> Row:
    """Texts of many tuned encoders in turn, over the same texts of one: a session for each would take seconds."""
    tuned = [base.with_factors(_factors(base, seed)) for seed in range(options.size(1000, 3))]
    texts = short_texts(options.size(10_000, 6), options.seed)
    part = texts[: len(texts) // 10] if len(texts) > 100 else texts

    def one_by_one(encoders: Sequence[mm.SentenceEncoder], some: list[str]) -> None:
        for at, text in enumerate(some):
            encode(encoders[at % len(encoders)], [text])

    spent = timed(lambda: one_by_one(tuned, texts))[0] / len(texts)
    alone = timed(lambda: one_by_one(tuned[:1], part))[0] / len(part)
    return Row(
        f"{len(texts):,} short texts one by one, another of {len(tuned):,} tuned encoders each time",
        f"{seconds(spent)} a text", f"{seconds(alone)} of one encoder", target=NO_REBUILD, value=alone / spent,
        note=f"{alone / spent:.2f} of the speed of one tuned encoder, timed on {len(part):,} texts; once; {NOTE}",
    )  # fmt: skip


def encode(encoder: mm.SentenceEncoder, texts: list[str]) -> Any:
    """Embeddings from nothing cached, on one thread."""
    with mm.encode.text_cache_of(None), patch.object(os, "cpu_count", return_value=1):
        return encoder.encode(texts)


def _factors(encoder: mm.SentenceEncoder, seed: int) -> LowRankFactors:
    rng = np.random.default_rng(seed)
    return LowRankFactors(
        {
            name: (rng.normal(0, 0.02, (n_in, RANK)), rng.normal(0, 0.02, (RANK, n_out)))
            for name, (n_out, n_in) in encoder.bert.matrix_shapes().items()
        }
    )
