"""Loss, learning-rate schedule and training loop for the translation models."""

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm.auto import tqdm

from course_utils.text.batches import Batch, Example, make_batches
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


def warmup_then_decay(step: int, total_steps: int, warmup_steps: int) -> float:
    """Share of the peak learning rate at update `step` (from 0): up in a line, then down to 0.

    >>> [round(warmup_then_decay(s, 10, 4), 2) for s in (0, 3, 4, 9)]
    [0.25, 1.0, 1.0, 0.17]
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return (total_steps - step) / max(1, total_steps - warmup_steps)


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


def _schedule(optimizer: torch.optim.Optimizer, steps: int, warmup: float):
    warmup_steps = max(1, round(warmup * steps))
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_then_decay(step, steps, warmup_steps)
    )


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss_of: Callable[[Any], Tensor],
    *,
    lr: float = 1e-3,
    warmup: float = 0.1,
    clip: float = 1.0,
    weight_decay: float = 0.0,
    parameters: Iterable[nn.Parameter] | None = None,
) -> list[float]:
    """Train any model with AdamW, one update per batch; it ends in evaluation mode, come what may.

    Args:
        batches: all of them, in order; a batch is whatever `loss_of` takes. What has no length,
            such as a generator, is read to its end first.
        loss_of: from a batch to the loss, a tensor without axes.
        lr: peak learning rate, reached after the share `warmup` of all updates, then falling
            to 0 in a line.
        parameters: those to train; by default all of the model's that require a gradient.

    Returns:
        the loss of every batch, before its update.

    Raises:
        ValueError: there are no batches, or nothing to train.
        FloatingPointError: the loss or its gradient is no longer finite; the weights are those
            before it.
    """
    if not isinstance(batches, Sized):
        batches = list(batches)
    chosen = model.parameters() if parameters is None else parameters
    chosen = [p for p in chosen if p.requires_grad]
    if not len(batches) or not chosen:
        raise ValueError(
            f"nothing to train: {len(batches)} batches, {len(chosen)} tensors that need a gradient"
        )
    optimizer = torch.optim.AdamW(chosen, lr=lr, weight_decay=weight_decay, betas=(0.9, 0.98))
    schedule = _schedule(optimizer, len(batches), warmup)
    losses = []
    model.train()
    quiet = bool(os.environ.get("TQDM_DISABLE"))
    try:
        for batch in tqdm(batches, desc="training", unit="batch", leave=False, disable=quiet):
            loss = loss_of(batch)
            update(loss, optimizer, schedule, clip)
            losses.append(loss.item())
    finally:
        model.eval()
    return losses


class Trainer:
    """Train a translation model under teacher forcing, with Adam, and pause between epochs.

    Args:
        model: called as model(src, src_lens, tgt_in) -> logits.
        epochs: passes over the examples, all `run` calls together; the learning rate is scheduled
            over them.
        lr: peak learning rate, reached after the share `warmup` of all updates.
        clip: largest norm of the gradient.
        seed: of the order of the examples; torch's own generator drives dropout.
        max_steps: end the schedule after so many updates.

    Raises:
        ValueError: there is nothing to do: no examples, or a count below 1.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: Sequence[Example],
        *,
        epochs: int,
        batch_size: int = 64,
        lr: float = 2e-3,
        warmup: float = 0.1,
        label_smoothing: float = 0.0,
        clip: float = 1.0,
        seed: int = 0,
        max_steps: int | None = None,
    ):
        counts = {"examples": len(examples), "epochs": epochs, "batch_size": batch_size}
        counts |= {} if max_steps is None else {"max_steps": max_steps}
        if min(counts.values()) < 1:
            raise ValueError(f"training needs at least one of each, got {counts}")
        self.model, self.examples, self.batch_size = model, examples, batch_size
        self.lr, self.label_smoothing, self.clip = lr, label_smoothing, clip
        self.steps_per_epoch = math.ceil(len(examples) / batch_size)
        self.step, self.steps = 0, min(epochs * self.steps_per_epoch, max_steps or math.inf)
        self.rng, self.device = random.Random(seed), next(model.parameters()).device
        fused = self.device.type in ("cpu", "cuda")  # one pass over the weights
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=lr, betas=(0.9, 0.98), eps=1e-9, fused=fused
        )
        self.schedule = _schedule(self.optimizer, self.steps, warmup)

    def run(self, epochs: int | None = None) -> list[float]:
        """Train for some epochs, or to the end; the model ends in evaluation mode, come what may.

        Returns:
            the mean loss per real token, once an epoch (the last one may be cut off).

        Raises:
            FloatingPointError: the loss or its gradient is no longer finite; the weights are those
                before it.
        """
        end = math.inf if epochs is None else self.step + epochs * self.steps_per_epoch
        end, losses = min(end, self.steps), []
        self.model.train()
        quiet = bool(os.environ.get("TQDM_DISABLE"))  # the notebook bar does not read it by itself
        try:
            with tqdm(
                total=end - self.step, desc="training", unit="batch", leave=False, disable=quiet
            ) as bar:
                while self.step < end:
                    losses.append(self._epoch(bar))
        finally:
            self.model.eval()
        return losses

    def _epoch(self, bar: tqdm) -> float:
        total, tokens = 0.0, 0
        for batch in make_batches(self.examples, self.batch_size, self.rng):
            if self.step == self.steps:
                break
            loss = self._update(batch.to(self.device))
            total, tokens = total + loss * batch.num_tokens, tokens + batch.num_tokens
            bar.update()
            bar.set_postfix(loss=f"{total / tokens:.3f}")
        return total / tokens

    def _update(self, batch: Batch) -> float:
        logits = self.model(batch.src, batch.src_lens, batch.tgt_in)  # (B, Tt, V)
        loss = masked_cross_entropy(logits, batch.tgt_out, label_smoothing=self.label_smoothing)
        update(loss, self.optimizer, self.schedule, self.clip)
        self.step += 1
        return loss.item()


def train(model: nn.Module, examples: Sequence[Example], **options) -> list[float]:
    """Train a model to the end: `Trainer(model, examples, **options).run()`."""
    return Trainer(model, examples, **options).run()
