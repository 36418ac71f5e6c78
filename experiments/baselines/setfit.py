"""SetFit (extra `peers`), fine-tuned on a sentence encoder of ours; nothing is fetched when it runs."""

import io
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from experiments.problems import answer_problems
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.runtime.bert import CLS, MEAN
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sources.encoders import bert_config
from manymetrics.encode.sources.folder import TOKENIZER
from manymetrics.engine import Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import InputError, MissingExtra
from manymetrics.evaluation.baselines import Method, shots_of
from manymetrics.evaluation.scoring import Answered
from manymetrics.store import Run
from manymetrics.values import Job, Task, TaskBank

SPECIAL = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
METHOD = "SetFit, balanced"
STAGE = "setfit"
BALANCED = {"class_weight": "balanced"}
MODULES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}  # folder -> what is in it


def require_setfit(encoder: Encoder) -> None:
    """Say what SetFit lacks to fine-tune an encoder, before anything is learned."""
    load_setfit()
    with tempfile.TemporaryDirectory() as folder:
        write_sentence_folder(encoder, Path(folder))


def answer_with_setfit(encoder: Encoder, targets: TaskBank, *, names: bool, seeds: int, out: Path,
                       report: Callable[[Progress], None]) -> list[list[Answered]]:  # fmt: skip
    """What SetFit answers with each seed, each answer stored in the folder `out`: (seeds, targets)."""
    stage, total = f"{STAGE}, label names {'on' if names else 'off'}", seeds * len(targets)
    done, stored, started = 0, 0, time.perf_counter()
    report(Progress(stage, 0, total, 0.0))

    def answer_once(method: Method, seed: int) -> Method:
        def answer(task: Task) -> list[str]:
            nonlocal done, stored
            spec = {"encoder": encoder.fingerprint, "names": names, "seed": seed, "task": task.fingerprint}
            job = Job(task.name, spec)
            key = Run.key(STAGE, job, code_fingerprint(setfit))
            payload = run.get(STAGE, key, job)
            stored += payload is not None
            if payload is None:
                payload = json.dumps(list(method(task))).encode()
                run.put(STAGE, key, job, payload)
            done += 1
            report(Progress(stage, done, total, time.perf_counter() - started, stored))
            return list(json.loads(payload))

        return answer

    with tempfile.TemporaryDirectory() as place, Run.open(out) as run:
        folder = Path(place)
        write_sentence_folder(encoder, folder)
        methods = [answer_once(setfit(folder, names=names, seed=seed), seed) for seed in range(seeds)]
        return [answer_problems(method, targets) for method in methods]


def setfit(folder: Path, *, names: bool = False, seed: int = 0) -> Method:
    """SetFit: an encoder fine-tuned on pairs of shots, then a logistic regression in which labels weigh alike.

    All else is as the library has it. Left unbalanced, the regression leans to the commonest label of the shots.
    `folder` holds the encoder as sentence-transformers reads it. With `names`, the name of each label is one more
    example of it.
    """
    library, data_set = load_setfit()
    logging.getLogger("setfit").setLevel(logging.ERROR)

    def answer(task: Task) -> list[str]:
        shots = shots_of(task, names=names)
        examples = data_set.from_dict({"text": list(shots.texts), "label": shots.numbers.tolist()})
        with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            model = library.SetFitModel.from_pretrained(str(folder), head_params=BALANCED)
            arguments = library.TrainingArguments(
                output_dir=out, seed=seed, save_strategy="no", report_to="none", show_progress_bar=False
            )
            library.Trainer(model=model, args=arguments, train_dataset=examples).train()
        return [task.labels[int(number)] for number in model.predict(list(task.test.texts))]

    return answer


def load_setfit() -> tuple[Any, Any]:
    """SetFit, and the kind of data set it learns from."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import setfit as library
        from datasets import Dataset
    except ModuleNotFoundError as missing:
        message = 'SetFit is not installed. Install it with: pip install "manymetrics[peers]"'
        raise MissingExtra(message) from missing
    return library, Dataset


def write_sentence_folder(encoder: Encoder, folder: Path) -> None:
    """An encoder as a folder of sentence-transformers: a BERT in numbers, its tokenizer, how its rows are pooled."""
    if not isinstance(encoder, SentenceEncoder):
        raise InputError(
            "SetFit fine-tunes a sentence encoder, and this recipe uses word vectors. "
            "Leave --with setfit out, or choose another recipe."
        )
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer

    bert, tokenizer = encoder.bert, Tokenizer.from_str(encoder.tokenizer)
    special = {name: token for name, token in SPECIAL.items() if tokenizer.token_to_id(token) is not None}
    weights, width = bert.weights(), bert.width
    config = {**bert_config(weights, bert.n_heads, bert.eps), "position_embedding_type": "absolute"}  # for CTranslate2
    for name, shape in (("weight", (width, width)), ("bias", (width,))):
        weights[f"pooler.dense.{name}"] = np.zeros(shape, np.float32)  # belongs to a BERT, and gives no row
    files: dict[str, Any] = {
        "config.json": config,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": tokenizer.id_to_token(0),  # whatever it is, a mask hides it
            "model_max_length": encoder.longest,
            **special,
        },
        "sentence_bert_config.json": {"max_seq_length": encoder.longest, "do_lower_case": False},
        "modules.json": [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for place, (path, kind) in enumerate(MODULES.items())
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": encoder.pooling == CLS,
            "pooling_mode_mean_tokens": encoder.pooling == MEAN,
        },
    }
    for path in MODULES:
        (folder / path).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    (folder / TOKENIZER).write_text(encoder.tokenizer, encoding="utf-8")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
