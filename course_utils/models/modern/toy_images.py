"""Pictures drawn by code: one shape among clutter, and the label is which shape.

They stand beside the models that read them, as the repeated sequences of `circuits.py` do: nothing
here knows of corpora, files or languages, which is what `text/` is for.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

SHAPES = ("disc", "square", "triangle", "ring", "cross")


def _inside(shape: str, x: Tensor, y: Tensor) -> Tensor:
    """Which points belong to a shape that fills -1 .. 1 in both directions, y downwards."""
    round_ = x.square() + y.square()
    box = torch.maximum(x.abs(), y.abs())
    if shape == "disc":
        return round_ <= 1
    if shape == "square":
        return box <= 0.85
    if shape == "triangle":
        return (y <= 0.8) & (x.abs() <= (y + 1) * 0.55)
    if shape == "ring":
        return (round_ <= 1) & (round_ >= 0.3)
    return (torch.minimum(x.abs(), y.abs()) <= 0.3) & (box <= 1)  # cross


def drawn_pictures(
    number: int,
    size: int = 24,
    *,
    shapes: Sequence[str] = SHAPES,
    clutter: int = 3,
    noise: float = 0.1,
    generator=None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Grey pictures with one shape each, anywhere, a quarter to half as wide as the picture.

    Args:
        number: how many.
        size: pixels a side, 12 or more.
        shapes: which of `SHAPES` are drawn, one as often as the other.
        clutter: how many dots of 2 x 2 pixels lie about; more make it harder.
        noise: standard deviation of what is added to every pixel.

    Returns:
        pictures (number, 1, size, size), dark 0 and bright 1 before the noise; labels (number,),
        places in `shapes`; and boolean masks (number, size, size), True on the shape, to compare
        with where a model looks.

    Raises:
        ValueError: pictures of fewer than 12 pixels a side, a number below 0, or an unknown shape.
    """
    if size < 12 or min(number, clutter, noise) < 0:
        raise ValueError(
            f"pictures need a side of 12 pixels or more and numbers of 0 or more, got size {size}, "
            f"number {number}, clutter {clutter} and noise {noise}"
        )
    if not shapes or set(shapes) - set(SHAPES):
        raise ValueError(
            f"shapes are some of {', '.join(SHAPES)}, got {', '.join(shapes) or 'none'}"
        )
    labels = torch.randint(len(shapes), (number,), generator=generator)
    u = torch.rand(number, 4, generator=generator)
    radius = size * (0.2 + 0.2 * u[:, 0]) / 2 + 1  # (number,)
    column, row = (radius + (size - 1 - 2 * radius) * u[:, i] for i in (1, 2))
    bright = 0.5 + 0.5 * u[:, 3]
    at = torch.arange(size)
    y = (at[None, :, None] - row[:, None, None]) / radius[:, None, None]  # (number, size, 1)
    x = (at[None, None, :] - column[:, None, None]) / radius[:, None, None]  # (number, 1, size)
    x, y = torch.broadcast_tensors(x, y)
    masks = torch.zeros(number, size, size, dtype=torch.bool)
    for label, shape in enumerate(shapes):
        those = labels == label
        masks[those] = _inside(shape, x[those], y[those])
    pictures = masks * bright[:, None, None]
    which = torch.arange(number)
    for _ in range(clutter):
        corner = torch.randint(size - 1, (number, 2), generator=generator)
        for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
            pictures[which, corner[:, 0] + down, corner[:, 1] + right] = 0.8
    pictures = pictures + noise * torch.randn(pictures.shape, generator=generator)
    return pictures[:, None], labels, masks
