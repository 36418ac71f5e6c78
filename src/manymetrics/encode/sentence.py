"""Texts -> embeddings of a pre-trained transformer, served by onnxruntime.

A text's embedding does not depend on the texts beside it, to the bit. Embeddings are rounded to half precision, in
which they are cached and saved.

The texts of a bank are encoded once for a learning, which is a stage of its own: it takes most of the time of a
learning, and every later stage uses its table.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoder import Encoder, State
from manymetrics.encode.runtime.bert import CLS, POOLINGS, Bert, LowRankFactors
from manymetrics.encode.runtime.session import Model, OnnxGraph, Session
from manymetrics.encode.sources.folder import read_model, read_pooling, read_prompt, read_tokenizer
from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.values import Floats, Job, RunJobs, SharedData, as_texts

MAX_TOKENS = 128  # of a text that are read
LETTERS_A_TOKEN = 24  # at most, of what is handed to the tokenizer
MAX_CACHED = 2**14  # embeddings, the latest
SETTINGS = ("name", "tokenizer", "pooling", "longest", "card", "prompt")
EVERYBODY = ""  # the owner where none is named: a program of one owner
LETTERS_OF_A_CALL = 40  # that take as long to encode as any text takes beside its letters
MAX_LETTERS = 640  # of a text that are read, about: an encoder reads so many tokens
_OWNER: ContextVar[str | None] = ContextVar("owner of cached texts", default=EVERYBODY)


@contextmanager
def text_cache_of(owner: str | None) -> Iterator[None]:
    """Let encoders cache what they compute of a text for this owner, and reuse nothing of another owner's.

    In a service of many tenants the time of an answer must not depend on what another tenant sent. With None they cache
    nothing, and encode equal texts of one call each by itself. It holds for the calls of this thread.
    """
    token = _OWNER.set(owner)
    try:
        yield
    finally:
        _OWNER.reset(token)


@dataclass(eq=False)
class RecentEmbeddings:
    """The embeddings that were used last, by owner and text."""

    size: int
    _entries: OrderedDict[tuple[str, str], Floats] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=Lock)

    def encode(self, texts: Sequence[str], run: Callable[[Sequence[str]], Floats]) -> Floats:
        """The embeddings of some texts; `run` gives those that are not cached for the owner of this thread."""
        owner = _OWNER.get()
        if owner is None:
            return run(texts)
        distinct = dict.fromkeys(texts)
        with self._lock:
            known = {text: self._entries[owner, text] for text in distinct if (owner, text) in self._entries}
            for text in known:
                self._entries.move_to_end((owner, text))
        if missing := [text for text in distinct if text not in known]:
            computed = dict(zip(missing, run(missing), strict=True))
            with self._lock:
                self._entries.update({(owner, text): row.copy() for text, row in computed.items()})
                while len(self._entries) > self.size:
                    self._entries.popitem(last=False)
            known |= computed
        return np.stack([known[text] for text in texts])


@dataclass(eq=False)
class EmbeddingTable:
    """The embeddings of a bank's distinct texts."""

    rows: dict[str, int]  # by text
    embeddings: Floats  # (texts, width) float16


