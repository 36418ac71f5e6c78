"""BERT weights by their Hugging Face names -> an ONNX graph whose batches change no bit of an embedding.

Matrices are int8, each output at a scale of its own. Each row of activations is quantized between its own least and
largest value, so a text's embedding does not depend on the texts beside it or on padding. Every matrix NAME has two
optional inputs, NAME.A (in, rank) and NAME.B (rank, out); (x @ A) @ B is added to its output. Their default has rank 0:
the base.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values import Floats

CLS, MEAN = "cls", "mean"
POOLINGS = (CLS, MEAN)
WORDS = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
SEGMENTS = "embeddings.token_type_embeddings.weight"
SCALE = "_scale"  # end of the name of a matrix's scales
CONTRIB = "com.microsoft"  # onnxruntime's own operators
OPSET, IR_VERSION = 20, 9
MAX_INT8, MAX_BYTE = 127, 255  # weights are signed and activations unsigned bytes: the fastest kernels
EPS = 1e-12  # smallest scale of a row: a row of equal values is divided by it
INPUT_IDS, MASK = "input_ids", "attention_mask"  # of the graph
MIN_TOKENS = 2  # of a batch: a product with one row alone takes another kernel, whose bits differ
ONE, FIRST_AXIS, TOKEN_AXIS = np.float32(1), np.array([0]), np.array([1])  # inputs of nodes


@dataclass(frozen=True, eq=False)
class Bert:
    """The weights of a BERT as they are served and saved: int8 matrices with scales, the rest as floats."""

    tensors: Mapping[str, Any]  # by Hugging Face name; the scales (out,) of a matrix NAME under NAME_scale
    n_heads: int
    eps: float = 1e-12  # of layer norms

    def __post_init__(self) -> None:
        for name, shape in self._expected_shapes().items():
            tensor = self.tensors.get(name)
            if tensor is None or tensor.shape != shape:
                raise DataError(
                    f"These are not the weights of a BERT: {name} is "
                    f"{'missing' if tensor is None else f'of shape {tensor.shape}'}, expected {shape}."
                )
        if not isinstance(self.n_heads, int) or self.n_heads < 1 or self.width % self.n_heads:
            raise DataError(f"A BERT of width {self.width} cannot have {self.n_heads!r} attention heads.")

    @classmethod
    def from_weights(cls, weights: Mapping[str, Floats], *, n_heads: int, eps: float = 1e-12) -> "Bert":
        """Quantize the matrices of float weights; names of other parts of a checkpoint are ignored."""
        tensors: dict[str, Any] = {}
        for name, values in weights.items():
            if name.startswith("encoder.") and values.ndim == 2:
                floats = values.astype(np.float32)
                scales = np.maximum(np.abs(floats).max(axis=1), EPS) / np.float32(MAX_INT8)  # (out,)
                tensors[name], tensors[name + SCALE] = np.rint(floats / scales[:, None]).astype(np.int8), scales
            elif name == WORDS:
                tensors[name] = values.astype(np.float16)
            elif name.startswith(("encoder.", "embeddings.")):
                tensors[name] = values.astype(np.float32)
        return cls(tensors, n_heads, eps)

    def weights(self) -> dict[str, Floats]:
        """The weights as floats, by their Hugging Face names, matrices as (out, in)."""
        scales = {name: self.tensors[name + SCALE][:, None] for name in self.tensors if name + SCALE in self.tensors}
        return {
            name: values.astype(np.float32) * scales.get(name, np.float32(1))
            for name, values in self.tensors.items()
            if not name.endswith(SCALE)
        }

    @property
    def width(self) -> int:
        """The length of an embedding."""
        return int(self.tensors[WORDS].shape[1])

    @property
    def n_positions(self) -> int:
        """The most tokens of a text that can be read."""
        return int(self.tensors[POSITIONS].shape[0])

    @cached_property
    def n_layers(self) -> int:
        """The number of transformer layers."""
        return sum(name.endswith(".intermediate.dense.weight") for name in self.tensors)

    def matrix_shapes(self) -> dict[str, tuple[int, ...]]:
        """The matrices that may have low-rank factors, by name without .weight: (out, in); sorted, as files are not."""
        names = (name.removesuffix(f".weight{SCALE}") for name in sorted(self.tensors) if name.endswith(SCALE))
        return {name: self.tensors[f"{name}.weight"].shape for name in names}

    def graph(self, pooling: str) -> bytes:
        """The ONNX file: input_ids, attention_mask (texts, tokens) -> embeddings (texts, width)."""
        return _GraphBuilder(self).build(pooling)

    def _expected_shapes(self) -> dict[str, tuple[int, ...]]:
        tables = [self.tensors.get(name) for name in (WORDS, POSITIONS, SEGMENTS)]
        inner = self.tensors.get("encoder.layer.0.intermediate.dense.weight")
        if inner is None or any(table is None or table.ndim != 2 or not table.size for table in tables):
            raise DataError("These are not the weights of a BERT: its embeddings or its first layer are missing.")
        width, wide = self.width, inner.shape[0]
        square = ("self.query", "self.key", "self.value", "output.dense")
        sizes = {f"attention.{part}": (width, width) for part in square}
        sizes |= {"intermediate.dense": (wide, width), "output.dense": (width, wide)}
        shapes: dict[str, tuple[int, ...]]
        shapes = {name: (len(self.tensors[name]), width) for name in (POSITIONS, SEGMENTS)}
        norms = ["embeddings.LayerNorm"]
        for layer in (f"encoder.layer.{number}" for number in range(self.n_layers)):
            norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
            for name, size in sizes.items():
                vectors = dict.fromkeys((f"{layer}.{name}.weight{SCALE}", f"{layer}.{name}.bias"), size[:1])
                shapes |= {f"{layer}.{name}.weight": size, **vectors}
        return shapes | {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}


@dataclass(frozen=True, eq=False)
class LowRankFactors:
    """For some weight matrices W (out, in) the factors A (in, rank) and B (rank, out): W acts as W + (A @ B).T.

    They are rounded to half precision, in which they are saved, so that saving changes no embedding.
    """

    pairs: Mapping[str, tuple[Floats, Floats]]  # by the name of the matrix, such as encoder.layer.0.output.dense

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            half = partial(np.ascontiguousarray, dtype=np.float16)
            pairs = {name: (half(a), half(b)) for name, (a, b) in self.pairs.items()}
        object.__setattr__(self, "pairs", pairs)
        for name, (a, b) in pairs.items():
            if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
                raise DataError(f"The factors of {name} have shapes {a.shape} and {b.shape}, which do not multiply.")
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise DataError(f"The factors of {name} hold values that are not finite in half precision.")

    def tensors(self) -> dict[str, Floats]:
        """The factors by name, in half precision: NAME.A and NAME.B."""
        return {
            f"{name}.{part}": factor for name, (a, b) in self.pairs.items() for part, factor in (("A", a), ("B", b))
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats]) -> "LowRankFactors":
        """The factors that `tensors` gave."""
        names = sorted({name.removesuffix(".A") for name in tensors if name.endswith(".A")})
        if set(tensors) != {f"{name}.{part}" for name in names for part in "AB"}:
            raise DataError("Low-rank factors are incomplete: every matrix needs A and B.")
        return cls({name: (tensors[f"{name}.A"], tensors[f"{name}.B"]) for name in names})

    def inputs(self) -> dict[str, Floats]:
        """The inputs that the graph of the base takes."""
        return {name: factor.astype(np.float32) for name, factor in self.tensors().items()}

    def check_fit(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse factors of matrices (out, in) that the base does not have."""
        for name, (a, b) in self.pairs.items():
            if shapes.get(name) != (b.shape[1], a.shape[0]):
                raise DataError(
                    f"The factors of {name} are for a matrix of shape {(b.shape[1], a.shape[0])}, "
                    f"the encoder has {shapes.get(name, 'none of that name')}."
                )


