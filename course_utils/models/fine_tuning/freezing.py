"""Which weights are trained: fix them, take them out and put others in."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from course_utils.models.transformer import EncoderBlock


def freeze(model: nn.Module) -> nn.Module:
    """Fix the pre-trained weights, in place; what the methods of this package add is trained.

    It may come before or after them. What each adds stands in its attribute `added`.
    """
    model.requires_grad_(False)
    for part in model.modules():
        for name in getattr(part, "added", ()):
            getattr(part, name).requires_grad_(True)
    return model


def task_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights that are trained, by name: all that a task has to store."""
    return {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}


def load_task_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put the weights of another task into a model that was extended in the same way.

    Raises:
        ValueError: the model trains other tensors than those given, or of other shapes.
    """
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    sizes, given = ({n: tuple(p.shape) for n, p in some.items()} for some in (trained, weights))
    if sizes != given:
        odd = sorted(dict(sizes.items() ^ given.items()))
        raise ValueError(
            f"these weights belong to another model, see {', '.join(odd[:3])}: extend the model "
            "with the method and the sizes with which they were trained"
        )
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(weights[name])


def encoder_blocks(model: nn.Module) -> list[EncoderBlock]:
    """All encoder blocks of a model.

    Raises:
        ValueError: there are none.
    """
    blocks = [part for part in model.modules() if isinstance(part, EncoderBlock)]
    if not blocks:
        raise ValueError(f"{type(model).__name__} has no EncoderBlock to extend")
    return blocks


def check_size(name: str, size: int) -> None:
    """Raise ValueError unless a size is at least 1."""
    if size < 1:
        raise ValueError(f"{name} must be at least 1, got {size}")
