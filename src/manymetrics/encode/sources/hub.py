"""Encoders of the Hugging Face hub by name, such as BAAI/bge-base-en-v1.5: the local cache first, then the hub."""

import os
import re
from pathlib import Path

from manymetrics.encode.sources.folder import CONFIG, GRAPHS, MODULES, PROMPTS, TOKENIZER, WEIGHTS, is_bert
from manymetrics.errors import EnvironmentProblem, MissingExtra

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
SMALL_FILES = (TOKENIZER, CONFIG, MODULES, PROMPTS, "*_Pooling/config.json")
ON = ("1", "ON", "YES", "TRUE")  # values of HF_HUB_OFFLINE, as huggingface_hub reads it


def is_hub_name(name: str) -> bool:
    """Whether a name has the form owner/model."""
    return NAME.fullmatch(name) is not None and ".." not in name


def cached_folder(name: str) -> Path | None:
    """The folder of an encoder in the local cache of the hub; None where the cache does not have all of it."""
    model = _hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        folder = model / "snapshots" / (model / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    has_model = any((folder / file).is_file() for file in (WEIGHTS, *GRAPHS))
    return folder if has_model and (folder / TOKENIZER).is_file() else None


def fetch_folder(name: str) -> Path:
    """The folder of an encoder in the local cache, fetched from the hub where it is not there."""
    if folder := cached_folder(name):
        return folder
    where = f"The encoder {name} is not in the local cache of the Hugging Face hub"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ON:
        raise EnvironmentProblem(f"{where}, and HF_HUB_OFFLINE is set. Unset it to fetch, or give a folder.")
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ModuleNotFoundError:
        raise MissingExtra(
            f"{where}, and huggingface_hub is not installed. Install it with: "
            'pip install "manymetrics[hub]", or give a folder.'
        ) from None
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(SMALL_FILES)))
        graphs = [file for file in HfApi().list_repo_files(name) if file in GRAPHS]
        snapshot_download(name, allow_patterns=[WEIGHTS] if is_bert(folder) else sorted(graphs, key=GRAPHS.index)[:1])
    except Exception as problem:  # of many kinds: no network, no such name, no access
        message = str(problem).strip().splitlines() or [type(problem).__name__]
        raise EnvironmentProblem(
            f"Could not fetch the encoder {name} from the Hugging Face hub: {message[0]} "
            "Check the name and the network, or give a folder."
        ) from problem
    return folder


def _hub_cache() -> Path:
    """The folder of the hub's cache, by the environment variables of huggingface_hub."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(home).expanduser() / "hub"
