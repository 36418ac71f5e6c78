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