class _GraphBuilder:
    """Nodes, constants and optional inputs of the graph, as they are added; each method returns a tensor's name."""

    def __init__(self, bert: Bert) -> None:
        from onnx import helper, numpy_helper

        self.bert, self.helper, self.numpy_helper = bert, helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.factors: dict[str, list[int | str]] = {}  # name of an optional input -> shape
        self.quantized: dict[str, tuple[str, str, str]] = {}  # activations -> bytes, scales, least values of their rows

    def build(self, pooling: str) -> bytes:
        hidden = self.embed()
        for number in range(self.bert.n_layers):
            last = number == self.bert.n_layers - 1
            hidden = self.layer(hidden, f"encoder.layer.{number}", first_token_only=last and pooling == CLS)
        embeddings = self.first_token(hidden) if pooling == CLS else self.mean(hidden)
        return self.serialize(embeddings)

    def embed(self) -> str:
        tensors = self.bert.tensors
        n_tokens = self.add("Shape", INPUT_IDS, start=1, end=2)
        positions = self.add("Slice", tensors[POSITIONS] + tensors[SEGMENTS][0], FIRST_AXIS, n_tokens)
        words = self.to_float(self.add("Gather", tensors[WORDS], INPUT_IDS))
        return self.layer_norm(self.add("Add", words, positions), "embeddings.LayerNorm")

    def layer(self, hidden: str, name: str, *, first_token_only: bool) -> str:
        key, value = (self.linear(hidden, f"{name}.attention.self.{part}") for part in ("key", "value"))
        if first_token_only:  # the others are not used any more
            hidden = self.add("Slice", hidden, FIRST_AXIS, np.array([MIN_TOKENS]), TOKEN_AXIS)
        query = self.linear(hidden, f"{name}.attention.self.query")
        inputs = (query, key, value, "", MASK)
        attended = self.add("MultiHeadAttention", *inputs, domain=CONTRIB, num_heads=self.bert.n_heads)
        attended = self.linear(attended, f"{name}.attention.output.dense")
        hidden = self.layer_norm(self.add("Add", hidden, attended), f"{name}.attention.output.LayerNorm")
        wide = self.add("Gelu", self.linear(hidden, f"{name}.intermediate.dense"), domain=CONTRIB)
        output = self.linear(wide, f"{name}.output.dense")
        return self.layer_norm(self.add("Add", hidden, output), f"{name}.output.LayerNorm")

    def linear(self, x: str, name: str) -> str:
        """Return x @ W.T + bias + (x @ A) @ B, the first product in bytes.

        A row of x is low + scale * bytes, so x @ W.T is scale * (bytes @ W.T) + low * (sums over the rows of W). The
        last term, the bias and the low-rank term are one product: [x @ A, low, 1] @ [B; sums; bias].
        """
        rows, scale, low_and_one = self.quantize(x)
        matrix, bias, scales = (self.bert.tensors[f"{name}.{part}"] for part in ("weight", "bias", f"weight{SCALE}"))
        sums = matrix.sum(axis=1, dtype=np.int64) * scales  # (out,)
        product = self.add("MatMulIntegerToFloat", rows, matrix.T, ONE, scales, domain=CONTRIB)
        a, b = (self.factor(f"{name}.{part}", matrix.shape, part) for part in "AB")
        left = self.add("Concat", self.add("MatMul", x, a), low_and_one, axis=-1)
        right = self.add("Concat", b, np.stack([sums, bias]).astype(np.float32), axis=0)
        return self.add("Add", self.add("Mul", product, scale), self.add("MatMul", left, right))

    def quantize(self, x: str) -> tuple[str, str, str]:
        """Each row as bytes from its least to its largest value, its scale, and [least value, 1]."""
        if x not in self.quantized:  # query, key and value share it
            low, high = (self.add(operator, x, np.array([-1]), keepdims=1) for operator in ("ReduceMin", "ReduceMax"))
            scale = self.add("Mul", self.add("Sub", high, low), np.float32(1 / MAX_BYTE))
            scale = self.add("Max", scale, np.float32(EPS))
            steps = self.add("Div", self.add("Sub", x, low), scale)
            rows = self.add("QuantizeLinear", steps, ONE, np.uint8(0))
            unit = self.numpy_helper.from_array(np.ones(1, np.float32))
            ones = self.add("ConstantOfShape", self.add("Shape", low), value=unit)
            self.quantized[x] = rows, scale, self.add("Concat", low, ones, axis=-1)
        return self.quantized[x]

    def factor(self, name: str, shape: tuple[int, int], part: str) -> str:
        """An optional input whose default has rank 0."""
        n_out, n_in = shape
        rank = f"rank of {name.removesuffix(part)}"
        self.factors[name] = [n_in, rank] if part == "A" else [rank, n_out]
        return self.constant(np.zeros((n_in, 0) if part == "A" else (0, n_out), np.float32), name)

    def layer_norm(self, x: str, name: str) -> str:
        parameters = (self.bert.tensors[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, *parameters, axis=-1, epsilon=self.bert.eps)

    def first_token(self, hidden: str) -> str:
        return self.add("Gather", hidden, np.int64(0), axis=1)

    def mean(self, hidden: str) -> str:
        """The mean over the tokens of each text; padding has the weight 0. Two equal rows: see MIN_TOKENS."""
        mask = self.to_float(MASK)
        shares = self.add("Div", mask, self.add("ReduceSum", mask, TOKEN_AXIS, keepdims=1))
        shares = self.add("Unsqueeze", shares, TOKEN_AXIS)  # (texts, 1, tokens)
        return self.first_token(self.add("MatMul", self.add("Concat", shares, shares, axis=1), hidden))

    def to_float(self, x: str) -> str:
        return self.add("Cast", x, to=1)  # TensorProto.FLOAT

    def add(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """A node; its inputs are names of tensors, or arrays."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, names, [output], domain=domain, **attributes))
        return output

    def constant(self, values: Any, name: str = "") -> str:
        name = name or f"constant_{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def serialize(self, embeddings: str) -> bytes:
        from onnx import TensorProto

        make, batch = self.helper.make_tensor_value_info, ["texts", "tokens"]
        inputs = [make(INPUT_IDS, TensorProto.INT64, batch), make(MASK, TensorProto.INT32, batch)]
        inputs += [make(name, TensorProto.FLOAT, shape) for name, shape in self.factors.items()]
        outputs = [make(embeddings, TensorProto.FLOAT, ["texts", self.bert.width])]
        graph = self.helper.make_graph(self.nodes, "bert", inputs, outputs, self.constants)
        opsets = [self.helper.make_opsetid("", OPSET), self.helper.make_opsetid(CONTRIB, 1)]
        model: bytes = self.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()
        return model
