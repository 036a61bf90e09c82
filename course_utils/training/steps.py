"""One update of the weights: the step that every training loop takes."""

import torch
from torch import Tensor, nn


def update(
    loss: Tensor, optimizer: torch.optim.Optimizer, *, lr: float, step: int, clip: float = 1.0
) -> None:
    """One step down the gradient of `loss`, whose norm is clipped to `clip`.

    Args:
        lr: the learning rate of this update.
        step: its number, from 1, for the message.

    Raises:
        FloatingPointError: the loss or its gradient is not finite; the weights stay as they are.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, clip)
    for name, number in (("the loss", loss), ("the norm of the gradient", norm)):
        if not number.isfinite():
            raise FloatingPointError(
                f"{name} is {number.item():g} at update {step}, with a learning rate of {lr:g}: "
                "lower lr, raise warmup, and look for a fully masked row; the weights are those "
                "before it"
            )
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
