"""Exact attention in tiles: softmax in one pass, and nothing of size Tq x Tk is ever kept.

Source: Milakov and Gimelshein 2018 for the softmax; Dao et al. 2022, FlashAttention, for the tiles
and for the backward pass; Dao 2023, FlashAttention-2, for the one saved log-sum-exp a query. Shapes
as everywhere: queries (B, h, Tq, d), keys (B, h, Tk, d), values (B, h, Tk, v).
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from course_utils.models.masks import build_mask, hide_unseen, zero_fully_masked


def online_softmax(scores: Tensor) -> Tensor:
    """Softmax of the last axis whose maximum and sum are found in one pass: (..., n) -> (..., n).

    When a larger score turns up, the sum so far is scaled down to the new maximum.
    """
    top = torch.full_like(scores[..., 0], -math.inf)  # (...)
    total = torch.zeros_like(top)
    for score in scores.unbind(-1):
        higher = torch.maximum(top, score)
        total = total * torch.exp(top - higher) + torch.exp(score - higher)
        top = higher
    return torch.exp(scores - top[..., None]) / total[..., None]


def tile_forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, tile: int):
    """Output (B, h, Tq, v) and log-sum-exp (B, h, Tq, 1), `tile` keys at a time.

    The mask is (B, h, Tq, Tk) or broadcasts to it. A query without keys gets 0 and +inf, so that
    exp(score - inf) = 0 in the backward pass.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    outputs, sums = [], []
    for rows in range(0, q.shape[2], tile):
        query = q[:, :, rows : rows + tile] * scale  # (B, h, r, d)
        top = query.new_full((*query.shape[:3], 1), -math.inf)  # (B, h, r, 1)
        total, output = torch.zeros_like(top), query.new_zeros(*query.shape[:3], v.shape[-1])
        for columns in range(0, k.shape[2], tile):
            part = slice(columns, columns + tile)
            scores = query @ k[:, :, part].mT  # (B, h, r, c)
            scores = scores.masked_fill(~mask[..., rows : rows + tile, part], -math.inf)
            higher = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
            safe = higher.masked_fill(higher == -math.inf, 0.0)  # nothing seen yet: -inf - 0
            shrink, weights = torch.exp(top - safe), torch.exp(scores - safe)
            total = total * shrink + weights.sum(dim=-1, keepdim=True)
            output = output * shrink + weights @ v[:, :, part]  # (B, h, r, v)
            top = higher
        blind = total == 0
        outputs.append(output / total.masked_fill(blind, 1.0))
        sums.append((top + total.log()).masked_fill(blind, math.inf))
    return torch.cat(outputs, dim=2), torch.cat(sums, dim=2)


def tile_backward(q, k, v, mask, output, log_sum, grad, tile: int):
    """The gradients of q, k and v from `grad` (B, h, Tq, v); weights are computed anew.

    exp(score - log_sum) is the weight itself, without a second softmax. The softmax's gradient
    needs, for each query, sum_j weight_j * dweight_j = grad . output, which no tile has to see.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
    mean = (grad * output).sum(dim=-1, keepdim=True)  # (B, h, Tq, 1)
    for rows in range(0, q.shape[2], tile):
        row = slice(rows, rows + tile)
        query, g = q[:, :, row] * scale, grad[:, :, row]
        for columns in range(0, k.shape[2], tile):
            part = slice(columns, columns + tile)
            scores = (query @ k[:, :, part].mT).masked_fill(~mask[..., row, part], -math.inf)
            weights = torch.exp(scores - log_sum[:, :, row])  # (B, h, r, c)
            d_v[:, :, part] += weights.mT @ g
            d_scores = weights * (g @ v[:, :, part].mT - mean[:, :, row])
            d_q[:, :, row] += d_scores @ k[:, :, part] * scale
            d_k[:, :, part] += d_scores.mT @ query
    return d_q, d_k, d_v


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, tile):
        output, log_sum = tile_forward(q, k, v, mask, tile)
        ctx.save_for_backward(q, k, v, mask, output, log_sum)
        ctx.tile = tile
        return output

    @staticmethod
    @once_differentiable  # a second derivative is refused, not silently left out
    def backward(ctx, grad):
        return *tile_backward(*ctx.saved_tensors, grad, ctx.tile), None, None


def tiled_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, tile: int = 64
) -> Tensor:
    """Exact attention, forward and backward in tiles of `tile` queries and keys.

    Kept for the backward pass are the inputs, the output, and one number a query: memory grows
    with Tq + Tk where the plain one grows with Tq * Tk (masks are booleans that come from outside).

    Args:
        queries, keys, values: (B, h, Tq, d), (B, h, Tk, d), (B, h, Tk, v).
        mask: boolean, True = may look, broadcastable to (B, h, Tq, Tk).
        tile: 1 or more; the last tile may be shorter.

    Returns:
        (B, h, Tq, v); zero for a query that may look at no key.

    Raises:
        TypeError, ValueError: the mask does not fit, or `tile` is below 1.
    """
    if tile < 1:
        raise ValueError(f"tile must be at least 1, got {tile}")
    sizes = (*queries.shape[:3], keys.shape[2])
    mask = build_mask(mask, None, sizes)
    queries = zero_fully_masked(queries, mask)
    keys, values = hide_unseen(keys, mask), hide_unseen(values, mask)
    seen = torch.ones(1, dtype=torch.bool, device=queries.device) if mask is None else mask
    return _Tiled.apply(queries, keys, values, seen.expand(*seen.shape[:-2], *sizes[2:]), tile)
