"""Embeddings that are stored: of a bank's texts, computed once for a learning; and the latest ones of each owner.

`encode_bank` is a stage of its own: it takes most of the time of a learning with a sentence encoder, every later stage
uses its table, and an interrupted one resumes.

A program of one owner caches everything. In a service of many tenants the time of an answer must not depend on what
another tenant sent, so each tenant has a cache of its own, or none.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock

import numpy as np
from safetensors.numpy import load, save

from manymetrics.values import Floats, Ints, Job, RunJobs, SharedData

STAGE = "encode"
LETTERS_OF_A_CALL = 40  # that take as long to encode as any text takes beside its letters
MAX_LETTERS = 640  # of a text that are read, about: an encoder reads so many tokens
EVERYBODY = ""  # the owner where none is named: a program of one owner
_OWNER: ContextVar[str | None] = ContextVar("owner of cached texts", default=EVERYBODY)


@contextmanager
def text_cache_of(owner: str | None) -> Iterator[None]:
    """Let encoders cache what they compute of a text for this owner, and reuse nothing of another owner's.

    With None they cache nothing, and encode equal texts of one call each by itself. It holds for the calls of this
    thread.
    """
    token = _OWNER.set(owner)
    try:
        yield
    finally:
        _OWNER.reset(token)


def cache_owner() -> str | None:
    """The owner whose texts may be cached in this thread; None: nobody's."""
    return _OWNER.get()


class RecentEmbeddings:
    """The embeddings that were used last, by owner and text."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[tuple[str, str], Floats] = OrderedDict()
        self._lock = Lock()

    def get(self, owner: str, texts: Iterable[str]) -> dict[str, Floats]:
        """The embeddings of those of the texts that are cached for this owner."""
        with self._lock:
            known = {text: self._entries[owner, text] for text in texts if (owner, text) in self._entries}
            for text in known:
                self._entries.move_to_end((owner, text))
        return known

    def put(self, owner: str, embeddings: Mapping[str, Floats]) -> None:
        """Cache embeddings for this owner; the oldest entries are removed."""
        with self._lock:
            self._entries.update({(owner, text): row.copy() for text, row in embeddings.items()})
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


class EmbeddingTable:
    """The embeddings of a bank's distinct texts."""

    def __init__(self, texts: Sequence[str], embeddings: Floats) -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        self.embeddings = embeddings  # (texts, width) float16

    def rows(self, texts: Sequence[str]) -> Ints:
        """The row of each text; -1 of a text that is not in the table: (texts,)."""
        return np.array([self._rows.get(text, -1) for text in texts], dtype=np.int64)

    def clear(self) -> None:
        """Forget all texts."""
        self._rows, self.embeddings = {}, np.zeros_like(self.embeddings[:1])


def encode_bank(shared_data: SharedData, run_jobs: RunJobs) -> SharedData:
    """Encode each distinct text of the bank once; the tasks that could be encoded, and the base with their embeddings.

    An encoder that has no use for a table is left as it is.
    """
    base, new_texts = shared_data.base, shared_data.bank.new_texts
    if not base.uses_table:
        return shared_data
    jobs = [
        Job(name, {"encoder": base.fingerprint, "texts": _hash(texts)}, size=amount_of_text(texts))
        for name, texts in new_texts.items()
        if texts
    ]
    payloads = run_jobs(STAGE, encode_task, jobs)
    failed = {job.name for job in jobs} - payloads.keys()
    encoded = [text for job in jobs if job.name in payloads for text in new_texts[job.name]]
    table = EmbeddingTable(encoded, np.concatenate([load(payload)["embeddings"] for payload in payloads.values()]))
    encoders = {**shared_data.encoders, base.fingerprint: base.with_table(table)}
    return replace(shared_data.only(set(shared_data.bank.names) - failed), encoders=encoders)


def encode_task(job: Job, shared_data: SharedData) -> bytes:
    """The embeddings of the texts of one task that no task before it has."""
    encoder = shared_data.encoders[job.spec["encoder"]]
    return save({"embeddings": encoder.encode(shared_data.bank.new_texts[job.name]).astype(np.float16)})


def _hash(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def amount_of_text(texts: Sequence[str]) -> float:
    """How much there is to encode, in letters."""
    return float(sum(LETTERS_OF_A_CALL + min(len(text), MAX_LETTERS) for text in texts))
