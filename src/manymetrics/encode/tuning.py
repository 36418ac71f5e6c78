"""A sentence encoder's own weights, moved by episodes of the bank's tasks. Needs torch.

The loss is that of prototypical networks (eqn:base_protonet), as for projections, with gradients through the upper
layers of the transformer; the lower ones and the embeddings stay as they are. One thread, so that the bits do not
depend on the machine's cores.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from manymetrics.encode.encoder import unit_rows
from manymetrics.encode.graph_weights import bert_weights
from manymetrics.encode.graphs import bert_graph
from manymetrics.encode.projection import TaskTexts, draw_places
from manymetrics.encode.sentence import CLS, SentenceEncoder
from manymetrics.encode.settings import TuningSettings
from manymetrics.errors import InputError, MissingExtra
from manymetrics.values import Floats, Texts

try:
    import torch
    from torch import Tensor
    from torch.nn import functional

    from manymetrics.encode.fitting import one_thread
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Tuning an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing

TINY = 1e-12  # of layer norms, as in every BERT
HEADS = (12, 16, 8, 6, 4, 2, 1)
ALIKE = 0.95  # cosine of a row with the graph's own, above which the weights were read rightly
PROBE = ("a text to begin with", "where is my parcel?", "these are three of them")
START_TEMPERATURE = 20.0
FIRST_SHARE = 0.2  # of the steps, in which the rate rises
STEEPEST = 1.0  # slopes are shortened to this length
WEIGHT_DECAY = 0.01
Weights = Mapping[str, Floats]


class Transformer:
    """The weights of a sentence encoder as tensors, and what they make of texts."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder
        self.tensors: dict[str, Tensor] = {}
        self.put(bert_weights(encoder.graph.tobytes()))
        self.layers = sum(name.endswith(".intermediate.dense.weight") for name in self.tensors)
        self.fixed = 0  # layers at the bottom that have no gradient
        self.heads = self._find_heads()

    def put(self, weights: Weights) -> None:
        """Take these weights in place of those of the same names."""
        self.tensors |= {name: torch.tensor(np.array(one, dtype=np.float32)) for name, one in weights.items()}

    def _find_heads(self) -> int:
        """How many heads attention has is not among the weights: as many as give the rows that the graph gives."""
        own = unit_rows(self.encoder.encode(Texts(PROBE)))
        alike = {}
        for heads in HEADS:
            if own.shape[1] % heads == 0:
                self.heads = heads
                with torch.no_grad():
                    alike[heads] = float((self.rows(PROBE).numpy() * own).sum(axis=1).min())
        best = max(alike, key=lambda heads: alike[heads])
        if alike[best] < ALIKE:
            raise InputError(f"The weights of {self.encoder.name!r} do not give its rows, so it cannot be tuned.")
        return best

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.encoder.tokenizer)
        tokenizer.no_padding()
        return tokenizer

    def rows(self, texts: Sequence[str], *, longest: int = 128, dropout: float = 0.0) -> Tensor:
        """One row of length one for each text: (texts, width)."""
        self._tokenizer.enable_truncation(min(longest, self.encoder.longest))
        cut = [one.ids for one in self._tokenizer.encode_batch(list(texts))]
        ids = torch.zeros((len(cut), max(map(len, cut))), dtype=torch.long)
        there = torch.zeros(ids.shape, dtype=torch.bool)
        for place, tokens in enumerate(cut):
            ids[place, : len(tokens)] = torch.tensor(tokens)
            there[place, : len(tokens)] = True
        with torch.no_grad():
            rows = self._embed(ids)
            for layer in range(self.fixed):
                rows = self._layer(rows, there, layer, 0.0)
        for layer in range(self.fixed, self.layers):
            rows = self._layer(rows, there, layer, dropout)
        if self.encoder.pooling == CLS:
            return functional.normalize(rows[:, 0], dim=1)
        shares = there[:, :, None] / there.sum(dim=1)[:, None, None]
        return functional.normalize((rows * shares).sum(dim=1), dim=1)

    def _embed(self, ids: Tensor) -> Tensor:
        words, places, kinds = (
            self.tensors[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")
        )
        return self._norm(words[ids] + places[: ids.shape[1]] + kinds[0], "embeddings.LayerNorm")

    def _layer(self, rows: Tensor, there: Tensor, number: int, dropout: float) -> Tensor:
        at, (texts, tokens, width) = f"encoder.layer.{number}", rows.shape
        query, key, value = (
            self._linear(rows, f"{at}.attention.self.{part}").view(texts, tokens, self.heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        heard = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=there[:, None, None, :], dropout_p=dropout
        )
        heard = self._linear(heard.transpose(1, 2).reshape(texts, tokens, width), f"{at}.attention.output.dense")
        rows = self._norm(rows + functional.dropout(heard, dropout), f"{at}.attention.output.LayerNorm")
        wide = functional.gelu(self._linear(rows, f"{at}.intermediate.dense"))
        more = functional.dropout(self._linear(wide, f"{at}.output.dense"), dropout)
        return self._norm(rows + more, f"{at}.output.LayerNorm")

    def _linear(self, rows: Tensor, name: str) -> Tensor:
        return functional.linear(rows, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def _norm(self, rows: Tensor, name: str) -> Tensor:
        weight, bias = (self.tensors[f"{name}.{part}"] for part in ("weight", "bias"))
        return functional.layer_norm(rows, (rows.shape[-1],), weight, bias, TINY)

    def let_move(self, fixed: float) -> dict[str, Tensor]:
        """The tensors of all layers but a share at the bottom, ready to be learned."""
        self.fixed = int(fixed * self.layers)
        moving = tuple(f"encoder.layer.{layer}." for layer in range(self.fixed, self.layers))
        return {name: one.requires_grad_() for name, one in self.tensors.items() if name.startswith(moving)}


def tune(encoder: SentenceEncoder, tasks: Sequence[TaskTexts], settings: TuningSettings, *, share: float,
         rng: np.random.Generator, moved: Weights | None = None) -> dict[str, Floats]:  # fmt: skip
    """The weights of the moving layers after some episodes, from `moved` on, at a `share` of the learning rate."""
    with one_thread(), torch.random.fork_rng():
        torch.manual_seed(int(rng.integers(2**62)))
        transformer = Transformer(encoder)
        transformer.put(moved or {})
        return _take_steps(transformer, tasks, settings, share * settings.learning_rate, rng)


def _take_steps(transformer: Transformer, tasks: Sequence[TaskTexts], settings: TuningSettings, rate: float,
                rng: np.random.Generator) -> dict[str, Floats]:  # fmt: skip
    moving = transformer.let_move(settings.fixed)
    log_temperature = torch.tensor(np.log(START_TEMPERATURE), dtype=torch.float32, requires_grad=True)
    adam = torch.optim.AdamW(
        [
            {"params": list(moving.values()), "lr": rate, "weight_decay": WEIGHT_DECAY},
            {"params": [log_temperature], "lr": 100 * rate, "weight_decay": 0.0},
        ]
    )
    rising = max(1, round(FIRST_SHARE * settings.steps))
    pace = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, (step + 1) / rising))
    usable = [task for task in tasks if len(task.groups) > 1]
    for _ in range(settings.steps if usable else 0):
        loss = _episode_loss(transformer, usable[int(rng.integers(len(usable)))], settings, log_temperature, rng)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(list(moving.values()), STEEPEST)
        adam.step()
        pace.step()
    return {name: one.detach().numpy() for name, one in moving.items()}


def _episode_loss(transformer: Transformer, task: TaskTexts, settings: TuningSettings, log_temperature: Tensor,
                  rng: np.random.Generator) -> Tensor:  # fmt: skip
    """How unlikely the right answers of one episode are; in half of the episodes names are among the examples."""
    episode = settings.episode
    shots = int(rng.integers(1, episode.shots + 1))
    drawn = draw_places(task.groups, episode.ways, shots, episode.queries, rng)
    named = rng.random() < settings.named
    names = [task.names[place] for place in drawn.chosen] if named else []
    texts = [task.texts[place] for place in (*drawn.shots, *drawn.texts)] + names
    rows = transformer.rows(texts, longest=settings.longest, dropout=episode.dropout)
    given, asked = rows[: len(drawn.shots)], rows[len(drawn.shots) : len(drawn.shots) + len(drawn.texts)]
    sums = torch.zeros(len(drawn.chosen), rows.shape[1]).index_add(0, torch.tensor(drawn.labels), given)
    prototypes = functional.normalize(sums + rows[-len(names) :] if named else sums, dim=1)
    return functional.cross_entropy(log_temperature.exp() * asked @ prototypes.T, torch.tensor(drawn.answers))


def with_weights(encoder: SentenceEncoder, moved: Weights) -> SentenceEncoder:
    """The encoder with its moved weights, in whole numbers, ready to serve without torch."""
    transformer = Transformer(encoder)
    weights = {name: one.numpy() for name, one in transformer.tensors.items()} | dict(moved)
    graph = bert_graph(weights, heads=transformer.heads, tiny=TINY, whole=True)
    return SentenceEncoder(
        f"{encoder.name}-tuned",
        np.frombuffer(graph, np.uint8),
        encoder.tokenizer,
        encoder.pooling,
        encoder.longest,
        f"{encoder.card} Tuned on the tasks of the bank that this model was learned from.".strip(),
    )
