"""Many query heads, few key and value heads (分组查询注意力): a smaller cache."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.models.attention import DotProductAttention, MultiHeadAttention
from course_utils.models.modern.rotary import rotate


class GroupedDotProduct(DotProductAttention):
    """Scaled dot products in which several query heads share one key head, with positions.

    Args:
        dropout: share of the weights that is dropped in training.
        rotary: layout of rotary positions ("interleaved" or "halves"), or None.
        bias: from (Tq, Tk) to what is added to the scores, (1, h, Tq, Tk); see `biases.py`.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        rotary: str | None = None,
        bias: Callable[[int, int], Tensor] | None = None,
    ):
        super().__init__(dropout)
        self.rotary, self.bias = rotary, bias

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        scores = super().score(queries, keys)  # (B, h, Tq, Tk)
        if self.bias is None:
            return scores
        return scores + self.bias(queries.shape[2], keys.shape[2]).to(scores)

    def attend(self, queries, keys, values, mask=None, return_weights=True):
        """Queries (B, h, Tq, d), keys and values (B, h_kv, Tk, d); head i reads i // (h / h_kv).

        Keys come turned already, so that a cache holds them so; the last query stands at the
        last key.
        """
        num_queries, num_keys = queries.shape[2], keys.shape[2]
        if self.rotary:
            here = torch.arange(num_keys - num_queries, num_keys)
            queries = rotate(queries, here, layout=self.rotary)
        group = queries.shape[1] // keys.shape[1]
        if group > 1:
            keys, values = (x.repeat_interleave(group, dim=1) for x in (keys, values))
        explicit = return_weights or self.bias is not None
        output, weights = super().attend(queries, keys, values, mask, explicit)
        return output, weights if return_weights else None


class GroupedQueryAttention(MultiHeadAttention):
    """Multi-head attention with h query heads and h_kv heads of keys and values.

    h_kv = h is `MultiHeadAttention`, h_kv = 1 multi-query attention (Shazeer 2019), what lies
    between grouped-query attention (Ainslie et al. 2023). A cache shrinks by h / h_kv, and so do
    W_k and W_v. It is called like `MultiHeadAttention`. Positions, where it has any, suit
    self-attention: keys count from 0, and the last query stands at the last key.

    Args:
        d_model, num_heads, dropout, bias: as in `MultiHeadAttention`.
        num_kv_heads: h_kv, must divide num_heads; None: as many.
        rotary: layout of rotary positions, or None.
        score_bias: added to the scores, such as a `RelativeBias`, or None.

    Raises:
        ValueError: the numbers of heads do not divide d_model, or one another.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        dropout: float = 0.0,
        bias: bool = False,
        rotary: str | None = None,
        score_bias: Callable[[int, int], Tensor] | None = None,
    ):
        super().__init__(d_model, num_heads, dropout, bias)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if self.num_kv_heads < 1 or num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads = {num_heads} query heads cannot share num_kv_heads = {num_kv_heads} "
                "key heads in groups of one size: choose num_kv_heads so that it divides num_heads"
            )
        size = self.num_kv_heads * (d_model // num_heads)
        self.W_k = nn.Linear(d_model, size, bias=bias)
        self.W_v = nn.Linear(d_model, size, bias=bias)
        self.attention = GroupedDotProduct(dropout, rotary, score_bias)

    def project(self, keys: Tensor, values: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """Keys and values (B, T, d_model) -> (B, h_kv, T, d_model / h) each, to be cached.

        The first one stands at position `start`, which is the length of the cache so far.
        """
        keys, values = (
            x.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
            for x in (self.W_k(keys), self.W_v(values))
        )
        if self.attention.rotary:
            here = torch.arange(start, start + keys.shape[2])
            keys = rotate(keys, here, layout=self.attention.rotary)
        return keys, values


def copy_key_heads(many: MultiHeadAttention, grouped: GroupedQueryAttention) -> None:
    """Give `many` the weights of `grouped`, each key and value head once for every query head.

    Both then compute the same function: grouped queries are many heads with tied weights.
    """
    times = grouped.num_heads // grouped.num_kv_heads
    with torch.no_grad():
        for name, parameter in many.named_parameters():
            theirs = grouped.get_parameter(name)
            if name.startswith(("W_k", "W_v")):
                heads = theirs.unflatten(0, (grouped.num_kv_heads, -1))
                theirs = heads.repeat_interleave(times, dim=0).flatten(0, 1)
            parameter.copy_(theirs)
