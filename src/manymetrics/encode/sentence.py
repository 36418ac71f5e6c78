"""Texts -> rows of a pre-trained sentence encoder, served by onnxruntime.

A text is encoded by itself, never in a batch with others: dynamically quantised models take one scale for a whole
batch, so a row would depend on the texts beside it. Texts are spread over threads instead, one each, which changes no
bit. Rows are rounded to half precision, in which they are kept, and remembered beside the texts.
"""

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.encode.encoder import Encoder, State
from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.values import Floats, Ints, Texts

TOKENIZER = "tokenizer.json"
GRAPHS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
LARGEST = 2**31 - 1  # bytes of a graph, which is the format's own limit
LONGEST = 128  # tokens of a text that are read
LETTERS_A_TOKEN = 24  # at most, of what is handed to the tokenizer
FEW = 8  # texts that are not worth a second thread
MOST_REMEMBERED = 2**14  # rows, the latest
CLS, MEAN = "cls", "mean"
MANY_PIECES = 3  # of a word: the encoder has hardly seen it
FOREIGN = (
    0.18  # of the words; English tasks have at most 0.17, texts in French, Spanish, German more, other scripts most
)
SETTINGS = ("name", "tokenizer", "pooling", "longest", "card")


@dataclass(frozen=True, eq=False)
class SentenceRows:
    """The rows of some texts, as they are remembered."""

    array: Floats  # (texts, width) float32

    def take(self, rows: Ints) -> "SentenceRows":
        """The rows at the given places."""
        return SentenceRows(self.array[rows])

    @classmethod
    def join(cls, parts: "Sequence[SentenceRows]") -> "SentenceRows":
        """Several of these as one, in order."""
        return cls(np.concatenate([part.array for part in parts]))


