"""One update of the weights: the step that every training loop takes."""

import torch
from torch import Tensor, nn


def update(
    loss: Tensor,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    clip: float = 1.0,
) -> None:
    """One step down the gradient of `loss`, whose norm is clipped to `clip`.

    Raises:
        FloatingPointError: the loss or its gradient is not finite; the weights stay as they are.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    _check_finite("the loss", loss, schedule)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, clip)
    _check_finite("the norm of the gradient", norm, schedule)
    optimizer.step()
    schedule.step()


def _check_finite(name: str, number: Tensor, schedule) -> None:
    if not number.isfinite():
        raise FloatingPointError(
            f"{name} is {number.item()} at update {schedule.last_epoch + 1}: lower lr (now "
            f"{schedule.base_lrs[0]:g}), raise warmup, and look for a fully masked row; the "
            "weights are those before it"
        )
