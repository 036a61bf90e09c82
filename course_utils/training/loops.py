"""Training loops: `fit` for any model, `Trainer` for the translation models."""

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from course_utils.text.batches import Batch, Example, make_batches
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.schedules import warmup_then_decay
from course_utils.training.steps import update


def _rate(step: int, peak: float, warmup: float, steps: int) -> float:
    """The learning rate of update `step`, from 1; `warmup` is a share of all `steps`."""
    return peak * warmup_then_decay(step, max(1, round(warmup * steps)), steps)


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
    losses = []
    model.train()
    quiet = bool(os.environ.get("TQDM_DISABLE"))
    try:
        bar = tqdm(batches, desc="training", unit="batch", leave=False, disable=quiet)
        for step, batch in enumerate(bar, start=1):
            loss, rate = loss_of(batch), _rate(step, lr, warmup, len(batches))
            update(loss, optimizer, lr=rate, step=step, clip=clip)
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
        seed: of the order of the examples; dropout follows torch's global generator.
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
        self.lr, self.warmup, self.clip = lr, warmup, clip
        self.label_smoothing = label_smoothing
        self.steps_per_epoch = math.ceil(len(examples) / batch_size)
        self.step, self.steps = 0, min(epochs * self.steps_per_epoch, max_steps or math.inf)
        self.rng, self.device = random.Random(seed), next(model.parameters()).device
        fused = self.device.type in ("cpu", "cuda")  # one pass over the weights
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=lr, betas=(0.9, 0.98), eps=1e-9, fused=fused
        )

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
        step = self.step + 1
        rate = _rate(step, self.lr, self.warmup, self.steps)
        update(loss, self.optimizer, lr=rate, step=step, clip=self.clip)
        self.step = step
        return loss.item()


def train(model: nn.Module, examples: Sequence[Example], **options) -> list[float]:
    """Train a model to the end: `Trainer(model, examples, **options).run()`."""
    return Trainer(model, examples, **options).run()
