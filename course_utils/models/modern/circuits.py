"""What a head looks at and what a layer already knows: scores of heads, logit lens, rollout.

Maps are what the models return with `return_weights`: one (B, h, Tq, Tk) a layer. How a head that
was found by its score is proved to do the work is in `interventions.py`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def repeated_sequences(
    batch: int, length: int, vocab_size: int, periods: range, generator=None
) -> tuple[Tensor, Tensor]:
    """Random tokens that repeat, each text with a period of its own.

    With one period for all, a model can learn to look back by a fixed number of positions; only
    where the period varies must it look for what followed the same token before.

    Args:
        periods: from which each text draws its period.

    Returns:
        tokens (batch, length), and the periods (batch,): from position `period` on, each token is
        the one `period` before.

    Raises:
        ValueError: a period is below 1, or so long that nothing is repeated.
    """
    if not 1 <= min(periods) <= max(periods) < length:
        raise ValueError(f"periods must lie in 1..{length - 1}, below the length, got {periods}")
    choice = torch.randint(len(periods), (batch,), generator=generator)
    period = torch.tensor(list(periods))[choice]  # (B,)
    once = torch.randint(vocab_size, (batch, max(periods)), generator=generator)
    place = torch.arange(length) % period[:, None]  # (B, T)
    return once.gather(1, place), period


def looks_back(maps: Sequence[Tensor], distance: Tensor | int, start: Tensor | int = 0) -> Tensor:
    """The mean weight from each query to the key `distance` positions before it: (layers, h).

    Args:
        maps: self-attention, one (B, h, T, T) a layer.
        distance, start: one for all texts, or one each (B,). Queries before `start`, and those
            that have no such key, are not counted.

    Raises:
        ValueError: no query is left.
    """
    maps = torch.stack(list(maps))  # (layers, B, h, T, T)
    batch, length = maps.shape[1], maps.shape[-1]
    distance, start = (torch.as_tensor(n).expand(batch)[:, None] for n in (distance, start))
    query = torch.arange(length)
    key = query - distance  # (B, T)
    counted = (key >= 0) & (key < length) & (query >= start)
    if not counted.any():
        raise ValueError(f"no query from {start.min()} on has a key {distance.min()} before it")
    index = key.clamp(0, length - 1)[None, :, None, :, None].expand(*maps.shape[:-1], 1)
    weight = maps.gather(-1, index).squeeze(-1)  # (layers, B, h, T)
    weight = weight * counted[None, :, None]
    return weight.sum(dim=(1, 3)) / counted.sum()


def induction_scores(maps: Sequence[Tensor], period: Tensor) -> Tensor:
    """How much each head looks at what followed the same token one period ago: (layers, h).

    Only queries with an earlier copy count, from position `period` (B,) on. Source: Olsson et al.
    2022, In-context learning and induction heads.
    """
    return looks_back(maps, period - 1, period)


def logit_lens(states: Sequence[Tensor], norm: nn.Module, output: nn.Module) -> Tensor:
    """What the model would say if it stopped after each layer.

    Args:
        states: the residual stream (B, T, d_model) after each layer, as `recorded` gives it.
        norm, output: the model's own last norm and output layer.

    Returns:
        (layers, B, T, V) logits; for the last layer the model's own. Source: nostalgebraist 2020.
    """
    return torch.stack([output(norm(state)) for state in states])


def rollout(maps: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """How much of each input token each position holds, if attention alone moved it: (B, T, T).

    The heads' mean and the residual path, (1 - r) A + r I, multiplied from layer to layer; rows
    sum to 1. It knows neither values nor feed-forward networks. Source: Abnar and Zuidema 2020,
    section 3.

    Raises:
        ValueError: `residual` is not in 0..1.
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"residual must lie in 0..1, got {residual}")
    joint = torch.eye(maps[0].shape[-1]).to(maps[0])
    for weights in maps:
        mixed = (1 - residual) * weights.mean(dim=1) + residual * torch.eye(len(joint[-1])).to(
            joint
        )
        joint = mixed @ joint
    return joint
