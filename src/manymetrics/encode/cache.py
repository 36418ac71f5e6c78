"""The embeddings of a bank's texts, computed once for a learning.

It is a stage of its own: it takes most of the time of a learning with a sentence encoder, every later stage uses its
table, and an interrupted one resumes.
"""

import hashlib
import json
from dataclasses import replace

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.sentence import EmbeddingTable, SentenceEncoder
from manymetrics.values import Job, RunJobs, SharedData

STAGE = "encode"
LETTERS_OF_A_CALL = 40  # that take as long to encode as any text takes beside its letters
MAX_LETTERS = 640  # of a text that are read, about: an encoder reads so many tokens


def encode_bank(shared_data: SharedData, run_jobs: RunJobs) -> SharedData:
    """Encode each distinct text of the bank once; the tasks that could be encoded, and the base with their embeddings.

    An encoder that is no sentence encoder has no use for a table, and is left as it is.
    """
    base, new_texts = shared_data.base, shared_data.bank.new_texts
    if not isinstance(base, SentenceEncoder):
        return shared_data
    jobs = []
    for name, texts in new_texts.items():
        if texts:
            spec = {"encoder": base.fingerprint, "texts": hashlib.sha256(json.dumps(texts).encode()).hexdigest()}
            n_letters = sum(LETTERS_OF_A_CALL + min(len(text), MAX_LETTERS) for text in texts)
            jobs.append(Job(name, spec, size=float(n_letters)))
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
