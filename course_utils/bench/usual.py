"""An update and a greedy search as everybody writes them; several peers share them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.text.vocab import Vocab


def step(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One update with clipped gradients, as everybody writes it."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def last_tokens(
    logits_after: Callable[[Tensor], Tensor], batch: int, steps: int, device: torch.device
) -> Tensor:
    """Greedy decoding by a function from all tokens so far (B, T) to the next logits (B, V)."""
    tokens = torch.full((batch, 1), Vocab.bos, device=device)
    for _ in range(steps):
        best = logits_after(tokens).argmax(dim=-1, keepdim=True)
        tokens = torch.cat((tokens, best), dim=1)
    return tokens[:, 1:]
