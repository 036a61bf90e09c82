"""Inputs for checks: small, repeatable, and lopsided so that every mistaken axis shows.

No two sizes of a probe are equal where it can be helped, queries differ from keys, and the
numbers are of order one, so that a missing scale or a wrong softmax moves the result far.
"""

import torch
from torch import Tensor


def draw(seed: int, *shapes: tuple[int, ...], scale: float = 1.0) -> tuple[Tensor, ...]:
    """Normal tensors of the given shapes, rounded to two decimals so that they read well."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        (torch.randn(shape, generator=generator) * scale).round(decimals=2) for shape in shapes
    )
