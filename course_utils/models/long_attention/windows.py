"""Local attention that computes only what it keeps: a band, and a band with summaries.

Time and memory grow with T * radius and T * (block + T / block), not with T * T.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.models.attention import masked_softmax
from course_utils.models.long_attention.input_checks import (
    check_divides,
    check_self_attention,
    keys_alone,
)


def window_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    radius: int,
    *,
    num_global: int = 0,
    causal: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Exact attention under `window_mask`, with the first `num_global` tokens as global ones.

    The queries are cut into blocks of `radius`. A block and its two neighbours hold every key
    that its window can reach. Source: Longformer (Beltagy et al. 2020).

    Args:
        queries, keys, values: (B, h, T, d), (B, h, T, d), (B, h, T, v).
        radius: how far a query sees to either side, 1 or more.
        num_global: so many first tokens look at all and are looked at by all.
        causal: hide the future.
        mask: (B, 1, 1, T), True = this key may be looked at.

    Returns:
        (B, h, T, v); zero for a query that may look at no key.

    Raises:
        ValueError: shapes, sizes or mask do not fit.
    """
    check_self_attention(queries, keys, values)
    length = queries.shape[-2]
    if radius < 1 or not 0 <= num_global <= length:
        raise ValueError(
            f"radius must be 1 or more and num_global in 0..{length}, got {radius}, {num_global}"
        )
    seen = torch.ones(1, 1, 1, length, dtype=torch.bool, device=queries.device)
    if mask is not None:
        seen = keys_alone(mask, queries, length)
        keys, values = (x.masked_fill(~seen.mT, 0.0) for x in (keys, values))

    q = _blocks(queries, radius)  # (B, h, N, r, d)
    near = _near(length, radius, num_global, causal, queries.device)  # (N, r, 3r)
    near = near & _with_neighbours(seen.mT, radius).mT  # (B or 1, h or 1, N, r, 3r)
    global_keys, global_values = (x[:, :, None, :num_global] for x in (keys, values))
    may = seen[..., None, :num_global].expand(*near.shape[:-1], num_global)
    scores = torch.cat([q @ global_keys.mT, q @ _with_neighbours(keys, radius).mT], dim=-1)
    weights = masked_softmax(scores / math.sqrt(q.shape[-1]), mask=torch.cat([may, near], dim=-1))
    to_global, to_near = weights.split([num_global, 3 * radius], dim=-1)
    output = to_global @ global_values + to_near @ _with_neighbours(values, radius)
    output = output.flatten(2, 3)[:, :, num_global:length]
    look_at_all = _look_at_all(queries[:, :, :num_global], keys, values, seen, causal)
    return torch.cat([look_at_all, output], dim=2)


def _blocks(x: Tensor, size: int) -> Tensor:
    """(B, h, T, d) -> (B, h, N, size, d), filled up with zeros."""
    return F.pad(x, (0, 0, 0, -x.shape[2] % size)).unflatten(2, (-1, size))


def _with_neighbours(x: Tensor, size: int) -> Tensor:
    """(B, h, T, d) -> (B, h, N, 3 * size, d): each block with the one before and the one after."""
    blocks = F.pad(_blocks(x, size), (0, 0, 0, 0, 1, 1))  # (B, h, N + 2, size, d)
    return torch.cat([blocks[:, :, :-2], blocks[:, :, 1:-1], blocks[:, :, 2:]], dim=3)


def _near(length: int, radius: int, num_global: int, causal: bool, device) -> Tensor:
    """(N, r, 3r): which keys of the three blocks lie in the window of each query."""
    at = torch.arange(-(-length // radius) * radius, device=device).view(-1, radius, 1)
    to = at[:, :1] + torch.arange(-radius, 2 * radius, device=device)  # (N, 1, 3r)
    distance = at - to
    near = (distance.abs() <= radius) & (to >= num_global) & (to < length)
    return near & (distance >= 0) if causal else near


def _look_at_all(queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, causal: bool):
    """(B, h, g, v): what the first g tokens see."""
    if causal:
        before = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool, device=keys.device)
        seen = seen & before.tril()
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return masked_softmax(scores, mask=seen) @ values


def block_summary_attention(queries: Tensor, keys: Tensor, values: Tensor, block: int) -> Tensor:
    """Own block exactly, every other block by the means of its keys and values.

    A mean stands for `block` keys, so its score is raised by log(block). Where the keys of each
    block are equal the result is exact attention.

    Args:
        queries, keys, values: (B, h, T, d), (B, h, T, d), (B, h, T, v).
        block: tokens a block; must divide T. The square root of T is cheapest.

    Returns:
        (B, h, T, v).

    Raises:
        ValueError: shapes do not fit, or `block` does not divide T.
    """
    check_self_attention(queries, keys, values)
    check_divides(block, queries.shape[2], "block")
    q, k, v = (x.unflatten(2, (-1, block)) for x in (queries, keys, values))  # (B, h, N, b, .)
    mean_k, mean_v = k.mean(3)[:, :, None], v.mean(3)[:, :, None]  # (B, h, 1, N, .)
    within = q @ k.mT / math.sqrt(q.shape[-1])  # (B, h, N, b, b)
    others = q @ mean_k.mT / math.sqrt(q.shape[-1]) + math.log(block)  # (B, h, N, b, N)
    itself = torch.eye(q.shape[2], dtype=torch.bool, device=q.device)[:, None]  # (N, 1, N)
    others = others.masked_fill(itself, -math.inf)
    weights = torch.cat([within, others], -1).softmax(-1)
    return (weights[..., :block] @ v + weights[..., block:] @ mean_v).flatten(2, 3)
