"""Attention: masked softmax, two scoring functions, and multi-head attention.

Shapes: B sentences, h heads, Tq queries, Tk keys. Every layer is called as
`layer(queries, keys, values, mask=None, *, valid_lens=None, return_weights=False)`; the mask is
boolean with True = may look (see `masks.py`), and the weights come back per head as
(B, h, Tq, Tk). A query with no key to look at gets weights and an output of zero. What stands at
positions that no query may look at never reaches an output. Infinity or NaN where some query may
look reaches every query of the sentence: 0 * NaN is NaN, and to look for it would cost each call.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.masks import (
    build_mask,
    hide_unseen,
    mask_for_scores,
    zero_fully_masked,
)


def masked_softmax(
    scores: Tensor, valid_lens: Tensor | None = None, *, mask: Tensor | None = None
) -> Tensor:
    """Softmax over the keys (the last axis) that a query may look at.

    Hidden keys get a weight of exactly 0, and so does every key of a query that may look at none.
    The scores are not changed.

    Args:
        scores: (B, ..., Tq, Tk), any floating dtype.
        valid_lens: (B,) or (B, Tq) numbers of visible keys.
        mask: boolean, True = may look, broadcastable to the shape of `scores`.

    Raises:
        TypeError, ValueError: scores, lengths or mask do not fit, or the mask could be read in two
            ways; the message says how to mend it.
    """
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating-point, got {scores.dtype}: use .float()")
    mask = mask_for_scores(scores, mask, valid_lens)
    if mask is None:
        return F.softmax(scores, dim=-1)
    fully_masked = ~mask.any(dim=-1, keepdim=True)  # (..., Tq, 1): no key to look at
    scores = scores.masked_fill(~mask, -math.inf)
    scores = scores.masked_fill(fully_masked, 0.0)  # softmax of -inf alone is NaN
    return F.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


class _Attention(nn.Module):
    """What the scoring functions share: masks in, weighted sum of the values out."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, h, Tq, q), (B, h, Tk, k) -> scores (B, h, Tq, Tk)."""
        raise NotImplementedError

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        return_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Tensors (B, h, T, .) and a mask of four axes -> output (B, h, Tq, v) and the weights.

        The weights are `None` when they are not asked for and a fused kernel does the work.
        """
        weights = masked_softmax(self.score(queries, keys), mask=mask)  # (B, h, Tq, Tk)
        return self.dropout(weights) @ values, weights  # (B, h, Tq, v)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        return_weights: bool = False,
    ):
        """Attend from every query to the keys it may look at.

        Args:
            queries, keys, values: (B, Tq, q), (B, Tk, k), (B, Tk, v), or with heads
                (B, h, Tq, q), (B, h, Tk, k), (B, h, Tk, v).
            mask, valid_lens: see the top of this module.
            return_weights: also return the weights, before dropout, as (B, h, Tq, Tk), with
                h = 1 for inputs without heads.

        Returns:
            (B, Tq, v) or (B, h, Tq, v), and the weights when asked for.
        """
        _check_inputs(queries, keys, values)
        without_heads = queries.dim() == 3
        if without_heads:
            queries, keys, values = (x.unsqueeze(1) for x in (queries, keys, values))
        mask = build_mask(mask, valid_lens, (*queries.shape[:3], keys.shape[2]))
        queries = zero_fully_masked(queries, mask)  # for the sake of gradients
        keys, values = hide_unseen(keys, mask), hide_unseen(values, mask)
        output, weights = self.attend(queries, keys, values, mask, return_weights)
        output = output.squeeze(1) if without_heads else output
        return (output, weights) if return_weights else output


def _check_inputs(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    shapes = (
        f"queries {tuple(queries.shape)}, keys {tuple(keys.shape)}, values {tuple(values.shape)}"
    )
    if not queries.dim() == keys.dim() == values.dim() or queries.dim() not in (3, 4):
        raise ValueError(
            f"queries, keys and values must all be (B, T, d) or (B, h, T, d): {shapes}"
        )
    if not queries.shape[:-2] == keys.shape[:-2] == values.shape[:-2]:
        raise ValueError(f"queries, keys and values must have the same B (and h): {shapes}")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"every key needs one value: {shapes}")


class AdditiveAttention(_Attention):
    """a(q, k) = w_v^T tanh(W_q q + W_k k): queries and keys may differ in size.

    Source: Bahdanau et al. 2015, appendix A.1.2.

    Args:
        key_size, query_size: sizes of one key and one query.
        num_hiddens: size of the space in which they are added.
        dropout: share of the weights that is dropped in training.
    """

    def __init__(self, key_size: int, query_size: int, num_hiddens: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.key_size, self.query_size = key_size, query_size
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        sizes, wanted = (queries.shape[-1], keys.shape[-1]), (self.query_size, self.key_size)
        if sizes != wanted:
            raise ValueError(
                f"queries and keys must be of size query_size = {wanted[0]} and key_size = "
                f"{wanted[1]}, got {sizes[0]} and {sizes[1]}"
            )
        queries, keys = self.W_q(queries), self.W_k(keys)  # (B, h, Tq, n), (B, h, Tk, n)
        features = queries.unsqueeze(-2) + keys.unsqueeze(-3)  # (B, h, Tq, Tk, n)
        return self.w_v(torch.tanh(features)).squeeze(-1)  # (B, h, Tq, Tk)


class DotProductAttention(_Attention):
    """a(q, k) = q^T k / sqrt(d): no parameters, one matrix product.

    Source: Vaswani et al. 2017, section 3.2.1. Without `return_weights` torch's fused kernel runs
    and nothing of size Tq x Tk is kept.
    """

    def score(self, queries: Tensor, keys: Tensor) -> Tensor:
        d = queries.shape[-1]
        if keys.shape[-1] != d:
            raise ValueError(
                f"a dot product needs queries and keys of one size, got {d} and "
                f"{keys.shape[-1]}: project them first, or use AdditiveAttention"
            )
        return queries @ keys.transpose(-2, -1) / math.sqrt(d)  # (B, h, Tq, Tk)

    def attend(self, queries, keys, values, mask=None, return_weights=True):
        scores_exist = keys.shape[-1] == queries.shape[-1] and queries.numel() and keys.numel()
        if return_weights or not scores_exist:
            return super().attend(queries, keys, values, mask, return_weights)
        dropout = self.dropout.p if self.training else 0.0  # the kernel does not look at the mode
        if mask is None:
            kernel = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout)
            return kernel, None
        fully_masked = ~mask.any(dim=-1, keepdim=True)  # (B, h, Tq, 1): no key to look at
        output = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask | fully_masked, dropout_p=dropout
        )
        return output.masked_fill(fully_masked, 0.0), None


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own subspace.

    Source: Vaswani et al. 2017, section 3.2.2. One large projection serves all heads; its output
    is split into h pieces of size d_model / h.

    Args:
        d_model: size of queries, keys, values and output.
        num_heads: h; must divide d_model.
        dropout: share of the weights that is dropped in training.
        bias: whether the four projections have a bias.

    Raises:
        ValueError: d_model is not a multiple of num_heads.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = False):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(
                f"d_model = {d_model} cannot be split into num_heads = {num_heads} heads of one "
                "size: choose num_heads so that it divides d_model"
            )
        self.d_model, self.num_heads, self.bias = d_model, num_heads, bias
        self.attention = DotProductAttention(dropout)
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, h, T, d_model / h)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """(B, h, T, d_model / h) -> (B, T, d_model), the reverse of `split_heads`."""
        return x.transpose(1, 2).flatten(2)

    def project(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, Tk, d_model) -> per head (B, h, Tk, d_model / h), to be cached."""
        return self.split_heads(self.W_k(keys)), self.split_heads(self.W_v(values))

    def attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from (B, Tq, d_model) queries to keys and values that `project` made.

        Args:
            mask: of four axes, as `build_mask` makes it.

        Returns:
            (B, Tq, d_model), and the weights (B, h, Tq, Tk), or None when not asked for.
        """
        queries = self.split_heads(self.W_q(queries))  # (B, h, Tq, d_model / h)
        if not keys.shape[2]:  # no key to look at, whatever the mask says
            mask = torch.zeros(1, 1, 1, 0, dtype=torch.bool, device=keys.device)
        heads, weights = self.attention.attend(queries, keys, values, mask, return_weights)
        output = self.W_o(self.merge_heads(heads))
        return self.zero_fully_masked(output, mask) if self.bias else output, weights

    def zero_fully_masked(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Zero what belongs to queries that may look at no key, in x (B, Tq, d_model)."""
        return zero_fully_masked(x.unsqueeze(1), mask).squeeze(1)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        valid_lens: Tensor | None = None,
        return_weights: bool = False,
    ):
        """Attend in every head, join the heads, and mix them.

        Args:
            queries, keys, values: (B, Tq, d_model), (B, Tk, d_model), (B, Tk, d_model).
            mask, valid_lens, return_weights: see the top of this module.

        Returns:
            (B, Tq, d_model), and the weights (B, h, Tq, Tk) when asked for.
        """
        self._check(queries, keys, values)
        sizes = (queries.shape[0], self.num_heads, queries.shape[1], keys.shape[1])
        mask = build_mask(mask, valid_lens, sizes)
        # hidden before they are projected, so that W_k and W_v get no gradient from them either
        queries = self.zero_fully_masked(queries, mask)
        keys = hide_unseen(keys.unsqueeze(1), mask).squeeze(1)
        values = hide_unseen(values.unsqueeze(1), mask).squeeze(1)
        output, weights = self.attend(queries, *self.project(keys, values), mask, return_weights)
        return (output, weights) if return_weights else output

    def _check(self, queries: Tensor, keys: Tensor, values: Tensor) -> None:
        for name, x in (("queries", queries), ("keys", keys), ("values", values)):
            if x.dim() != 3 or x.shape[-1] != self.d_model:
                raise ValueError(
                    f"{name} must be (B, T, d_model) with d_model = {self.d_model}, "
                    f"got {tuple(x.shape)}"
                )
        _check_inputs(queries, keys, values)
