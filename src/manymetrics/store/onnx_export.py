"""A model's encoders -> one ONNX graph that gives the same vectors, for programs that have no Python.

    encoders.onnx     input_ids, attention_mask (texts, tokens) int64 -> a row of length one for each text and metric
    tokenizer.json    how texts become rows of the table of vectors

Each output has the name of its metric; a metric with a classifier of its own has a second one, `<name>/chances`. All
metrics share one table of vectors: where training moved words, the moved rows stand behind the others, and the metric
looks its rows up in a list of its own. Letters are hashed, which ONNX has no operator for: that metric is left out. The
graph is run once before it is written, and refused if its vectors are not those of the model.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.encode.encoders import ConvolutionEncoder, MeanEncoder, moved_words
from manymetrics.encode.tokens import LONGEST, Tokens
from manymetrics.encode.vectors import TOKENIZER_FILE
from manymetrics.errors import InputError, MissingExtra, ModelError
from manymetrics.specialize.metric import Metric, SharedLabelMetric
from manymetrics.store.files import write_folder
from manymetrics.store.models import MetricModel
from manymetrics.values import Floats, Ints

GRAPH_FILE = "encoders.onnx"
OPERATORS, FILE_VERSION = 18, 10  # of ONNX
TOLERANCE = 1e-4
LARGEST = 2**31 - 2**20  # bytes of one ONNX file
IDS, MASK = "input_ids", "attention_mask"

_PROBES = (
    "where is my parcel",
    "Please, could you turn the lights off in the kitchen at half past nine?",
    "",
    "refund",
    "ünïcode 日本 😀 !?",
    "the quick brown fox jumps over the lazy dog " * 60,
)


@dataclass(frozen=True)
class OnnxExport:
    """What was written, and how near it comes to the model."""

    folder: Path
    metrics: tuple[str, ...]  # the outputs of the graph
    left_out: tuple[str, ...]  # metrics that no graph can hold
    difference: float  # the largest, between a number of the graph and the model's own


def export_onnx(model: MetricModel, folder: str | Path) -> OnnxExport:
    """Write the encoders of a model as an ONNX graph, with the tokenizer beside it, after checking that they agree."""
    onnx, runtime = _load_onnx()
    kept = [metric for metric in model.metrics if isinstance(metric.encoder, ConvolutionEncoder | MeanEncoder)]
    left_out = tuple(metric.name for metric in model.metrics if metric not in kept)
    graph = _Graph(onnx, model.vectors.table)
    for metric in kept:
        graph.add_metric(metric)
    payload = graph.finish({"metrics": [_describe(metric) for metric in kept], "left_out": left_out, "tokens": LONGEST})
    difference = _compare(payload, runtime, model, kept)
    if not difference <= TOLERANCE:
        raise ModelError(
            f"The graph's vectors differ from the model's by {difference:.2g}, more than {TOLERANCE:.0e}. "
            "Nothing is written; upgrade onnxruntime, or use the model without ONNX."
        )
    write_folder(Path(folder), {GRAPH_FILE: payload, TOKENIZER_FILE: model.vectors.as_files()[TOKENIZER_FILE]})
    return OnnxExport(Path(folder), tuple(graph.outputs), left_out, difference)


def _load_onnx() -> tuple[Any, Any]:
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise MissingExtra(
            'Writing ONNX needs onnx and onnxruntime. Install them with: pip install "manymetrics[onnx]"'
        ) from None
    return onnx, onnxruntime


class _Graph:
    """An ONNX graph in the making: nodes, constants, outputs."""

    def __init__(self, onnx: Any, table: Floats) -> None:
        self._onnx, self._given = onnx, table
        self._tables = [table]
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._looked_up: dict[int, str] = {}  # the identity of a table -> the words of the texts in it, outside zeroed
        self.outputs: dict[str, int] = {}  # name -> how many numbers a row has
        self._constant("inside texts", np.array([2]))
        self._constant("inside rows", np.array([1]))
        ones = self._node("Cast", MASK, to=onnx.TensorProto.FLOAT)  # (texts, tokens)
        self._mask = self._node("Unsqueeze", ones, "inside texts")  # (texts, tokens, 1)
        self._counts = self._node("ReduceSum", ones, "inside rows", keepdims=1)  # (texts, 1)
        self._is_token = self._node("Unsqueeze", self._node("Cast", MASK, to=onnx.TensorProto.BOOL), "inside rows")

    def add_metric(self, metric: Metric) -> None:
        """The nodes of one encoder, and of the classifier on top if there is one."""
        encoder = metric.encoder
        words = self._words(encoder.table)  # (texts, tokens, dimensions)
        if isinstance(encoder, MeanEncoder):
            total = self._node("ReduceSum", words, "inside rows", keepdims=0)
            self._scaled(metric.name, self._node("Div", total, self._counts), encoder.table.shape[1])
            return
        responses = self._responses(metric.name, words, encoder)  # (texts, width)
        self._scaled(metric.name, responses, encoder.width)
        if isinstance(metric, SharedLabelMetric):
            weights = self._constant(f"{metric.name}/head", metric.head.weights.astype(np.float32))
            offset = self._constant(f"{metric.name}/offset", metric.head.offset.astype(np.float32))
            logits = self._node("Gemm", responses, weights, offset)
            self._output(self._node("Softmax", logits, name=f"{metric.name}/chances", axis=1), len(metric.labels))

    def finish(self, about: dict[str, Any]) -> bytes:
        """The graph as the content of a file."""
        onnx = self._onnx
        self._constant("table", _as_small_as_possible(np.concatenate(self._tables)))
        if sum(constant.nbytes for constant in self._constants.values()) > LARGEST:
            raise InputError(
                "The model's vectors are larger than 2 GB, which no ONNX file can hold. Use a smaller table."
            )
        helper, kinds = onnx.helper, onnx.TensorProto
        graph = helper.make_graph(
            self._nodes,
            "manymetrics",
            [helper.make_tensor_value_info(name, kinds.INT64, ["texts", "tokens"]) for name in (IDS, MASK)],
            [helper.make_tensor_value_info(name, kinds.FLOAT, ["texts", n]) for name, n in self.outputs.items()],
            [onnx.numpy_helper.from_array(constant, name) for name, constant in self._constants.items()],
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPERATORS)],
            ir_version=FILE_VERSION,
            producer_name="manymetrics",
        )
        helper.set_model_props(made, {"manymetrics": json.dumps(about)})
        onnx.checker.check_model(made)
        return bytes(made.SerializeToString())

    def _words(self, table: Floats) -> str:
        """The vectors of the texts' words, zeros behind each text: (texts, tokens, dimensions)."""
        if id(table) not in self._looked_up:
            rows, moved = IDS, moved_words(table, self._given)
            if len(moved):
                place = np.arange(len(self._given), dtype=np.int64)  # (vocabulary,)
                place[moved] = sum(map(len, self._tables)) + np.arange(len(moved))
                self._tables.append(table[moved])
                rows = self._node("Gather", self._constant(f"rows {len(self._tables)}", place), IDS)
            found = self._node("Cast", self._node("Gather", "table", rows), to=self._onnx.TensorProto.FLOAT)
            self._looked_up[id(table)] = self._node("Mul", found, self._mask)
        return self._looked_up[id(table)]

    def _responses(self, name: str, words: str, encoder: ConvolutionEncoder) -> str:
        """The ramp of each filter's largest response over the windows centred on a token: (texts, width)."""
        half = len(encoder.filters) // 2
        filters = np.ascontiguousarray(encoder.filters.transpose(2, 1, 0))  # (width, dimensions, window)
        turned = self._node("Transpose", words, perm=[0, 2, 1])  # (texts, dimensions, tokens)
        every = self._node("Conv", turned, self._constant(f"{name}/filters", filters), pads=[half, half])
        lowest = self._constant("lowest", np.array(np.finfo(np.float32).min))
        best = self._node("ReduceMax", self._node("Where", self._is_token, every, lowest), "inside texts", keepdims=0)
        return self._node("Relu", self._node("Add", best, self._constant(f"{name}/bias", encoder.bias)))

    def _scaled(self, name: str, rows: str, width: int) -> None:
        """An output of rows of length one; a row of zeros stays."""
        lengths = self._node("ReduceL2", rows, "inside rows", keepdims=1)  # (texts, 1)
        zero, one = (self._constant(f"{n}", np.array(n, dtype=np.float32)) for n in (0, 1))
        safe = self._node("Where", self._node("Greater", lengths, zero), lengths, one)
        self._output(self._node("Div", rows, safe, name=name), width)

    def _node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or f"{kind} {len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _constant(self, name: str, value: Any) -> str:
        self._constants[name] = value
        return name

    def _output(self, name: str, width: int) -> None:
        self.outputs[name] = width


