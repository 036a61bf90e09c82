"""Reaching into a running model: record, switch off, put back (激活修补, activation patching).

All functions take parts of any model here: blocks of the language models, of the classifier, of
the translator. Counted from 0: heads, layers, positions.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from course_utils.models.attention import MultiHeadAttention


def _first(output) -> Tensor:
    """A block's stream of vectors, whatever else the block returns beside it."""
    return output[0] if isinstance(output, tuple) else output


@contextmanager
def recorded(parts: Sequence[nn.Module]):
    """Inside, each call of each part is noted; gives a list of (B, T, d) per part, the last call.

    >>> with recorded(model.blocks) as states:  # doctest: +SKIP
    ...     model(tokens)
    """
    states: list[Tensor | None] = [None] * len(parts)

    def note(place):
        def hook(module, inputs, output):
            states[place] = _first(output).detach()

        return hook

    with ExitStack() as stack:
        for place, part in enumerate(parts):
            stack.callback(part.register_forward_hook(note(place)).remove)
        yield states


@contextmanager
def patched(part: nn.Module, state: Tensor, positions: Sequence[int] | slice = slice(None)):
    """Inside, the part's output at some positions is that of `state`, (B or 1, T, d)."""

    def hook(module, inputs, output):
        x = _first(output).clone()
        x[:, positions] = state[:, positions].to(x)
        return (x, *output[1:]) if isinstance(output, tuple) else x

    handle = part.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def ablated(attention: MultiHeadAttention, heads: Iterable[int], value: Tensor | float = 0.0):
    """Inside, the outputs of some heads are `value` before W_o mixes them.

    Args:
        value: 0, or what broadcasts to (B, T, heads, d_model / h), such as `mean_heads`: a head
            whose mean matters is not credited for it then.

    Raises:
        ValueError: there is no such head.
    """
    heads = list(heads)
    if not all(0 <= head < attention.num_heads for head in heads):
        raise ValueError(f"heads count from 0 to {attention.num_heads - 1}, got {heads}")

    def hook(module, inputs):
        merged = inputs[0].unflatten(-1, (attention.num_heads, -1)).clone()  # (B, T, h, d/h)
        merged[:, :, heads] = torch.as_tensor(value).to(merged)
        return (merged.flatten(-2),)

    handle = attention.W_o.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def head_outputs(attention: MultiHeadAttention):
    """Inside, notes what every head gives to W_o: a list whose one entry is (B, T, h, d_model / h).

    The mean over B and T, `outputs[0].mean((0, 1))[heads]`, is a value for `ablated`.
    """
    outputs: list[Tensor] = []

    def hook(module, inputs):
        outputs[:] = [inputs[0].detach().unflatten(-1, (attention.num_heads, -1))]

    handle = attention.W_o.register_forward_pre_hook(hook)
    try:
        yield outputs
    finally:
        handle.remove()


def patch_effects(
    parts: Sequence[nn.Module],
    clean: Callable[[], Tensor],
    corrupted: Callable[[], Tensor],
    length: int,
) -> Tensor:
    """How much of the clean answer comes back when one clean state replaces a corrupted one.

    Args:
        parts: blocks, or other parts whose output is (B, T, d).
        clean, corrupted: run the model on the one or the other input, of one length, and give one
            number, such as the difference of two logits.
        length: T.

    Returns:
        (parts, T): 0 where the patch changes nothing, 1 where it brings back the clean number.
        Source: Vig et al. 2020; Meng et al. 2022, section 2.

    Raises:
        ValueError: both runs give the same number, so that there is nothing to bring back.
    """
    with torch.no_grad():
        with recorded(parts) as states:
            best = clean()
        worst = corrupted()
        if best == worst:
            raise ValueError(f"the clean and the corrupted run both give {best.item():.4g}")
        effects = torch.empty(len(parts), length)
        for place, (part, state) in enumerate(zip(parts, states, strict=True)):
            for position in range(length):
                with patched(part, state, [position]):
                    effects[place, position] = (corrupted() - worst) / (best - worst)
    return effects
