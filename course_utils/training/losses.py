"""The loss over real tokens; and label smoothing by hand, where all other answers get a little.

Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.
"""

import math

import torch.nn.functional as F
from torch import Tensor

from course_utils.text.vocab import Vocab


def masked_cross_entropy(
    logits: Tensor, targets: Tensor, *, pad: int = Vocab.pad, label_smoothing: float = 0.0
) -> Tensor:
    """Mean negative log-likelihood over real tokens only; padding has no part in it.

    Args:
        logits: (B, T, V); targets: (B, T) ids.

    Raises:
        ValueError: there is no real token.
    """
    real = targets.ne(pad)  # (B, T)
    if not real.any():
        raise ValueError("every target is padding, so there is nothing to predict")
    if not real.all():  # the gradient of a NaN at padding would be NaN
        logits = logits.masked_fill(~real.unsqueeze(-1), 0.0)
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad, label_smoothing=label_smoothing
    )


def _check(smoothing: float) -> None:
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"smoothing must lie in 0..1, got {smoothing}")


def smoothed_targets(targets: Tensor, vocab_size: int, smoothing: float = 0.1) -> Tensor:
    """The distribution to learn: (...,) ids -> (..., V), each row summing to 1.

    Every token gets smoothing / V, and the right one 1 - smoothing on top of that.

    Raises:
        ValueError: smoothing is not in 0..1, or an id is not in 0..vocab_size - 1.
    """
    _check(smoothing)
    if targets.numel() and not 0 <= targets.min() <= targets.max() < vocab_size:
        raise ValueError(
            f"targets must lie in 0..{vocab_size - 1}, got {int(targets.min())}.."
            f"{int(targets.max())}"
        )
    return F.one_hot(targets, vocab_size) * (1.0 - smoothing) + smoothing / vocab_size


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, pad: int | None = None
) -> Tensor:
    """Mean cross-entropy against the smoothed targets, over the tokens that are not `pad`.

    Args:
        logits: (..., V); targets: (...,) ids.

    Raises:
        ValueError: see `smoothed_targets`; or every target is padding.
    """
    log_probs = logits.log_softmax(dim=-1)  # (..., V)
    losses = -(smoothed_targets(targets, logits.shape[-1], smoothing) * log_probs).sum(dim=-1)
    if pad is None:
        return losses.mean()
    real = targets != pad  # (...,)
    if not real.any():
        raise ValueError("every target is padding, so there is nothing to predict")
    return losses[real].mean()


def lowest_loss(vocab_size: int, smoothing: float = 0.1) -> float:
    """The entropy of a smoothed target: no model gets a smaller loss (0 without smoothing)."""
    _check(smoothing)
    other = smoothing / vocab_size
    right = 1.0 - smoothing + other
    return -sum(n * p * math.log(p) for n, p in ((1, right), (vocab_size - 1, other)) if p > 0)
