"""Reversible residual layers: the backward pass rebuilds the inputs instead of keeping them."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class ReversibleBlock(nn.Module):
    """y1 = x1 + f(x2), y2 = x2 + g(y1), which can be undone whatever f and g are.

    Source: Reformer (Kitaev et al. 2020), section 3, after RevNet (Gomez et al. 2017); notes
    002-58. In a Reformer f is attention and g the feed-forward network.

    Args:
        f, g: modules from (B, T, d) to the same shape, without randomness.

    Raises:
        ValueError: there is dropout, which would not drop the same numbers again.
    """

    def __init__(self, f: nn.Module, g: nn.Module):
        super().__init__()
        self.f, self.g = f, g
        if any(isinstance(module, nn.Dropout) and module.p > 0 for module in self.modules()):
            raise ValueError(
                "f and g are run again to rebuild their inputs and must give the same numbers "
                "again: build them with dropout=0"
            )

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """Two streams (B, T, d) in, two out."""
        y1 = x1 + self.f(x2)
        return y1, x2 + self.g(y1)

    def inverse(self, y1: Tensor, y2: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs, from the outputs."""
        x2 = y2 - self.g(y1)
        return y1 - self.f(x2), x2


class ReversibleStack(nn.Module):
    """Reversible blocks of which only the last outputs are kept for the backward pass."""

    def __init__(self, blocks: Iterable[ReversibleBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """Two streams (B, T, d) in, two out."""
        weights = [p for block in self.blocks for p in block.parameters()]
        return _Rebuilt.apply(self.blocks, x1, x2, *weights)


class _Rebuilt(torch.autograd.Function):
    """Run all blocks forgetting what is in between; on the way back undo one block at a time."""

    @staticmethod
    def forward(ctx, blocks, x1, x2, *weights):
        for block in blocks:
            x1, x2 = block(x1, x2)
        ctx.blocks = blocks
        ctx.save_for_backward(x1, x2)
        return x1, x2

    @staticmethod
    def backward(ctx, d1, d2):
        y1, y2 = ctx.saved_tensors
        of_weights = []
        for block in reversed(ctx.blocks):
            x1, x2 = (x.detach().requires_grad_() for x in block.inverse(y1, y2))
            with torch.enable_grad():
                again = block(x1, x2)
            inputs = [x1, x2, *block.parameters()]
            d1, d2, *of_block = torch.autograd.grad(again, inputs, (d1, d2), allow_unused=True)
            of_weights = of_block + of_weights
            y1, y2 = x1.detach(), x2.detach()
        return None, d1, d2, *of_weights
