"""Adapters: a small bottleneck behind every sub-layer."""

import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.fine_tuning.freezing import check_size, encoder_blocks, freeze


class Adapter(nn.Module):
    """x + up(relu(down(x))), from d_model to a few features and back.

    The way up starts at zero, so at first the adapter gives what it reads. Source: Houlsby et al.
    2019, section 2.1.

    Args:
        d_model: size of what it reads and gives.
        bottleneck: number of features in between.

    Raises:
        ValueError: bottleneck is below 1.
    """

    def __init__(self, d_model: int, bottleneck: int):
        super().__init__()
        check_size("bottleneck", bottleneck)
        self.down = nn.Linear(d_model, bottleneck)
        self.up = nn.Linear(bottleneck, d_model)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        return x + self.up(F.relu(self.down(x)))


class Adapted(nn.Module):
    """A sub-layer with an adapter behind it; it is called like the sub-layer."""

    added = ("adapter",)

    def __init__(self, sublayer: nn.Module, adapter: Adapter):
        super().__init__()
        self.sublayer, self.adapter = sublayer, adapter.train(sublayer.training)
        self.training = sublayer.training

    def forward(self, *args, **options):
        """What the sub-layer returns, its output adapted; attention weights stay."""
        output = self.sublayer(*args, **options)
        if isinstance(output, tuple):
            return self.adapter(output[0]), *output[1:]
        return self.adapter(output)


def add_adapters(model: nn.Module, bottleneck: int) -> nn.Module:
    """Freeze the model and put an adapter behind both sub-layers of every encoder block, in place.

    Returns:
        the model.

    Raises:
        ValueError: there is no `EncoderBlock`, bottleneck is below 1, or there are adapters
            already; the model is then as before.
    """
    blocks = encoder_blocks(model)
    check_size("bottleneck", bottleneck)
    if any(isinstance(block.attention, Adapted) for block in blocks):
        raise ValueError(f"{type(model).__name__} has adapters already: add them once")
    for block in blocks:
        d_model, like = block.attention.d_model, next(block.parameters())
        for name in ("attention", "ffn"):
            adapter = Adapter(d_model, bottleneck).to(like)  # dtype and device
            setattr(block, name, Adapted(getattr(block, name), adapter))
    return freeze(model)
