"""Attention within buckets of similar vectors: locality-sensitive hashing (Reformer)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.models.long_attention.input_checks import check_divides, check_self_attention


def lsh_buckets(x: Tensor, rotation: Tensor) -> Tensor:
    """The bucket of each vector: which of +-r_1, +-r_2, ... it points to most.

    Vectors at a small angle mostly share a bucket, whatever their lengths. Source: Reformer
    (Kitaev et al. 2020), section 2.

    Args:
        x: (..., T, d).
        rotation: (d, n / 2) random normal numbers for n buckets; n = 0 puts all into one.

    Returns:
        (..., T) numbers in 0..n - 1.
    """
    if not rotation.shape[-1]:
        return torch.zeros(x.shape[:-1], dtype=torch.long, device=x.device)
    projected = x @ rotation  # (..., T, n / 2)
    return torch.cat([projected, -projected], dim=-1).argmax(-1)


def lsh_mask(x: Tensor, rotations: list[Tensor]) -> Tensor:
    """(B, h, T, T): True where two vectors share a bucket in at least one of the rounds."""
    mask = torch.zeros(*x.shape[:-1], x.shape[-2], dtype=torch.bool, device=x.device)
    for rotation in rotations:
        bucket = lsh_buckets(x, rotation)
        mask |= bucket.unsqueeze(-1) == bucket.unsqueeze(-2)
    return mask


def lsh_attention(x: Tensor, values: Tensor, rotation: Tensor, chunk: int) -> Tensor:
    """Sort by bucket, cut into chunks, attend within a bucket, in the own chunk and the one before.

    One set of vectors is both: the queries are `x`, the keys are `x` at length 1, so that a query
    and the key of one token fall into one bucket. One round of hashing, not causal.

    Args:
        x, values: (B, h, T, d), (B, h, T, v).
        rotation: see `lsh_buckets`.
        chunk: tokens a chunk; must divide T. With T and one bucket this is exact attention.

    Returns:
        (B, h, T, v).

    Raises:
        ValueError: shapes do not fit, or `chunk` does not divide T.
    """
    keys = F.normalize(x, dim=-1)
    check_self_attention(x, keys, values)
    check_divides(chunk, x.shape[2], "chunk")
    bucket = lsh_buckets(x, rotation)  # (B, h, T)
    order = bucket.argsort(dim=-1, stable=True)

    def sorted_chunks(t: Tensor) -> Tensor:
        index = order.unsqueeze(-1).expand(*order.shape, t.shape[-1])
        return t.gather(2, index).unflatten(2, (-1, chunk))  # (B, h, N, chunk, .)

    def with_previous(t: Tensor) -> Tensor:
        return torch.cat([F.pad(t, (0, 0, 0, 0, 1, 0))[:, :, :-1], t], dim=3)

    q, k, v = sorted_chunks(x), sorted_chunks(keys), sorted_chunks(values)
    of_query = sorted_chunks(bucket.unsqueeze(-1) + 1)  # from 1, so that the padding's 0 is none
    same = of_query == with_previous(of_query).mT  # (B, h, N, chunk, 2 * chunk)
    scores = q @ with_previous(k).mT / math.sqrt(x.shape[-1])
    weights = scores.masked_fill(~same, -math.inf).softmax(-1)  # a query sees at least itself
    output = (weights @ with_previous(v)).flatten(2, 3)  # (B, h, T, v), sorted
    back = order.argsort(-1).unsqueeze(-1).expand_as(output)
    return output.gather(2, back)
