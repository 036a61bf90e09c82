"""LoRA: a frozen matrix and a trained one of low rank beside it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from course_utils.models.fine_tuning.freezing import check_size, freeze


class LoRALinear(nn.Module):
    """y = base(x) + alpha / rank * B A x, of which only A and B are trained.

    B starts at zero, so at first the layer gives what its base gives. Source: Hu et al. 2021,
    section 4.1.

    Args:
        base: the pre-trained layer; its weights are frozen here, and are not copied.
        rank: r, the number of rows of A and of columns of B.
        alpha: the update is scaled by alpha / rank, so that a learning rate which suits one rank
            suits others.

    Raises:
        ValueError: rank is below 1.
    """

    added = ("A", "B")

    def __init__(self, base: nn.Linear, rank: int, alpha: float = 8.0):
        super().__init__()
        check_size("rank", rank)
        self.base, self.training = base.requires_grad_(False), base.training
        self.scale = alpha / rank
        self.A = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.B = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.normal_(self.A, std=base.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        narrow = x @ self.A.T  # (..., rank)
        return self.base(x) + self.scale * (narrow @ self.B.T)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One plain layer that gives the same; the base is left as it is."""
        layer = nn.Linear(
            self.base.in_features,
            self.base.out_features,
            self.base.bias is not None,
            self.base.weight.device,
            self.base.weight.dtype,
        )
        layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        if self.base.bias is not None:
            layer.bias.copy_(self.base.bias)
        return layer.requires_grad_(False).train(self.training)


def add_lora(
    model: nn.Module, rank: int, alpha: float = 8.0, names: Sequence[str] = ("W_q", "W_v")
) -> nn.Module:
    """Freeze the model and put a `LoRALinear` around every linear layer of these names, in place.

    Returns:
        the model.

    Raises:
        ValueError: no layer has such a name, one of them has LoRA already, or rank is below 1.
    """
    check_size("rank", rank)
    extended = sorted({name for _, name, _ in _layers(model, LoRALinear, names)})
    if extended:
        raise ValueError(f"{' and '.join(extended)} with LoRA already: call merge_lora first")
    places = _layers(model, nn.Linear, names)
    if not places:
        raise ValueError(f"{type(model).__name__} has no linear layer called {' or '.join(names)}")
    for parent, name, layer in places:
        setattr(parent, name, LoRALinear(layer, rank, alpha))
    return freeze(model)


def merge_lora(model: nn.Module) -> nn.Module:
    """Turn every `LoRALinear` into one plain, frozen layer, in place; the outputs stay.

    Returns:
        the model.
    """
    for parent, name, layer in _layers(model, LoRALinear):
        setattr(parent, name, layer.merged())
    return model


def _layers(model: nn.Module, kind: type, names: Sequence[str] | None = None) -> list[tuple]:
    """(module, name, layer) of every layer of a kind, with one of the names if given."""
    return [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, kind) and (names is None or name in names)
    ]
