"""RMSNorm (均方根归一化): layer normalisation without the mean and without a bias."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, for every token on its own.

    The length of a vector is set, its direction stays. Computed in float32 where x is of half
    precision. Source: Zhang and Sennrich 2019, section 3.

    Args:
        d_model: size of the last axis.
        eps: keeps a vector of zeros from a division by zero.
    """

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model), in the dtype of x."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return (wide * torch.rsqrt(mean_square + self.eps)).to(x.dtype) * self.weight
