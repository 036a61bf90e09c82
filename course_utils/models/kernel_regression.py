"""Attention pooling for regression: Nadaraya-Watson, without and with a learned width.

Queries, keys and values are numbers: x at which to predict, x seen, y seen.
Source: Nadaraya 1964, Watson 1964.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.attention import masked_softmax

# K(u), without constants that cancel when the weights are normalised
KERNELS = {
    "gaussian": lambda u: torch.exp(-(u**2) / 2),
    "boxcar": lambda u: (u.abs() < 1).to(u.dtype),
    "epanechnikov": lambda u: (1 - u**2).clamp(min=0),
    "triangular": lambda u: (1 - u.abs()).clamp(min=0),
}
_NARROWEST = torch.finfo(torch.float32).tiny  # a width below divides by 0 in float32


def distances(queries: Tensor, keys: Tensor) -> Tensor:
    """x - x_i: (Tq,), (Tk,) -> (Tq, Tk).

    Raises:
        ValueError: queries and keys are not vectors.
    """
    if not queries.dim() == keys.dim() == 1:
        raise ValueError(
            f"queries and keys are numbers, (Tq,) and (Tk,), got {tuple(queries.shape)} and "
            f"{tuple(keys.shape)}: use .flatten()"
        )
    return queries[:, None] - keys[None, :]


def gaussian_scores(apart: Tensor, w: float | Tensor, mask: Tensor | None = None) -> Tensor:
    """-(apart w)^2 / 2 for distances (Tq, Tk), with a number added in each row: its largest is 0.

    The softmax does not see that number. It keeps a row from being -inf throughout, far from all
    keys or for a large w. With a mask (Tq, Tk) it is the largest of the keys that are seen.
    """
    far = apart.abs()
    if not far.numel():
        return far
    seen = far if mask is None else far.where(mask, math.inf)
    nearest = seen.detach().amin(dim=-1, keepdim=True)  # (Tq, 1)
    nearest = nearest.where(nearest < math.inf, 0.0)  # a query that sees no key
    return -((far - nearest) * w * (far + nearest)) * w / 2  # far^2 - nearest^2, in a safe order


def kernel_weights(
    queries: Tensor, keys: Tensor, width: float = 1.0, kernel: str = "gaussian"
) -> Tensor:
    """K((x - x_i) / width) / sum_j K((x - x_j) / width): (Tq,), (Tk,) -> (Tq, Tk).

    A query with no key in reach (possible for kernels that end) gets weights of zero.

    Raises:
        ValueError: the width is not above 0, the kernel is unknown, or queries and keys are not
            vectors.
    """
    if not width > 0:
        raise ValueError(f"the width must be above 0, got {width}")
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}: use one of {', '.join(KERNELS)}")
    apart, width = distances(queries, keys), max(width, _NARROWEST)  # (Tq, Tk)
    if kernel == "gaussian":  # the same numbers, safe far from all keys
        return F.softmax(gaussian_scores(apart, 1 / width), dim=-1)
    raw = KERNELS[kernel](apart / width)
    total = raw.sum(dim=-1, keepdim=True)
    return raw / total.where(total > 0, torch.ones_like(total))


def average_pooling(queries: Tensor, values: Tensor) -> Tensor:
    """The mean of the values for every query, which is not looked at."""
    return values.mean().expand(len(queries))


class NWKernelRegression(nn.Module):
    """f(x) = sum_i softmax(-((x - x_i) w)^2 / 2) y_i with one learned number w = 1 / width.

    Args:
        w: where training starts.
    """

    def __init__(self, w: float = 1.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(Tq,), (Tk,), (Tk,) and a mask (Tq, Tk) -> predictions (Tq,) and weights (Tq, Tk)."""
        apart = distances(queries, keys)  # (Tq, Tk)
        if values.shape != keys.shape:
            raise ValueError(f"{len(keys)} keys need as many numbers, got {tuple(values.shape)}")
        weights = masked_softmax(gaussian_scores(apart, self.w, mask), mask=mask)
        return weights @ values, weights


def sine_data(n: int, noise: float = 0.5, high: float = 5.0) -> tuple[Tensor, Tensor]:
    """n sorted points of y = 2 sin x + x^0.8 + noise, x uniform in [0, high)."""
    x = torch.sort(torch.rand(n) * high).values
    return x, true_curve(x) + noise * torch.randn(n)


def true_curve(x: Tensor) -> Tensor:
    """2 sin x + x^0.8, which the regressions have to find."""
    return 2 * torch.sin(x) + x**0.8


def consistent_width(n: int, scale: float = 1.0) -> float:
    """A width that shrinks with the number of points as n^(-1/5), so that the bias goes to 0."""
    return scale * math.pow(n, -0.2)
