"""Low-rank attention: fewer keys, each a mixture of all (Linformer)."""

import math

import torch
from torch import Tensor

from course_utils.models.long_attention.input_checks import check_divides, check_self_attention


def low_rank_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mix_keys: Tensor,
    mix_values: Tensor | None = None,
) -> Tensor:
    """Attention over r mixtures of the T keys and values.

    Source: Linformer (Wang et al. 2020), section 4. The mixing matrices have T columns, so T is
    fixed, and every mixture holds the future, so there is no causal form.

    Args:
        queries, keys, values: (B, h, T, d), (B, h, T, d), (B, h, T, v).
        mix_keys, mix_values: (r, T), learned in a model; one serves both if one is given.

    Returns:
        (B, h, T, v).

    Raises:
        ValueError: shapes do not fit, or the matrices were made for another length.
    """
    check_self_attention(queries, keys, values)
    mix_values = mix_keys if mix_values is None else mix_values
    length = keys.shape[2]
    if mix_keys.shape != mix_values.shape or mix_keys.dim() != 2 or mix_keys.shape[1] != length:
        raise ValueError(
            f"the mixing matrices must both be (r, {length}), one column a token, got "
            f"{tuple(mix_keys.shape)} and {tuple(mix_values.shape)}: low-rank attention serves "
            "the one length that its matrices were made for"
        )
    few_keys, few_values = mix_keys @ keys, mix_values @ values  # (B, h, r, d), (B, h, r, v)
    weights = (queries @ few_keys.mT / math.sqrt(queries.shape[-1])).softmax(-1)  # (B, h, T, r)
    return weights @ few_values


def mean_pooling(num_groups: int, length: int) -> Tensor:
    """(r, T): row i is the mean of the i-th group of T / r neighbours.

    Raises:
        ValueError: `num_groups` does not divide `length`.
    """
    check_divides(num_groups, length, "num_groups")
    size = length // num_groups
    return torch.eye(num_groups).repeat_interleave(size, dim=1) / size
