"""Kernel attention: weights phi(q) . phi(k), so that the sums over the keys are taken once.

    softmax:  out_i = sum_j exp(q_i . k_j) v_j / sum_j exp(q_i . k_j)
    kernel:   out_i = phi(q_i) [sum_j phi(k_j) v_j^T] / phi(q_i) [sum_j phi(k_j)]

The brackets do not depend on i: T x m x v multiply-adds instead of T x T x v.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.models.long_attention.input_checks import check_self_attention, keys_alone


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1, positive everywhere (Katharopoulos et al. 2020, section 3.2.1)."""
    return F.elu(x) + 1


def linear_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    features: Callable[[Tensor], Tensor] = elu_features,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Attention with the weights features(q) . features(k), in time linear in T.

    Source: Katharopoulos et al. 2020, equations 6 to 9. The causal form keeps the running sums of
    all T positions, T * m * v numbers; as a loop it needs one of them.

    Args:
        queries, keys, values: (B, h, T, d), (B, h, T, d), (B, h, T, v).
        features: from (..., T, d) to (..., T, m), not negative. If it has a method `of_queries`,
            the queries go there.
        causal: position t sums over the keys 0..t.
        mask: (B, 1, 1, T), True = this key may be looked at. Hidden keys enter neither sum.

    Returns:
        (B, h, T, v); zero for a query that may look at no key.

    Raises:
        ValueError: shapes do not fit, or the mask differs between queries.
    """
    check_self_attention(queries, keys, values)
    if mask is not None:
        seen = keys_alone(mask, queries, keys.shape[2]).mT  # (B, 1, T, 1)
        keys, values = (x.masked_fill(~seen, 0.0) for x in (keys, values))
        first = seen.int().argmax(2, keepdim=True)  # (B or 1, h or 1, 1, 1)
        keys = keys.where(seen, keys.take_along_dim(first, 2))  # so that none sets a scale
    q = getattr(features, "of_queries", features)(queries)  # (B, h, T, m)
    k = features(keys)  # (B, h, T, m)
    if mask is not None:
        k = k.masked_fill(~seen, 0.0)
    if causal:
        state = (k.unsqueeze(-1) * values.unsqueeze(-2)).cumsum(2)  # (B, h, T, m, v)
        output = (q.unsqueeze(-2) @ state).squeeze(-2)  # (B, h, T, v)
        total = (q * k.cumsum(2)).sum(-1, keepdim=True)  # (B, h, T, 1)
    else:
        output = q @ (k.mT @ values)  # (m, v) is all that the queries need of the keys
        total = q @ k.sum(2).unsqueeze(-1)  # (B, h, T, 1)
    return output / total.masked_fill(total == 0, 1.0)


class RandomFeatures:
    """Features with E[phi(q) . phi(k)] = exp(q . k / sqrt(d)): the softmax kernel (Performer).

    phi(x) = exp(w . x - |x|^2 / 2) / sqrt(m) for m random directions w, after x / d^(1/4).
    Source: Choromanski et al. 2021, lemma 1 (positive features) and section 3 (orthogonal
    directions).

    Args:
        d: size of a query.
        num_features: m.
        seed: of the directions.
        orthogonal: draw the directions in groups of d that are at right angles.
    """

    def __init__(self, d: int, num_features: int, seed: int = 0, *, orthogonal: bool = True):
        draw = torch.Generator().manual_seed(seed)
        groups = -(-num_features // d)
        normal = torch.randn(groups, d, d, generator=draw)
        if orthogonal:
            q, r = torch.linalg.qr(normal)
            q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # else no uniform rotation
            lengths = torch.randn(groups, d, d, generator=draw).norm(dim=-1, keepdim=True)
            normal = q * lengths  # each direction is as long as a normal one
        self.directions = normal.flatten(0, 1)[:num_features]  # (m, d)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., T, d) -> (..., T, m).

        All exponents are lowered by one number, the largest, which cancels in the weights.
        """
        return self._lowered(x, (-2, -1))

    def of_queries(self, x: Tensor) -> Tensor:
        """As above, but those of each query are lowered by their own largest, which cancels too.

        So a long query, whose features are small, does not lose them among those of short ones.
        """
        return self._lowered(x, (-1,))

    def _lowered(self, x: Tensor, dims: tuple[int, ...]) -> Tensor:
        x = x / x.shape[-1] ** 0.25
        exponent = x @ self.directions.to(x).T - x.square().sum(-1, keepdim=True) / 2
        highest = exponent.detach().amax(dim=dims, keepdim=True)
        return torch.exp(exponent - highest) / len(self.directions) ** 0.5