def _as_small_as_possible(table: Floats) -> Floats:
    """The table in half precision if that loses nothing."""
    with np.errstate(over="ignore"):
        half = table.astype(np.float16)
    return half if np.array_equal(half.astype(np.float32), table) else table.astype(np.float32)


def _describe(metric: Any) -> dict[str, Any]:
    about = {"name": metric.name, "kind": metric.kind}
    if isinstance(metric, SharedLabelMetric):
        return {**about, "labels": metric.labels}
    return {**about, "rule": metric.rule, "temperature": metric.temperature}


def _padded(tokens: Tokens) -> tuple[Ints, Ints]:
    """Tokens as a rectangle, and which of its places hold one: (texts, longest) each."""
    lengths = np.diff(tokens.starts)  # (texts,)
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = tokens.ids
    return ids, mask.astype(np.int64)


def _compare(payload: bytes, runtime: Any, model: MetricModel, metrics: list[Metric]) -> float:
    """The largest difference between what the graph and the model make of a few texts."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(payload, options, providers=["CPUExecutionProvider"])
    tokens = model.vectors.read(_PROBES)
    ids, mask = _padded(tokens)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, {IDS: ids, MASK: mask}), strict=True))
    wanted: dict[str, Floats] = {}
    for metric in metrics:
        wanted[metric.name] = metric.encoder.encode(tokens)
        if isinstance(metric, SharedLabelMetric):
            wanted[f"{metric.name}/chances"] = metric.head.chances(metric.encoder.responses(tokens))
    return max((float(np.abs(found[name] - rows).max()) for name, rows in wanted.items()), default=0.0)
