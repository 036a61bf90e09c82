"""Attention to the few best keys of a large store."""

import math

import torch
from torch import Tensor

from course_utils.models.long_attention.input_checks import check_attention


def top_k_attention(queries: Tensor, keys: Tensor, values: Tensor, k: int) -> Tensor:
    """Exact attention over each query's k best keys.

    All Tq x Tk scores are computed to find them; a real store has an index that finds most of
    them without.

    Args:
        queries, keys, values: (B, h, Tq, d), (B, h, Tk, d), (B, h, Tk, v).
        k: keys a query keeps, 1 to Tk.

    Returns:
        (B, h, Tq, v).

    Raises:
        ValueError: shapes do not fit, or k is not in 1..Tk.
    """
    check_attention(queries, keys, values)
    if not 1 <= k <= keys.shape[2]:
        raise ValueError(f"k must lie in 1..{keys.shape[2]}, the number of keys, got {k}")
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])  # (B, h, Tq, Tk)
    best, index = scores.topk(k, dim=-1)  # (B, h, Tq, k)
    weights = best.softmax(-1)
    rows = index.flatten(2).unsqueeze(-1).expand(-1, -1, -1, values.shape[-1])
    picked = torch.gather(values, 2, rows).unflatten(2, (-1, k))  # (B, h, Tq, k, v)
    return (weights.unsqueeze(-2) @ picked).squeeze(-2)
