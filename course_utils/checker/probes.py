"""Inputs for checks: small, repeatable, and lopsided so that every mistaken axis shows.

No two sizes of a probe are equal where it can be helped, queries differ from keys, and the
numbers are of order one, so that a missing scale or a wrong softmax moves the result far.
"""

from typing import Any

import torch
from torch import Tensor


class NotAsAsked(Exception):
    """What an answer returned is not of the form that its exercise asks; the message says how."""


def draw(seed: int, *shapes: tuple[int, ...], scale: float = 1.0) -> tuple[Tensor, ...]:
    """Normal tensors of the given shapes, rounded to two decimals so that they read well."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        (torch.randn(shape, generator=generator) * scale).round(decimals=2) for shape in shapes
    )


def as_asked(
    value: Any, what: str, shape: tuple[int, ...], *, nan_is_measured: bool = False
) -> Tensor:
    """What an answer returned, for a `play` that measures it.

    Args:
        what: is due, "a tensor (N,)".
        shape: that it must have.
        nan_is_measured: whether a property says what is due of NaN; all others fail with it,
            whatever they say.

    Raises:
        NotAsAsked: it is no tensor, has another shape, or holds NaN.
    """
    if not isinstance(value, Tensor):
        raise NotAsAsked(f"{what} is due, and a result of type {type(value).__name__} came back")
    if value.shape != shape:
        raise NotAsAsked(f"{what} is due, here {shape}, and {(*value.shape,)} came back")
    if value.isnan().any() and not nan_is_measured:
        raise NotAsAsked(f"{what} of numbers is due, and NaN is among what came back")
    return value


_FAR = 2.0**17  # between one score and the next: more than the like of -1e5 can hide


def far_below(*shape: int, step: float = _FAR, lowest: float = -3e6) -> Tensor:
    """Scores from `lowest` on that rise by `step` from key to key, the last axis.

    They lie below any number that could pass for very negative, but for -inf and the like of -1e9,
    and where the first key alone is visible, lowering the others by 50 or by 1e5 does not hide
    them. The last visible key gets all the weight, however the scores are rounded.
    """
    return (step * torch.arange(shape[-1]) + lowest).expand(shape).clone()


def far_apart(num_queries: int, num_keys: int) -> tuple[Tensor, Tensor]:
    """Queries (Tq, 4) and keys (Tk, 4) whose scaled scores are those of `far_below`, exactly."""
    at = torch.arange(num_keys)
    keys = torch.stack([torch.full((num_keys,), 15_000.0), at, -at, -0.5 * at], dim=1)
    return torch.tensor([-400.0, 2 * _FAR, 0.0, 0.0]).repeat(num_queries, 1), keys
