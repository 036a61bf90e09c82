"""Reversible residual layers: the backward pass rebuilds the inputs instead of keeping them."""

from collections.abc import Iterable
from itertools import chain

import torch
from torch import Tensor, nn

_DROPOUTS = (
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout
)  # fmt: skip


class ReversibleBlock(nn.Module):
    """y1 = x1 + f(x2), y2 = x2 + g(y1), which can be undone whatever f and g are.

    Source: Reformer (Kitaev et al. 2020), section 3, after RevNet (Gomez et al. 2017). In a
    Reformer f is attention and g the feed-forward network.

    Args:
        f, g: modules from (B, T, d) to the same shape, without randomness.

    Raises:
        ValueError: a part is random in training, such as dropout, and would not give the same.
    """

    def __init__(self, f: nn.Module, g: nn.Module):
        super().__init__()
        self.f, self.g = f, g
        if any(_is_random(module) for module in self.modules()):
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


def _is_random(module: nn.Module) -> bool:
    """Whether torch's module drops or draws something in training."""
    if isinstance(module, nn.RReLU):
        return True
    share = module.p if isinstance(module, _DROPOUTS) else getattr(module, "dropout", 0.0)
    return isinstance(share, float | int) and share > 0  # else a layer, which is asked itself


class ReversibleStack(nn.Module):
    """Reversible blocks of which only the last outputs are kept for the backward pass.

    What is frozen when it runs stays without a gradient.
    """

    def __init__(self, blocks: Iterable[ReversibleBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """Two streams (B, T, d) in, two out."""
        trained = [[p for p in block.parameters() if p.requires_grad] for block in self.blocks]
        return _Rebuilt.apply(self.blocks, trained, x1, x2, *chain.from_iterable(trained))


class _Rebuilt(torch.autograd.Function):
    """Run all blocks forgetting what is in between; on the way back undo one block at a time."""

    @staticmethod
    def forward(ctx, blocks, trained, x1, x2, *weights):
        for block in blocks:
            x1, x2 = block(x1, x2)
        ctx.blocks, ctx.trained = blocks, trained
        ctx.save_for_backward(x1, x2)
        return x1, x2

    @staticmethod
    def backward(ctx, d1, d2):
        y1, y2 = ctx.saved_tensors
        of_weights = []
        for block, trained in zip(reversed(ctx.blocks), reversed(ctx.trained), strict=True):
            x1, x2 = (x.detach().requires_grad_() for x in block.inverse(y1, y2))
            with torch.enable_grad():
                again = block(x1, x2)
            inputs = [x1, x2, *trained]
            d1, d2, *of_block = torch.autograd.grad(again, inputs, (d1, d2), allow_unused=True)
            of_weights = of_block + of_weights
            y1, y2 = x1.detach(), x2.detach()
        return None, None, d1, d2, *of_weights
