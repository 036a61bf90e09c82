"""Rotary positions (旋转位置编码, RoPE): queries and keys are turned, not added to.

Source: Su et al. 2021, RoFormer, section 3. Two layouts are in use: a pair of columns that turns
together is (0, 1), (2, 3), ... as in the paper, or (0, d/2), (1, d/2 + 1), ... as in Llama's
published weights for `transformers`. They are one method with the columns in another order.
"""

import torch
from torch import Tensor

from course_utils.models.positional import frequencies

LAYOUTS = ("interleaved", "halves")


def rotate(
    x: Tensor,
    positions: Tensor | None = None,
    *,
    layout: str = "interleaved",
    base: float = 10_000.0,
) -> Tensor:
    """Turn pair i of the vector at position p by the angle p * base^(-2i/d).

    With queries and keys both turned, q_m . k_n depends on the positions through m - n only.
    `rotate(x, -positions)` is the inverse. Numbers need not be whole: dividing them by s lets a
    model read s times as far with angles that it knows (Chen et al. 2023).

    Args:
        x: (..., T, d), queries or keys of one head, d even.
        positions: (T,), or (..., T) that broadcasts to x without its last axis; None: 0 .. T - 1.
        layout: "interleaved", pairs (0, 1), (2, 3), ..., or "halves", pairs (0, d/2), ...
        base: the larger, the slower the slow pairs turn.

    Returns:
        (..., T, d), in the dtype of x; every vector keeps its length.

    Raises:
        ValueError: d is odd, or the layout is none of the two.
    """
    positions = torch.arange(x.shape[-2]) if positions is None else positions
    angle = positions.double()[..., None] * frequencies(x.shape[-1], base).to(positions.device)
    cos, sin = angle.cos().to(x), angle.sin().to(x)  # (..., T, d/2)
    axis = _pair_axis(layout)
    a, b = x.unflatten(-1, (-1, 2) if axis == -1 else (2, -1)).unbind(axis)  # (..., T, d/2) each
    return torch.stack((a * cos - b * sin, a * sin + b * cos), axis).flatten(-2)


def halves_from_interleaved(d: int) -> Tensor:
    """The order of columns that turns one layout into the other: even ones, then odd ones.

    rotate(x, layout="interleaved")[..., order] == rotate(x[..., order], layout="halves"). Weights
    of W_q and W_k are carried over by taking their output rows, head by head, in this order.

    Returns:
        (d,) int64; `order.argsort()` leads back.
    """
    return torch.arange(d).view(-1, 2).T.flatten()


def _pair_axis(layout: str) -> int:
    """Where the two columns of a pair lie, once the last axis is cut in two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'interleaved' or 'halves', got {layout!r}")
    return -1 if layout == "interleaved" else -2
