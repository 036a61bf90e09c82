"""Learning-rate schedules: warm-up, then the inverse square root, a cosine or a straight line.

A schedule is a function of the update's number, which counts from 1 as in Vaswani et al. 2017. All
but `noam` give a share of the peak, between 0 and 1; `scheduler` ties such a share to an optimiser.
"""

import math
from collections.abc import Callable

import torch


def _check(step: int, warmup: int) -> None:
    if step < 1 or warmup < 1:
        raise ValueError(f"updates and warm-up count from 1, got step={step}, warmup={warmup}")


def inverse_sqrt(step: int, warmup: int) -> float:
    """Share of the peak: up in a line until `warmup`, then down as 1 / sqrt(step).

    >>> [round(inverse_sqrt(step, 4), 2) for step in (1, 4, 16, 64)]
    [0.25, 1.0, 0.5, 0.25]

    Raises:
        ValueError: step or warmup is below 1.
    """
    _check(step, warmup)
    return min(step / warmup, math.sqrt(warmup / step))


def noam(step: int, d_model: int = 512, warmup: int = 4000) -> float:
    """The learning rate of the paper: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5).

    It peaks at step = warmup, at 1 / sqrt(d_model * warmup): a larger model and a longer warm-up
    both lower the peak. Source: Vaswani et al. 2017, section 5.3; named after Noam Shazeer.

    Raises:
        ValueError: step, warmup or d_model is below 1.
    """
    if d_model < 1:
        raise ValueError(f"d_model must be at least 1, got {d_model}")
    return inverse_sqrt(step, warmup) / math.sqrt(d_model * warmup)


def cosine(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    """Share of the peak: up in a line until `warmup`, then half a cosine down to `floor`.

    `floor` is reached at update `total` and kept from there on. Source of the cosine: Loshchilov
    and Hutter 2017.

    >>> [round(cosine(step, 10, 110), 2) for step in (5, 10, 60, 110, 200)]
    [0.5, 1.0, 0.5, 0.0, 0.0]

    Raises:
        ValueError: step or warmup is below 1, or total is not above warmup.
    """
    _check(step, warmup)
    if total <= warmup:
        raise ValueError(f"the decay needs total > warmup, got total={total}, warmup={warmup}")
    if step <= warmup:
        return step / warmup
    done = min(1.0, (step - warmup) / (total - warmup))  # share of the way down
    return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * done)) / 2.0


def warmup_then_decay(step: int, warmup: int, total: int) -> float:
    """Share of the peak: up in a line until `warmup`, then down in a line to 0 after `total`.

    >>> [round(warmup_then_decay(step, 4, 10), 2) for step in (1, 4, 5, 10)]
    [0.25, 1.0, 1.0, 0.17]

    Raises:
        ValueError: step or warmup is below 1.
    """
    _check(step, warmup)
    return warmup_then_decay_after(step - 1, warmup, total)


def warmup_then_decay_after(done: float, warmup: float, total: float) -> float:
    """The same for the update that comes after `done` of `total`, counted in updates or seconds."""
    return min(1.0, (done + 1) / warmup, (total - done) / max(1, total - warmup))


def scheduler(
    optimizer: torch.optim.Optimizer, share: Callable[[int], float]
) -> torch.optim.lr_scheduler.LambdaLR:
    """Give update s the learning rate lr * share(s), where lr is the optimiser's own, the peak.

    Call its `step()` after every `optimizer.step()`.
    """
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda updates_done: share(updates_done + 1)
    )
