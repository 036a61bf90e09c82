"""Positions as a bias of the scores: ALiBi's fixed slopes, T5's trained buckets.

A bias is (1, h, Tq, Tk) and is added to the scaled scores before the softmax. As in
`causal_mask`, the last query stands at the last key, so that a cache may hold earlier keys.
"""

import math

import torch
from torch import Tensor, nn


def distances(num_queries: int, num_keys: int | None = None, device=None) -> Tensor:
    """How far each key stands before each query: (Tq, Tk) int64, query minus key; future < 0."""
    num_keys = num_queries if num_keys is None else num_keys
    key = torch.arange(num_keys, device=device)
    query = torch.arange(num_keys - num_queries, num_keys, device=device)
    return query[:, None] - key


def alibi_slopes(num_heads: int) -> Tensor:
    """What a step of distance costs in each head: 2^(-8/h), 2^(-16/h), ..., 2^-8.

    Where h is no power of two, the slopes of the next smaller power come first, then every
    second one of the next larger, as in the authors' code. Source: Press et al. 2022, section 3.

    Returns:
        (h,) float32.

    Raises:
        ValueError: h is below 1.
    """
    if num_heads < 1:
        raise ValueError(f"num_heads must be at least 1, got {num_heads}")
    power = 2 ** int(math.log2(num_heads))  # the largest power of two that is not above h
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-4 * i / power) for i in range(1, 2 * power, 2)]
    return torch.tensor((slopes + between)[:num_heads])


def alibi_bias(num_heads: int, num_queries: int, num_keys: int | None = None, device=None):
    """minus slope times distance, (1, h, Tq, Tk) float32: the farther, the less.

    Nothing is trained. The paper only looks back; where a query may look ahead too, the distance
    counts in both directions alike.
    """
    slopes = alibi_slopes(num_heads).to(device)[:, None, None]  # (h, 1, 1)
    return -(slopes * distances(num_queries, num_keys, device).abs())[None]


def relative_buckets(
    distance: Tensor, num_buckets: int = 32, max_distance: int = 128, *, causal: bool = True
) -> Tensor:
    """The bucket of each distance: near ones have their own, far ones share, by logarithm.

    Half of the buckets are for the distances 0, 1, 2, ...; the other half grows up to
    `max_distance`, beyond which all share the last. Without `causal`, keys before the query get
    the first half of all buckets and keys after it the second. Source: T5, Raffel et al. 2020,
    section 2.1, and its code.

    Args:
        distance: integers, query minus key. With `causal` what lies ahead counts as 0.

    Returns:
        int64 in 0 .. num_buckets - 1, of the shape of `distance`.

    Raises:
        ValueError: there are too few buckets, or `max_distance` lies among the exact ones.
    """
    shift = torch.zeros_like(distance)
    if causal:
        distance = distance.clamp(min=0)
    else:
        num_buckets //= 2
        shift, distance = (distance < 0) * num_buckets, distance.abs()
    exact = num_buckets // 2
    if not 1 <= exact < max_distance:
        raise ValueError(
            f"the exact buckets, here {exact}, must be 1 or more and fewer than max_distance = "
            f"{max_distance}"
        )
    share = (distance.clamp(min=1) / exact).log() / math.log(max_distance / exact)
    far = (exact + share * (num_buckets - exact)).long().clamp(max=num_buckets - 1)
    return shift + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """One trained number for each head and bucket of distances (Raffel et al. 2020, section 2.1).

    It starts at zero: no distance is preferred before training. T5 shares one such table among
    all layers.

    Args:
        num_heads: h.
        num_buckets, max_distance, causal: as in `relative_buckets`.
    """

    def __init__(
        self, num_heads: int, num_buckets: int = 32, max_distance: int = 128, causal: bool = True
    ):
        super().__init__()
        self.buckets = {
            "num_buckets": num_buckets, "max_distance": max_distance, "causal": causal
        }  # fmt: skip
        relative_buckets(torch.zeros(1).long(), **self.buckets)  # refuses sizes that do not fit
        self.table = nn.Parameter(torch.zeros(num_buckets, num_heads))

    def forward(self, num_queries: int, num_keys: int | None = None) -> Tensor:
        """The bias (1, h, Tq, Tk)."""
        far = distances(num_queries, num_keys, self.table.device)
        return self.table[relative_buckets(far, **self.buckets)].permute(2, 0, 1)[None]
