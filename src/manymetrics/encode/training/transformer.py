"""The forward pass of a BERT in torch, with low-rank factors that are trained. Needs torch.

The tokens of a batch are packed: linear layers see no padding. With the first token pooled, the last layer is computed
for that token alone. What the fixed lower layers give of a text can be cached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manymetrics.encode.runtime.bert import CLS, POSITIONS, SEGMENTS, WORDS, LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.values import Floats

SCALE = 2.0  # of the low-rank product, as in LoRA: alpha / rank


@dataclass(frozen=True, eq=False)
class PackedTokens:
    """The tokens of some texts, one after the other."""

    ids: Tensor  # (tokens,)
    positions: Tensor  # (tokens,): of each token in its text
    padded: Tensor  # (tokens,): the index of each token in a padded batch (texts * longest)
    first: Tensor  # (texts,): the index of the first token of each text
    mask: Tensor  # (texts, longest): True where there is a token

    @classmethod
    def of(cls, token_ids: Sequence[Sequence[int]]) -> "PackedTokens":
        """Pack the token ids of some texts."""
        lengths = torch.tensor([len(ids) for ids in token_ids])
        longest, ends = int(lengths.max()), lengths.cumsum(0)
        positions = torch.cat([torch.arange(int(length)) for length in lengths])
        texts = torch.repeat_interleave(torch.arange(len(token_ids)), lengths)
        flat = torch.tensor([token for ids in token_ids for token in ids])
        mask = torch.arange(longest)[None] < lengths[:, None]
        return cls(flat, positions, texts * longest + positions, ends - lengths, mask)

    def pad(self, rows: Tensor) -> Tensor:
        """Rows of the tokens (tokens, width) -> (texts, longest, width)."""
        padded = torch.zeros(self.mask.numel(), rows.shape[1]).index_copy(0, self.padded, rows)
        return padded.view(*self.mask.shape, -1)


class LowRankTransformer:
    """The weights of a sentence encoder, fixed, and factors A (in, rank) and B (rank, out) beside its matrices."""

    def __init__(self, encoder: SentenceEncoder, *, n_frozen: int, rank: int, start: LowRankFactors | None, seed: int,
                 cache: bool = False) -> None:  # fmt: skip
        """The lowest `n_frozen` layers have no factors, apart from those of `start`, which are fixed there.

        With `cache`, their output is stored for every text: for training on the same texts again and again.
        """
        self.encoder, self.bert, self.n_frozen = encoder, encoder.bert, n_frozen
        self.lower_cache: dict[tuple[int, ...], Tensor] | None = {} if cache else None  # (tokens, width) by token ids
        self.weights: dict[str, Tensor] = {}
        self.put(self.bert.weights())
        self.factors = {name: _as_tensors(pair) for name, pair in (start.pairs if start else {}).items()}
        generator = torch.Generator().manual_seed(seed)
        for name, (n_out, n_in) in self.bert.matrix_shapes().items():
            if name not in self.factors and _layer_number(name) >= n_frozen:
                bound = n_in**-0.5
                a = torch.empty(n_in, rank).uniform_(-bound, bound, generator=generator)
                self.factors[name] = (a, torch.zeros(rank, n_out))

    def put(self, weights: Mapping[str, Floats]) -> None:
        """Use these weights in place of those of the same names."""
        self.weights |= {name: torch.from_numpy(np.array(values, np.float32)) for name, values in weights.items()}

    def parameters(self) -> list[Tensor]:
        """The factors of the layers that are trained, with gradients."""
        pairs = [pair for name, pair in self.factors.items() if _layer_number(name) >= self.n_frozen]
        return [factor.requires_grad_() for pair in pairs for factor in pair]

    def low_rank_factors(self) -> LowRankFactors:
        """The factors as the runtime takes them."""
        return LowRankFactors(
            {name: (a.detach().numpy(), SCALE * b.detach().numpy()) for name, (a, b) in self.factors.items()}
        )

    def embed(self, texts: Sequence[str], *, max_tokens: int, dropout: float = 0.0, unit: bool = True) -> Tensor:
        """One embedding for each text: (texts, width), of length one or (`unit=False`) as the runtime gives it.

        The last token, which marks the end, is read.
        """
        token_ids = self.encoder.tokenize(texts)
        token_ids = [ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]] for ids in token_ids]
        tokens = PackedTokens.of(token_ids)
        hidden = self._lower_layers(tokens) if self.lower_cache is None else self._cached_lower_layers(token_ids)
        for layer in range(self.n_frozen, self.bert.n_layers):
            hidden = self._layer(hidden, tokens, layer, dropout)
        if self.encoder.pooling != CLS:
            hidden = tokens.pad(hidden).sum(dim=1) / tokens.mask.sum(dim=1, keepdim=True)
        return functional.normalize(hidden, dim=1) if unit else hidden

    @torch.no_grad()
    def _lower_layers(self, tokens: PackedTokens) -> Tensor:
        """The output of the layers that are fixed: (tokens, width)."""
        words, positions, segments = (self.weights[name] for name in (WORDS, POSITIONS, SEGMENTS))
        hidden = words[tokens.ids] + positions[tokens.positions] + segments[0]
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        for layer in range(self.n_frozen):
            hidden = self._layer(hidden, tokens, layer, 0.0)
        return hidden

    def _cached_lower_layers(self, token_ids: Sequence[Sequence[int]]) -> Tensor:
        cache = {} if self.lower_cache is None else self.lower_cache
        missing = [ids for ids in dict.fromkeys(map(tuple, token_ids)) if ids not in cache]
        if missing:
            hidden = self._lower_layers(PackedTokens.of(missing))
            cache.update(zip(missing, hidden.split([len(ids) for ids in missing]), strict=True))  # type: ignore[no-untyped-call]
        return torch.cat([cache[tuple(ids)] for ids in token_ids])

    def _layer(self, hidden: Tensor, tokens: PackedTokens, number: int, dropout: float) -> Tensor:
        name, first_only = f"encoder.layer.{number}", number == self.bert.n_layers - 1 and self.encoder.pooling == CLS
        key, value = (tokens.pad(self._linear(hidden, f"{name}.attention.self.{part}")) for part in ("key", "value"))
        hidden = hidden[tokens.first] if first_only else hidden
        query = self._linear(hidden, f"{name}.attention.self.query")
        query = query[:, None] if first_only else tokens.pad(query)
        query, key, value = map(self._heads, (query, key, value))
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=tokens.mask[:, None, None, :], dropout_p=dropout
        )
        attended = attended.transpose(1, 2).reshape(-1, hidden.shape[1])
        attended = attended if first_only else attended[tokens.padded]
        attended = self._linear(attended, f"{name}.attention.output.dense")
        hidden = self._norm(hidden + functional.dropout(attended, dropout), f"{name}.attention.output.LayerNorm")
        wide = functional.gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        output = functional.dropout(self._linear(wide, f"{name}.output.dense"), dropout)
        return self._norm(hidden + output, f"{name}.output.LayerNorm")

    def _heads(self, rows: Tensor) -> Tensor:
        """Rows (texts, longest, width) -> (texts, heads, longest, width of a head)."""
        return rows.view(*rows.shape[:2], self.bert.n_heads, -1).transpose(1, 2)

    def _linear(self, rows: Tensor, name: str) -> Tensor:
        output = functional.linear(rows, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])
        if name not in self.factors:
            return output
        a, b = self.factors[name]
        return output + SCALE * (rows @ a) @ b

    def _norm(self, rows: Tensor, name: str) -> Tensor:
        weight, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return functional.layer_norm(rows, (rows.shape[-1],), weight, bias, self.bert.eps)


def _as_tensors(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, Tensor]:
    a, b = (torch.from_numpy(factor.astype(np.float32)) for factor in pair)
    return a, b / SCALE


def _layer_number(name: str) -> int:
    """The number of the layer that a matrix, such as encoder.layer.3.output.dense, belongs to."""
    return int(name.split(".")[2])
