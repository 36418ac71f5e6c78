"""A sentence encoder of a few bytes: each token's row is looked up, its square added to make it uneven."""

import json

import numpy as np

WORDS = ("where", "is", "my", "parcel", "refund", "please")
VOCABULARY = {word: place for place, word in enumerate(("[CLS]", "[UNK]", *WORDS))}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_folder(folder, *, pooling="cls", inputs=INPUTS, vocabulary=VOCABULARY, width=6):
    """The files of an encoder that knows the words of the vocabulary; needs onnx. No pooling: nothing names it."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    rows = numpy_helper.from_array(rng.standard_normal((len(vocabulary), width)).astype(np.float32), "rows")
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["found"]),
        helper.make_node("Mul", ["found", "found"], ["squares"]),
        helper.make_node("Add", ["found", "squares"], ["last_hidden_state"]),
    ]
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", width])
    graph = helper.make_graph(nodes, "tiny", given, [out], [rows])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tokenizer.json").write_text(word_tokenizer(vocabulary))
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        flags = {f"pooling_mode_{name}": name.startswith(pooling) for name in ("cls_token", "mean_tokens")}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags))
    return folder


def random_bert(n_words, width, wide, positions=64):
    """Random weights of two layers under their Hugging Face names."""
    rng = np.random.default_rng(0)
    shapes = {
        "embeddings.word_embeddings.weight": (n_words, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    linear = {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
    linear |= {"attention.output.dense": (width, width)}
    linear |= {"intermediate.dense": (wide, width), "output.dense": (width, wide)}
    layers = [f"encoder.layer.{layer}" for layer in range(2)]
    for name, shape in ((f"{layer}.{name}", shape) for layer in layers for name, shape in linear.items()):
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for part in ("embeddings", *(f"{layer}.{part}" for layer in layers for part in ("attention.output", "output"))):
        shapes |= {f"{part}.LayerNorm.{parameter}": (width,) for parameter in ("weight", "bias")}
    weights = {name: rng.standard_normal(shape).astype(np.float32) / shape[-1] ** 0.5 for name, shape in shapes.items()}
    ones = {name: np.ones_like(values) for name, values in weights.items() if name.endswith("LayerNorm.weight")}
    return weights | ones


def word_tokenizer(vocabulary):
    """The JSON of a tokenizer that knows the words of the vocabulary and puts [CLS], number 0, before them."""
    import tokenizers

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 0)])
    return words.to_str()


def piece_tokenizer(scores):
    """The JSON of a unigram tokenizer of these pieces with their scores, after those for unknown, begin and end."""
    import tokenizers

    pieces = tokenizers.Tokenizer(
        tokenizers.models.Unigram([("<unk>", -9.0), ("<s>", 0.0), ("</s>", 0.0), *scores.items()], unk_id=0)
    )
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return pieces.to_str()


def bert_encoder(vocabulary, *, width=16, heads=2, pooling="cls", **more):
    """A sentence encoder that is a BERT with random weights."""
    from manymetrics.encode import SentenceEncoder
    from manymetrics.encode.runtime.bert import Bert

    bert = Bert.from_weights(random_bert(len(vocabulary), width, 2 * width), n_heads=heads)
    return SentenceEncoder("tiny-bert", bert, word_tokenizer(vocabulary), pooling, 32, **more)


def write_bert_folder(folder, *, pooling="mean", vocabulary=VOCABULARY, tokenizer=None, width=16, prompts=None):
    """A BERT with random weights as a folder in the layout of the hub."""
    from safetensors.numpy import save_file

    (folder / "1_Pooling").mkdir(parents=True)
    weights = random_bert(len(vocabulary), width, 2 * width)
    save_file(weights, folder / "model.safetensors")
    config = {"model_type": "bert", "num_attention_heads": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer or word_tokenizer(vocabulary), encoding="utf-8")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return folder


def vocabulary_of(bank):
    """Every word of a bank's texts and labels."""
    texts = [text for task in bank for text in (*task.train.texts, *task.valid.texts, *task.label_names)]
    return {
        word: place
        for place, word in enumerate(["[CLS]", "[UNK]", *sorted({word for text in texts for word in text.split()})])
    }


def asked_of(folder, bank, **settings):
    """The options of an experiment on the tasks in `folder`/data, with an encoder that knows the bank's words."""
    write_folder(folder / "tiny", pooling="mean", vocabulary=vocabulary_of(bank), width=16)
    lines = [
        f"encoder = {json.dumps(str(folder / 'tiny'))}",
        *(f"{name} = {value}" for name, value in settings.items()),
    ]
    (folder / "recipe.toml").write_text("\n".join(lines) + "\n")
    places = {"data": folder / "data", "out": folder / "out", "recipe": folder / "recipe.toml"}
    return [*(word for name, place in places.items() for word in (f"--{name}", str(place))), "--workers", "1"]
