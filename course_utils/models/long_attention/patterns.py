"""Sparse patterns as masks: (1, 1, T, T), True = this query may look at this key.

A mask alone saves nothing, for all T x T scores are still computed. It says what a pattern means;
`windows.py` computes one of them without the rest.
"""

from collections.abc import Iterable

import torch
from torch import Tensor


def _check(num_tokens: int) -> None:
    if num_tokens < 1:
        raise ValueError(f"num_tokens must be at least 1, got {num_tokens}")


def _distance(num_tokens: int) -> Tensor:
    """(T, T): how far the key lies behind the query."""
    _check(num_tokens)
    at = torch.arange(num_tokens)
    return at[:, None] - at[None, :]


def window_mask(num_tokens: int, radius: int, *, causal: bool = False) -> Tensor:
    """Keys at most `radius` positions away: 2 * radius + 1 of them, radius + 1 if causal.

    Source: Longformer (Beltagy et al. 2020), section 3.1, whose window w is 2 * radius.

    Raises:
        ValueError: there is no token, or the radius is negative.
    """
    if radius < 0:
        raise ValueError(f"radius must be 0 or more, got {radius}")
    distance = _distance(num_tokens)
    near = distance.abs() <= radius
    return (near & (distance >= 0) if causal else near)[None, None]


def global_mask(num_tokens: int, positions: Iterable[int]) -> Tensor:
    """Tokens that look at all and are looked at by all (Longformer).

    Raises:
        ValueError: there is no token, or a position is not in 0..num_tokens - 1.
    """
    _check(num_tokens)
    chosen = torch.zeros(num_tokens, dtype=torch.bool)
    for position in positions:
        if not 0 <= position < num_tokens:
            raise ValueError(f"position {position} is not in 0..{num_tokens - 1}")
        chosen[position] = True
    return (chosen[:, None] | chosen[None, :])[None, None]


def random_mask(num_tokens: int, per_query: int, seed: int = 0) -> Tensor:
    """`per_query` different keys for each query, drawn once: BigBird's third part.

    Raises:
        ValueError: there is no token, or more keys are asked for than there are.
    """
    _check(num_tokens)
    if not 0 <= per_query <= num_tokens:
        raise ValueError(f"per_query must lie in 0..{num_tokens}, got {per_query}")
    draw = torch.Generator().manual_seed(seed)
    rank = torch.rand(num_tokens, num_tokens, generator=draw).argsort(-1).argsort(-1)
    return (rank < per_query)[None, None]


def segment_mask(num_tokens: int, segment: int, before: int = 1) -> Tensor:
    """Causal, within the query's own segment and `before` segments before it.

    Raises:
        ValueError: there is no token, a segment is shorter than 1, or `before` is negative.
    """
    if segment < 1 or before < 0:
        raise ValueError(
            f"segment must be at least 1 and before at least 0, got {segment} and {before}"
        )
    causal = _distance(num_tokens) >= 0
    number = torch.arange(num_tokens) // segment
    behind = number[:, None] - number[None, :]
    return (causal & (behind <= before))[None, None]
