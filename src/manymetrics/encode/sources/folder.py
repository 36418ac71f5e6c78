"""A folder in the layout of the Hugging Face hub -> model, tokenizer, pooling and prompt.

tokenizer.json                          always
model.safetensors, config.json          a BERT; any other transformer needs an ONNX graph instead (`GRAPHS`)
modules.json, 1_Pooling/config.json     how the rows of tokens are pooled, in one of two forms:
    {"pooling_mode": "mean"}                sentence-transformers 6
    {"pooling_mode_mean_tokens": true}      before
config_sentence_transformers.json       prompts, optional
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.encode.runtime.bert import CLS, MEAN, POOLINGS, Bert
from manymetrics.encode.runtime.session import Model, OnnxGraph
from manymetrics.errors import DataError, InputError
from manymetrics.values import Floats

TOKENIZER, WEIGHTS, CONFIG = "tokenizer.json", "model.safetensors", "config.json"
MODULES, POOLING_CONFIG, PROMPTS = "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"
GRAPHS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
IGNORED_MODULES = ("Transformer", "Pooling", "Normalize")  # change no cosine beyond what is done here
FLAGS = {"cls_token": CLS, "mean_tokens": MEAN}  # after pooling_mode_
PROMPT_NAMES = ("classification", "query")  # in this order, where the folder names no default
ACTIVATION = "gelu"
OLDER_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64}  # of tensors in a checkpoint
ADVICE = 'Set pooling="cls" or pooling="mean" (--pooling on the command line).'


def read_model(folder: Path) -> Model:
    """The weights of a BERT, or else an ONNX graph."""
    if (folder / WEIGHTS).is_file() and is_bert(folder):
        return _read_bert(folder, _read_json(folder, CONFIG))
    graph = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    if graph is None:
        raise InputError(
            f"{folder} is no sentence encoder: it needs a {TOKENIZER} and either a {WEIGHTS} with the {CONFIG} of a "
            f"BERT or one of {', '.join(GRAPHS)}; only a BERT runs from {WEIGHTS}. Any other transformer needs an ONNX "
            "graph: optimum-cli export onnx --task feature-extraction"
        )
    return OnnxGraph(np.fromfile(graph, np.uint8))


def is_bert(folder: Path) -> bool:
    """Whether config.json names a BERT."""
    config = _read_json(folder, CONFIG)
    return isinstance(config, dict) and config.get("model_type") == "bert"


def read_tokenizer(folder: Path) -> str:
    """The JSON of the tokenizer."""
    try:
        return (folder / TOKENIZER).read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{folder} is no sentence encoder: it needs a {TOKENIZER} that can be read ({problem})."
        ) from problem


def read_prompt(folder: Path) -> str:
    """What the folder puts before every text: its default prompt, or that for classification, or that for queries."""
    config = _read_json(folder, PROMPTS)
    prompts = config.get("prompts") if isinstance(config, dict) else None
    if not isinstance(prompts, dict):
        return ""
    names = (config.get("default_prompt_name"), *PROMPT_NAMES)
    return next((str(prompts[name]) for name in names if isinstance(prompts.get(name), str)), "")


def read_pooling(folder: Path) -> str:
    """The pooling that a folder names; refused where it names none, or one that is not supported."""
    _refuse_other_modules(folder)
    files = sorted(folder.glob("*_Pooling/config.json"))
    config = _read_json(folder, str(files[0].relative_to(folder))) if files else None
    config = config if isinstance(config, dict) else {}
    modes = config.get("pooling_mode")
    if modes is None:
        prefix = "pooling_mode_"
        flags = [name.removeprefix(prefix) for name, on in config.items() if on and name.startswith(prefix)]
        modes = [FLAGS.get(flag, flag) for flag in flags]
    modes = [str(mode) for mode in (modes if isinstance(modes, list) else [modes])]
    if not modes:
        raise InputError(
            f"{folder} does not say how the rows of tokens are pooled: {POOLING_CONFIG} is missing or names no "
            f"pooling. {ADVICE} The encoder's card names it."
        )
    if len(modes) > 1 or modes[0] not in POOLINGS:
        raise InputError(f"{folder} pools the rows of tokens by {', '.join(modes)}. Known are cls and mean. {ADVICE}")
    return str(modes[0])


def _read_bert(folder: Path, config: dict[str, Any]) -> Bert:
    """A BERT from its checkpoint and config.json; refused where it is a variant."""
    from safetensors import SafetensorError, deserialize

    activation, positions = config.get("hidden_act", ACTIVATION), config.get("position_embedding_type", "absolute")
    n_heads, eps = config.get("num_attention_heads", 0), config.get("layer_norm_eps", 1e-12)
    try:
        if activation != ACTIVATION or positions != "absolute":
            raise DataError(f"A BERT with the activation {activation!r} and {positions!r} positions is not supported.")
        weights: dict[str, Floats] = {}
        for name, tensor in deserialize((folder / WEIGHTS).read_bytes()):  # type: ignore[no-untyped-call]
            older = next((older for older in OLDER_NAMES if name.endswith(older)), "")
            newer = name.removesuffix(older) + OLDER_NAMES.get(older, "")
            weights[newer.removeprefix("bert.")] = _to_array(**tensor)
        return Bert.from_weights(weights, n_heads=n_heads, eps=float(eps))
    except DataError as problem:
        raise InputError(
            f"{folder / WEIGHTS} cannot be used: {problem} Give an ONNX graph of the encoder."
        ) from problem
    except (SafetensorError, OSError, ValueError) as problem:
        raise InputError(f"{folder / WEIGHTS} cannot be read: {problem}. Fetch it again.") from problem


def _to_array(dtype: str, shape: list[int], data: bytes) -> Any:
    """A tensor of a safetensors file; numpy has no bfloat16, which is the upper half of a float32."""
    if dtype == "BF16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if dtype not in DTYPES:
        raise DataError(f"Found a tensor of the type {dtype}, expected one of {', '.join((*DTYPES, 'BF16'))}.")
    return np.frombuffer(data, DTYPES[dtype]).reshape(shape)


def _refuse_other_modules(folder: Path) -> None:
    """Refuse a folder whose embeddings are changed by a module that is not applied here."""
    modules = _read_json(folder, MODULES)
    if modules is None:
        return
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InputError(f"{folder / MODULES} is not a list of modules. {ADVICE}")
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    if others := [kind for kind in kinds if kind not in IGNORED_MODULES]:
        raise InputError(
            f"{folder / MODULES} names the module {others[0]}, which is not applied here. {ADVICE} "
            "The encoder then works without that module."
        )


def _read_json(folder: Path, name: str) -> Any:
    """What a JSON file of the folder holds; None where there is no such file."""
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        advice = ADVICE if "ooling" in name or name == MODULES else "Fetch it again."
        raise InputError(f"{folder / name} cannot be read: {problem}. {advice}") from problem
