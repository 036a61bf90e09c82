"""Attention alone, forward and backward: with weights, without, and torch's bare kernel."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.bench.rounds import OURS, Measurement, rates
from course_utils.bench.setting import D_MODEL, HEADS
from course_utils.models.attention import DotProductAttention

SIZES = ((64, 20), (16, 128), (2, 512))  # sentences, positions


def forward_backward(attend: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], None]:
    """One pass through an attention and back to its inputs."""

    def run() -> None:
        torch.autograd.grad(attend(*inputs).sum(), inputs)

    return run


def contest(sentences: int, positions: int, device: torch.device) -> dict[str, Callable]:
    """Ours without weights against the kernel it calls; ours with weights against d2l's."""
    shape = (sentences, HEADS, positions, D_MODEL // HEADS)
    generator = torch.Generator().manual_seed(0)
    heads = [torch.randn(shape, generator=generator).to(device).requires_grad_() for _ in range(3)]
    ours = DotProductAttention()
    calls = {
        OURS: forward_backward(ours, heads),
        "sdpa kernel": forward_backward(F.scaled_dot_product_attention, heads),
        "ours, with weights": forward_backward(
            lambda q, k, v: ours(q, k, v, return_weights=True)[0], heads
        ),
    }
    try:
        from d2l import torch as d2l
    except ModuleNotFoundError:
        return calls
    theirs = d2l.DotProductAttention(dropout=0.0)
    flat = [x.detach().flatten(0, 1).requires_grad_() for x in heads]
    lens = torch.full((len(flat[0]),), positions, device=device)
    calls["d2l"] = forward_backward(lambda q, k, v: theirs(q, k, v, lens), flat)
    return calls


def measurements(rounds: int, device: torch.device) -> list[Measurement]:
    """All sizes; many passes to a round, for one is short."""
    found = []
    for sentences, positions in SIZES:
        calls = contest(sentences, positions, device)
        many = {name: lambda call=call: [call() for _ in range(10)] for name, call in calls.items()}
        values = rates(many, 10, rounds, device)
        shape = f"{sentences} x {positions}, forward and backward"
        found.append(Measurement("attention", shape, "passes/s", values))
    return found