@dataclass(frozen=True, eq=False)
class SentenceEncoder(Encoder, kind="sentence"):
    """A transformer as an ONNX graph, its tokenizer, and how the rows of a text's tokens become one."""

    name: str
    graph: Ints  # (bytes,) uint8: the ONNX file
    tokenizer: str  # the JSON of the tokenizers library
    pooling: str = CLS  # the row of the first token, or the mean of all
    longest: int = LONGEST  # tokens of a text that are read
    card: str = ""  # what it is, its licence, and what it was trained on

    def __post_init__(self) -> None:
        if self.pooling not in (CLS, MEAN):
            raise DataError(f"The pooling of {self.name!r} is {self.pooling!r}. Use {CLS!r} or {MEAN!r}.")
        if not isinstance(self.longest, int) or not 2 <= self.longest <= 100_000:
            raise DataError(f"{self.name!r} is to read {self.longest!r} tokens. Give a number from 2 to 100,000.")

    @classmethod
    def from_folder(
        cls, folder: str | Path, *, pooling: str | None = None, longest: int = LONGEST
    ) -> "SentenceEncoder":
        """The encoder of a folder in the layout of Hugging Face: a tokenizer.json and an ONNX graph.

        How token rows are pooled is read from `1_Pooling/config.json`, where sentence-transformers writes it; else, and
        unless it is given, the row of the first token counts.
        """
        place = Path(folder)
        graph = next((place / name for name in GRAPHS if (place / name).is_file()), None)
        if graph is None or not (place / TOKENIZER).is_file():
            raise InputError(f"{place} is no sentence encoder: it needs a {TOKENIZER} and one of {', '.join(GRAPHS)}.")
        if graph.stat().st_size > LARGEST:
            raise InputError(f"{graph} has more than {LARGEST:,} bytes. Give a smaller encoder.")
        encoder = cls(
            place.resolve().name,
            np.fromfile(graph, np.uint8),
            (place / TOKENIZER).read_text(encoding="utf-8"),
            pooling or _pooling(place),
            longest,
        )
        encoder.encode(Texts(["a text to begin with"]))  # an encoder that cannot encode is found out here
        return encoder

    def encode(self, texts: Texts) -> Floats:
        """One row for each text: (texts, width) float32."""
        found: SentenceRows = texts.remember(("rows", self.fingerprint), self._encode)
        return found.array

    def lengths(self, texts: Texts) -> Ints:
        """How many tokens of each text are read: (texts,)."""
        return np.array([len(self._cut(text)) for text in texts], dtype=np.int64)

    def foreign_share(self, texts: Texts) -> float:
        """The share of words that the encoder hardly knows: that its tokenizer cuts in many pieces or not at all."""
        model = json.loads(self.tokenizer)["model"]
        unknown = model["unk_id"] if "unk_id" in model else self._tokenizer.token_to_id(model.get("unk_token") or "")
        words = foreign = 0
        for text in texts:
            read = self._read(text)
            pieces = Counter(word for word in read.word_ids if word is not None)
            strange = {word for word, token in zip(read.word_ids, read.ids, strict=True) if token == unknown}
            words += len(pieces)
            foreign += sum(count >= MANY_PIECES or word in strange for word, count in pieces.items())
        return foreign / max(1, words)

    def state(self) -> State:
        """The graph, and everything else as JSON."""
        return State({"graph": self.graph}, {name: getattr(self, name) for name in SETTINGS})

    @classmethod
    def from_state(cls, state: State) -> "SentenceEncoder":
        """The encoder that `state` described."""
        graph = state.tensors["graph"]
        if graph.dtype != np.uint8 or graph.ndim != 1:
            raise DataError("the graph of a sentence encoder is not a list of bytes")
        return cls(graph=graph, **{name: state.settings[name] for name in SETTINGS if name in state.settings})

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: neither a session nor a tokenizer can be sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _encode(self, strings: tuple[str, ...]) -> SentenceRows:
        distinct = list(dict.fromkeys(strings))
        workers = min(len(distinct) // FEW, os.cpu_count() or 1) if multiprocessing.parent_process() is None else 1
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                rows = list(pool.map(self._row, distinct, chunksize=FEW))
        else:
            rows = [self._row(text) for text in distinct]
        places = {text: place for place, text in enumerate(distinct)}
        every = np.stack(rows) if rows else np.zeros((0, self.width), np.float32)
        return SentenceRows(every[[places[text] for text in strings]] if len(distinct) < len(strings) else every)

    def _row(self, text: str) -> Floats:
        return self._remembered(text).astype(np.float32)  # type: ignore[no-any-return]

    @cached_property
    def _remembered(self) -> Any:
        """Rows by text, in half precision: the same questions come again and again."""
        return lru_cache(MOST_REMEMBERED)(self._run)

    def _run(self, text: str) -> Floats:
        ids = np.array([self._cut(text)], dtype=np.int64)  # (1, tokens)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        asked = {name: given[name] for name in self._inputs}
        tokens = self._session.run(None, asked)[0][0]  # (tokens, width)
        row = tokens[0] if self.pooling == CLS else tokens.mean(axis=0)
        return row.astype(np.float16)  # type: ignore[no-any-return]

    def _cut(self, text: str) -> list[int]:
        return self._read(text).ids  # type: ignore[no-any-return]

    def _read(self, text: str) -> Any:
        short = text[: self.longest * LETTERS_A_TOKEN].encode("utf-8", "replace").decode()
        return self._tokenizer.encode(short)

    @cached_property
    def width(self) -> int:
        """How many numbers a text becomes."""
        return len(self._row(""))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            json.loads(self.tokenizer)
            tokenizer = Tokenizer.from_str(self.tokenizer)
        except Exception as problem:  # the library has no error of its own
            raise ModelError(f"The tokenizer of {self.name!r} cannot be read: {problem}. Fetch it again.") from problem
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.longest)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the number of threads changes the bits
        options.log_severity_level = 4
        try:
            return onnxruntime.InferenceSession(self.graph.tobytes(), options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # of many kinds
            first = str(problem).splitlines()[0]
            raise ModelError(f"The graph of {self.name!r} cannot be run: {first}. Fetch it again.") from problem

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        names = tuple(one.name for one in self._session.get_inputs())
        if unknown := set(names) - {"input_ids", "attention_mask", "token_type_ids"}:
            raise ModelError(f"The graph of {self.name!r} wants {sorted(unknown)}, which a text does not give.")
        return names


def _pooling(place: Path) -> str:
    try:
        config = json.loads((place / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        return MEAN if config.get("pooling_mode_mean_tokens") else CLS
    except FileNotFoundError:
        return CLS
    except (OSError, ValueError, AttributeError) as problem:
        where = place / "1_Pooling" / "config.json"
        raise InputError(f"{where} cannot be read: {problem}. Give the pooling by name.") from problem


def tell_foreign(encoder: SentenceEncoder, texts: Texts) -> str | None:
    """One sentence on texts that look unlike what the encoder knows; None where they do not."""
    share = encoder.foreign_share(texts)
    if share < FOREIGN:
        return None
    return (
        f"{share:.0%} of the words are strange to the encoder {encoder.name!r}, as in a language it does not know. "
        "Take an encoder that knows it: any folder with a tokenizer.json and a model.onnx will do."
    )