@dataclass(frozen=True, eq=False, repr=False)
class SentenceEncoder(Encoder, kind="sentence"):
    """A transformer, its tokenizer, and how the rows of a text's tokens are pooled; `with_factors` tunes it."""

    takes_table = True
    name: str
    model: Model
    tokenizer: str  # the JSON of the tokenizers library
    pooling: str = CLS  # the row of the first token, or the mean of all
    longest: int = MAX_TOKENS  # tokens of a text that are read
    card: str = ""  # what it is, its licence, and what it was trained on
    prompt: str = ""  # put before every text
    factors: LowRankFactors | None = None
    base: "SentenceEncoder | None" = None  # the encoder that the factors tune
    table: EmbeddingTable | None = None  # embeddings computed beforehand; no part of what the encoder is

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise DataError(
                f"The pooling of {self.name!r} is {self.pooling!r}. Use {' or '.join(map(repr, POOLINGS))}."
            )
        most = self.model.n_positions
        if not isinstance(self.longest, int) or not 2 <= self.longest <= most:
            raise DataError(f"{self.name!r} is to read {self.longest!r} tokens. Give a number from 2 to {most:,}.")

    @classmethod
    def from_folder(cls, folder: str | Path, *, pooling: str | None = None, longest: int = MAX_TOKENS, name: str = "",
                    card: str = "") -> "SentenceEncoder":  # fmt: skip
        """The encoder of a folder in the layout of Hugging Face.

        It needs a tokenizer.json and either the model.safetensors and config.json of a BERT or, for any other
        transformer, an ONNX graph. `pooling` is "cls", the row of the first token, or "mean", the mean of all. Where it
        is not given, it is read from the files of sentence-transformers (`modules.json`, `1_Pooling/config.json`); a
        folder without these is refused. A prompt of `config_sentence_transformers.json` is put before every text.
        """
        path = Path(folder)
        model, tokenizer, pooling = read_model(path), read_tokenizer(path), pooling or read_pooling(path)
        most, prompt = min(longest, model.n_positions), read_prompt(path)
        encoder = cls(name or path.resolve().name, model, tokenizer, pooling, most, card, prompt)
        encoder.encode(["a text to begin with"])  # an encoder that cannot encode is refused here
        return encoder

    def with_factors(self, factors: LowRankFactors) -> "SentenceEncoder":
        """The same model with these low-rank factors in place of any it has.

        Session, tokenizer and weights are shared with the base, and saved once for all that share them.
        """
        base = self.base or self
        factors.check_fit(base.bert.matrix_shapes())
        return replace(base, factors=factors, base=base, table=None)

    @property
    def is_bert(self) -> bool:
        """Whether the encoder has weights by name, and not an ONNX graph."""
        return isinstance(self.model, Bert)

    @property
    def bert(self) -> Bert:
        """The weights by name; refused where the encoder is an ONNX graph."""
        if not isinstance(self.model, Bert):
            raise InputError(
                f"The encoder {self.name!r} is an ONNX file, so it cannot be tuned. "
                "Use the folder of a BERT with model.safetensors and config.json."
            )
        return self.model

    def with_table(self, table: EmbeddingTable) -> "SentenceEncoder":
        """The same encoder, which reads the embeddings of some texts from a table."""
        encoder = object.__new__(SentenceEncoder)
        vars(encoder).update(vars(self), table=table)  # session, tokenizer and cache are shared
        return encoder

    def clear_table(self) -> None:
        """Forget the embeddings of the table, in this encoder and in all that share it."""
        if self.table is not None:
            self.table.rows, self.table.embeddings = {}, np.zeros_like(self.table.embeddings[:1])

    def encode(self, texts: Sequence[str]) -> Floats:
        """One embedding for each text: (texts, width) float32."""
        texts = as_texts(texts)
        if not texts:
            return np.zeros((0, self.width), np.float32)
        if self.table is None:
            return self._recent.encode(texts, self._run).astype(np.float32)
        rows = np.array([self.table.rows.get(text, -1) for text in texts], dtype=np.int64)  # (texts,)
        embeddings = self.table.embeddings[np.maximum(rows, 0)].astype(np.float32)
        if missing := [text for text, row in zip(texts, rows, strict=True) if row < 0]:
            embeddings[rows < 0] = self._recent.encode(missing, self._run)
        return embeddings

    def state(self) -> State:
        """The weights, or the factors and the base that they tune, and everything else as JSON."""
        if self.base is not None and self.factors is not None:
            return State(self.factors.tensors(), {"name": self.name, "card": self.card}, {"base": self.base})
        settings = {name: getattr(self, name) for name in SETTINGS if name != "prompt" or self.prompt}
        if isinstance(self.model, OnnxGraph):
            return State({"graph": self.model.content}, settings)
        return State(self.model.tensors, {**settings, "n_heads": self.model.n_heads, "eps": self.model.eps})

    @classmethod
    def from_state(cls, state: State) -> "SentenceEncoder":
        """The encoder that `state` described."""
        tensors, settings, base = state.tensors, state.settings, state.parts.get("base")
        if base is not None:
            if not base.is_bert:
                raise DataError("low-rank factors of a sentence encoder have a base that is no BERT")
            return cast(SentenceEncoder, base).with_factors(LowRankFactors.from_tensors(tensors))
        if "graph" in tensors:
            if tensors["graph"].dtype != np.uint8 or tensors["graph"].ndim != 1:
                raise DataError("the graph of a sentence encoder is not a list of bytes")
            model: Model = OnnxGraph(tensors["graph"])
        else:
            model = Bert(dict(tensors), settings["n_heads"], float(settings["eps"]))
        return cls(model=model, **{name: settings[name] for name in SETTINGS if name in settings})

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: neither a session nor a tokenizer can be sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _run(self, texts: Sequence[str]) -> Floats:
        """The embeddings of texts that are not cached: (texts, width) float16."""
        return self._session.embed(self.tokenize(texts), self.factors.inputs() if self.factors else {})

    def tokenize(self, texts: Iterable[str]) -> list[list[int]]:
        """The token ids of each text, of its first letters only: (tokens,) each."""
        letters = self.longest * LETTERS_A_TOKEN
        valid = [f"{self.prompt}{text[:letters]}".encode("utf-8", "replace").decode() for text in texts]
        return [encoding.ids for encoding in self.fast_tokenizer.encode_batch(valid)]

    @cached_property
    def width(self) -> int:
        """The length of an embedding."""
        return int(self._run([""]).shape[1])

    @cached_property
    def _recent(self) -> RecentEmbeddings:
        return RecentEmbeddings(MAX_CACHED)

    @cached_property
    def fast_tokenizer(self) -> Any:
        """The tokenizer of the tokenizers library, without padding, with truncation."""
        if self.base is not None:
            return self.base.fast_tokenizer
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
    def _session(self) -> Session:
        return self.base._session if self.base else Session(self.model, name=self.name, pooling=self.pooling)


def encode_bank(shared_data: SharedData, run_jobs: RunJobs) -> SharedData:
    """Encode each distinct text of the bank once; the tasks that could be encoded, and the base with their embeddings.

    A task's job has the texts that no task before it has. An encoder that is no sentence encoder has no use for a
    table, and is left as it is.
    """
    base, bank, new_texts = shared_data.base, shared_data.bank, dict[str, list[str]]()
    if not base.takes_table:
        return shared_data
    jobs, seen = [], set[str]()
    for task in bank:
        texts = dict.fromkeys((*task.train.texts, *task.valid.texts, *task.label_names))
        if new := [text for text in texts if text not in seen]:
            n_letters = sum(LETTERS_OF_A_CALL + min(len(text), MAX_LETTERS) for text in new)
            spec, inputs = {"encoder": base.fingerprint}, (json.dumps(new).encode(),)
            jobs.append(Job(task.name, spec, inputs, size=float(n_letters)))
            new_texts[task.name] = new
            seen.update(new)
    payloads = run_jobs("encode", encode_texts, jobs)
    encoded = [text for name in payloads for text in new_texts[name]]
    embeddings = np.concatenate([load(payload)["embeddings"] for payload in payloads.values()])
    table = EmbeddingTable({text: row for row, text in enumerate(encoded)}, embeddings)
    failed = new_texts.keys() - payloads.keys()
    return replace(shared_data.only(set(bank.names) - failed), base=base.with_table(table))


def encode_texts(job: Job, shared_data: SharedData) -> bytes:
    """The embeddings of some texts."""
    return save({"embeddings": shared_data.base.encode(json.loads(job.inputs[0])).astype(np.float16)})
