"""Exercises of chapter 14: LoRA, adapters and prefixes."""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import (
    DIVIDED_AGAIN,
    NOT_LOW,
    lowered,
    mixed_up,
    not_low_enough,
    not_shifted,
    softmax_of_hidden,
    unshifted,
)
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw, far_apart

NOTEBOOK = "14_fine_tuning"


NAMES = ("A_q", "B_q", "A_v", "B_v")


def _trained(layer):
    return [p for p in layer.parameters() if p.requires_grad]


def _input_gradient(layer, x):
    """What comes back to the input of outputs that count differently: zeros where nothing does."""
    x = x.clone().requires_grad_()
    output = layer(x)
    if not output.requires_grad:
        return torch.zeros_like(x)
    counts = torch.linspace(0.5, 1.5, output.numel()).view_as(output)
    (gradient,) = torch.autograd.grad((output * counts).sum(), x, allow_unused=True)
    return torch.zeros_like(x) if gradient is None else gradient


def play_two(answer, weight, bias, x, known, alpha):
    """Wrap a stacked layer, look at its start, then give the four matrices known values."""
    base = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    base.weight.data.copy_(weight)
    if bias is not None:
        base.bias.data.copy_(bias)
    layer = answer(base, len(known[0]), alpha)
    start = layer(x).detach()
    outcome = {
        "numbers that are trained": sum(p.numel() for p in _trained(layer)),
        "starts like the base": bool(torch.allclose(start, F.linear(x, weight, bias), atol=1e-5)),
    }
    named = [getattr(layer, name) for name in NAMES]  # AttributeError names what is missing
    named = [getattr(p, "weight", p) for p in named]  # a linear layer of that name will do
    output = layer(torch.randn(64, x.shape[-1]))
    if output.requires_grad:
        (output * torch.linspace(0.5, 1.5, output.shape[-1])).sum().backward()
    outcome["the first step moves something"] = any(
        p.grad is not None and bool(p.grad.abs().max() > 1e-6) for p in named
    )
    for p, value in zip(named, known):
        p.data = value.clone()
    for p in _trained(layer):  # biases of the four, if there are any
        if p.dim() == 1 and p is not base.bias:
            p.data.zero_()
    return outcome | {"output": layer(x).detach(), "gradient of x": _input_gradient(layer, x)}


class _TwoLoRAs(nn.Module):
    """The switchable layer: each class attribute is a switch."""

    start = "B zero"
    scale = "alpha / r"
    frozen = "all"
    base_term = "whole"
    between = "nothing"
    registered = True
    base_call = "plain"
    gets = "qv"
    pairs = "own"
    ways = "A then B"

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        if self.frozen == "all":
            base.requires_grad_(False)
        elif self.frozen == "weight":
            base.weight.requires_grad_(False)
        d = base.in_features
        for name in NAMES:
            value = torch.randn((rank, d) if name[0] == "A" else (d, rank)) / d**0.5
            if self.start == "both zero" or (self.start == "B zero" and name[0] == "B"):
                value = value * 0
            setattr(self, name, nn.Parameter(value) if self.registered else value)
        if self.pairs == "one A":
            self.A_v = self.A_q
        scales = {"alpha / r": alpha / rank, "none": 1, "alpha": alpha, "r / alpha": rank / alpha,
                  "root": alpha / rank**0.5, "floor": alpha // rank,
                  "width": alpha / d}  # fmt: skip
        self.factor = scales[self.scale]

    def _update(self, x, A, B):
        narrow = x @ A.T
        return self.factor * (F.relu(narrow) if self.between == "relu" else narrow) @ B.T

    def forward(self, x):
        out = self.base(x)
        out = out.detach() if self.base_call == "no grad" else out
        if self.base_term == "none":
            out = out * 0
        if self.base_term == "no bias":
            out = x @ self.base.weight.T
        first = self._update(x, self.A_q, self.B_q)
        second = self._update(x, self.A_v, self.B_v)
        if self.pairs == "swapped":
            first, second = second, first
        if self.pairs == "q for both":
            second = first
        if self.pairs == "added":
            first = second = first + second
        none = torch.zeros_like(first)
        parts = {"qv": (first, none, second), "qk": (first, second, none),
                 "kv": (none, first, second), "q": (first, none, none),
                 "v": (none, none, second), "qkv": (first, first, second),
                 "qvv": (first, second, second)}  # fmt: skip
        return out + torch.cat(parts[self.gets], dim=-1)


class _ThreeParts(nn.Module):
    """A right variant: linear layers without bias, the output cut into three."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.pretrained = base
        for p in base.parameters():
            p.requires_grad = False
        d = base.in_features
        self.A_q, self.A_v = (nn.Linear(d, rank, bias=False) for _ in range(2))
        self.B_q, self.B_v = (nn.Linear(rank, d, bias=False) for _ in range(2))
        nn.init.zeros_(self.B_q.weight)
        nn.init.zeros_(self.B_v.weight)
        self.factor = alpha / rank

    def forward(self, x):
        q, k, v = self.pretrained(x).chunk(3, dim=-1)
        q = q + self.B_q(self.A_q(x)) * self.factor
        v = v + self.B_v(self.A_v(x)) * self.factor
        return torch.cat([q, k, v], dim=-1)


class _OneWeight(nn.Module):
    """A right variant: the sum of the matrices is made first; it is A that starts at zero."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.register_buffer("weight", base.weight.detach().clone())
        self.register_buffer("bias", None if base.bias is None else base.bias.detach().clone())
        d = base.in_features
        self.A_q, self.A_v = (nn.Parameter(torch.zeros(rank, d)) for _ in range(2))
        self.B_q, self.B_v = (nn.Parameter(torch.randn(d, rank)) for _ in range(2))
        self.rank, self.alpha = rank, alpha

    def forward(self, x):
        nothing = torch.zeros(x.shape[-1], x.shape[-1])
        update = torch.cat([self.B_q @ self.A_q, nothing, self.B_v @ self.A_v])
        return F.linear(x, self.weight + self.alpha / self.rank * update, self.bias)


_LORA_SCALE = [
    wrong(
        "the scale is divided by the root of the rank",
        "low rank",
        "It is alpha / r here; the root belongs to attention scores, and to a variant of LoRA.",
        scale="root",
    ),
    wrong(
        "the update is not scaled",
        "low rank",
        "The product B A is multiplied by alpha / r.",
        scale="none",
    ),
    wrong(
        "the update is scaled by alpha, not by alpha / r",
        "low rank",
        "Divide by the rank, so that a larger rank does not make a larger update.",
        scale="alpha",
    ),
    wrong(
        "the scale is turned over",
        "low rank",
        "It is alpha / r, not r / alpha.",
        scale="r / alpha",
    ),
    wrong(
        "the scale is rounded down to a whole number",
        "low rank",
        "alpha // r makes 1.5 of it 1, and 0.75 of it 0: divide with /.",
        scale="floor",
    ),
]


class _InPlaces(nn.Module):
    """A right variant: the updates are added to slices of the output."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.eval().requires_grad_(False)
        self.d, self.s = base.in_features, alpha / rank
        self.A_q = nn.Parameter(torch.empty(rank, self.d).uniform_(-1, 1))
        self.A_v = nn.Parameter(torch.empty(rank, self.d).uniform_(-1, 1))
        self.B_q, self.B_v = (nn.Parameter(base.weight.new_zeros(self.d, rank)) for _ in range(2))

    def forward(self, x):
        out = self.base(x).clone()
        out[..., : self.d] += self.s * torch.einsum("ni,ri,or->no", x, self.A_q, self.B_q)
        out[..., 2 * self.d :] += self.s * torch.einsum("ni,ri,or->no", x, self.A_v, self.B_v)
        return out


def _two(seed, d, rank, tokens, alpha, bias=True):
    """A probe: a stacked layer of 3d outputs, tokens, and A_q, B_q, A_v, B_v."""
    weight, b, x = draw(seed, (3 * d, d), (3 * d,), (tokens, d))
    known = draw(seed + 50, (rank, d), (d, rank), (rank, d), (d, rank))
    return weight, b if bias else None, x, known, alpha


@exercise(
    kind="class",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=2,
    trains="LoRA where one layer makes queries, keys and values",
    text="""
    In many models one layer, `nn.Linear(d, 3 * d)`, makes queries, keys and values at once: its
    output holds the d features of the query, then those of the key, then those of the value. Put
    LoRA onto queries and values, and leave the keys alone. The four trained matrices are called
    `A_q`, `B_q`, `A_v`, `B_v`; each A is `(rank, d)`, each B is `(d, rank)`, and both updates are
    scaled by alpha / rank. The base is frozen; at first the layer must give what its base gives,
    and still be able to learn.
    """,
    reference=_TwoLoRAs,
    play=play_two,
    probes=[
        _two(1401, 2, 1, 1, 4.0),
        _two(1402, 5, 2, 3, 6.0),
        _two(1403, 4, 3, 2, 1.5),
        _two(1404, 3, 2, 2, 3.0, bias=False),
    ],
    mistakes=[
        wrong(
            "B does not start at zero",
            "neutral start",
            "With B random the layer starts away from its base and disturbs what the base knows.",
            start="both random",
        ),
        wrong(
            "A and B both start at zero",
            "neutral start",
            "Each gets its gradient through the other, so neither would move: draw A at random.",
            start="both zero",
        ),
        *_LORA_SCALE,
        wrong(
            "the scale is divided by the width, not by the rank",
            "low rank",
            "It is alpha / r: r is the number of rows of A, d the number of its columns.",
            scale="width",
        ),
        wrong(
            "the base is not frozen",
            "frozen base",
            "Its weight and bias would be trained too: base.requires_grad_(False).",
            frozen="none",
        ),
        wrong(
            "the bias of the base is not frozen",
            "frozen base",
            "A linear layer has two tensors, weight and bias, and both stay fixed.",
            frozen="weight",
        ),
        wrong(
            "the output of the base is missing",
            "residual",
            "The updates are added to what the pre-trained layer gives.",
            base_term="none",
        ),
        wrong(
            "the bias of the base is lost",
            "residual",
            "x @ weight.T is only a part of base(x).",
            base_term="no bias",
        ),
        wrong(
            "there is an activation between A and B",
            "low rank",
            "LoRA is linear, so that B A can be added to the weight; an adapter is not.",
            between="relu",
        ),
        wrong(
            "A and B are not trained",
            "frozen base",
            "All four must be an nn.Parameter, and freezing is for the base alone.",
            registered=False,
        ),
        wrong(
            "no gradient comes back through the base",
            "gradient",
            "A frozen base is still on the way back to x: leave out no_grad and detach in forward.",
            base_call="no grad",
        ),
        wrong(
            "the keys get the update of the values",
            "role of q, k, v",
            "The output is queries, keys, values; the second update belongs to the last third.",
            gets="qk",
        ),
        wrong(
            "the keys get the update of the queries",
            "role of q, k, v",
            "The output is queries, keys, values; the first update belongs to the first third.",
            gets="kv",
        ),
        wrong(
            "the keys are changed as well",
            "role of q, k, v",
            "The middle third must be what the base gives.",
            {"gets": "qvv"},
            gets="qkv",
        ),
        wrong(
            "only the queries get an update",
            "role of q, k, v",
            "The last third, the values, gets B_v A_v x.",
            gets="q",
        ),
        wrong(
            "only the values get an update",
            "role of q, k, v",
            "The first third, the queries, gets B_q A_q x.",
            gets="v",
        ),
        wrong(
            "the updates of queries and values are exchanged",
            "role of q, k, v",
            "B_q A_q x goes to the first third, B_v A_v x to the last.",
            pairs="swapped",
        ),
        wrong(
            "queries and values share their A",
            "sharing",
            "Each has an A of its own, drawn by itself.",
            pairs="one A",
        ),
        wrong(
            "queries and values share one update",
            "sharing",
            "Each has a pair of matrices of its own.",
            pairs="q for both",
        ),
    ],
    hints=[
        "Two updates of d features each have to become one of 3d. What stands in the middle?",
        "chunk(3, dim=-1) cuts the output of the base into three; torch.cat joins again.",
        "One update is alpha / rank * x @ A.T @ B.T. Which of A and B starts at zero, and why?",
    ],
    right_variants=[_ThreeParts, _OneWeight, _InPlaces],
)
class LoRAForTwo(nn.Module):
    """A layer for queries, keys and values, with LoRA on queries and values."""

    def __init__(self, base, rank, alpha):
        """base: nn.Linear(d, 3 * d), with a bias or without."""
        super().__init__()
        d = base.in_features
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.A_q = nn.Parameter(torch.randn(rank, d) / math.sqrt(d))
        self.A_v = nn.Parameter(torch.randn(rank, d) / math.sqrt(d))
        self.B_q = nn.Parameter(torch.zeros(d, rank))
        self.B_v = nn.Parameter(torch.zeros(d, rank))

    def forward(self, x):
        """x: (N, d). Returns (N, 3 * d)."""
        q, k, v = self.base(x).chunk(3, dim=-1)  # (N, d) each
        q = q + self.scale * (x @ self.A_q.T @ self.B_q.T)
        v = v + self.scale * (x @ self.A_v.T @ self.B_v.T)
        return torch.cat([q, k, v], dim=-1)


def _switch(merged, old_A, old_B, new_A, new_B, alpha, *, scale="alpha / r", old="out", new="in",
            ranks="own", product="BA"):  # fmt: skip
    def update(A, B):
        rank = {"old": len(old_A), "new": len(new_A), "own": len(A), "in": A.shape[1]}[ranks]
        factor = {"alpha / r": alpha / rank, "none": 1, "alpha": alpha, "r / alpha": rank / alpha,
                  "root": alpha / math.sqrt(rank), "floor": alpha // rank}[scale]  # fmt: skip
        return factor * (A.T @ B.T if product == "transposed" else B @ A)

    signs = {"out": -1, "in": 1, "left": 0}
    return merged + signs[old] * update(old_A, old_B) + signs[new] * update(new_A, new_B)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="taking one task out of a merged weight and putting another in",
    text="""
    A weight with LoRA merged into it serves one task. You have kept the A and B of that task, and
    those of another, of another rank perhaps, but no copy of the pre-trained weight. Make the
    weight that serves the other task. Both updates were scaled by alpha / (their own rank).
    """,
    reference=_switch,
    probes=[
        (*draw(1411, (2, 2), (1, 2), (2, 1), (2, 2), (2, 2)), 4.0),
        (*draw(1412, (5, 5), (2, 5), (5, 2), (3, 5), (5, 3)), 6.0),
        (*draw(1413, (4, 4), (3, 4), (4, 3), (1, 4), (4, 1)), 1.5),
    ],
    mistakes=[
        *_LORA_SCALE,
        wrong(
            "the old task is left in",
            "low rank",
            "What was merged for the old task has to be taken out again.",
            old="left",
        ),
        wrong(
            "the old task is added once more",
            "low rank",
            "The old update is in the weight already: subtract it.",
            old="in",
        ),
        wrong(
            "the new task is not put in",
            "low rank",
            "Without the new update this is the pre-trained weight.",
            new="left",
        ),
        wrong(
            "the new task is subtracted",
            "low rank",
            "Merging adds the update to the weight.",
            new="out",
        ),
        wrong(
            "both updates are scaled with one rank",
            "low rank",
            "Each update is divided by its own rank, a size of its own A and B.",
            {"ranks": "new"},
            ranks="old",
        ),
        wrong(
            "the rank is read from the wrong axis",
            "low rank",
            "A is (rank, in) and B (out, rank): the rank is A.shape[0], or B.shape[1].",
            ranks="in",
        ),
        wrong(
            "A and B are multiplied in the wrong order",
            "low rank",
            "The weight is (out, in), so B, which is (out, r), stands first.",
            product="transposed",
        ),
    ],
    hints=[
        "How did the merged weight come about? Write it as a sum.",
        "Subtract one update first: what is left is the pre-trained weight.",
        "Each update is alpha / r times B A, with an r of its own.",
    ],
    right_variants=[
        lambda W, A, B, C, D, alpha: torch.addmm(
            torch.addmm(W, B, A, alpha=-alpha / len(A)), D, C, alpha=alpha / len(C)
        ),
        lambda W, A, B, C, D, alpha: (
            W + torch.cat([D / len(C), -B / len(A)], 1) @ torch.cat([C, A]) * alpha
        ),
        lambda W, A, B, C, D, alpha: (
            W
            + torch.einsum("or,ri->oi", D, C) * (alpha / D.shape[1])
            - torch.einsum("or,ri->oi", B, A) * (alpha / B.shape[1])
        ),
    ],
)
def switch_task(merged, old_A, old_B, new_A, new_B, alpha):
    """The merged weight of the other task.

    merged: (out, in), each A: (its rank, in), each B: (out, its rank). Returns (out, in).
    """
    pretrained = merged - alpha / len(old_A) * (old_B @ old_A)
    return pretrained + alpha / len(new_A) * (new_B @ new_A)


def _merge_adapter(W, b, D, d, U, u, *, residual="kept", side="behind", bias="whole",
                   product="UD"):  # fmt: skip
    both = {"UD": lambda: U @ D, "transposed": lambda: D.T @ U.T}[product]()
    weight = {"behind": both @ W, "before": W @ both, "of the transpose": both @ W.T}.get(
        side, both
    )
    weight = W + weight if residual == "kept" else weight
    parts = {
        "whole": lambda: b + both @ b + U @ d + u,
        "base only": lambda: b,
        "no residual": lambda: both @ b + U @ d + u,
        "down not carried": lambda: b + both @ b + u,
        "base not carried": lambda: b + U @ d + u,
        "up left out": lambda: b + both @ b + U @ d,
    }
    return weight, parts[bias]()


def _by_probing(weight, bias, down, down_bias, up, up_bias):
    def both(x):
        y = weight @ x + bias
        return y + up @ (down @ y + down_bias) + up_bias

    at_zero = both(torch.zeros(len(bias)))
    return torch.stack([both(x) - at_zero for x in torch.eye(len(bias))], dim=1), at_zero


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="what makes an adapter impossible to merge: its ReLU",
    text="""
    Somebody builds an adapter *without* the ReLU and puts it behind a linear layer: the layer gives
    `y = weight @ x + bias`, the adapter makes `y + up @ (down @ y + down_bias) + up_bias` of it.
    All of it is linear, so it can be merged after all. Give weight and bias of the one linear layer
    that does the same.
    """,
    reference=_merge_adapter,
    probes=[
        draw(1421, (3, 3), (3,), (1, 3), (1,), (3, 1), (3,)),
        draw(1422, (4, 4), (4,), (2, 4), (2,), (4, 2), (4,)),
        draw(1423, (5, 5), (5,), (3, 5), (3,), (5, 3), (5,)),
    ],
    mistakes=[
        wrong(
            "the residual connection is lost",
            "residual",
            "The adapter adds to y, so the weight itself is a part of the merged weight.",
            residual="lost",
        ),
        wrong(
            "the adapter is put before the layer",
            "low rank",
            "It reads what the layer gives, so its product up @ down stands left of the weight.",
            side="before",
        ),
        wrong(
            "up and down are multiplied in the wrong order",
            "low rank",
            "down acts first, so it stands on the right: up @ down.",
            product="transposed",
        ),
        wrong(
            "the bias of the layer is passed on unchanged",
            "counting",
            "The adapter reads the bias too, and has two biases of its own.",
            bias="base only",
        ),
        wrong(
            "the bias of the layer does not go through the adapter",
            "counting",
            "y contains the bias, so down and up act on it as well.",
            bias="base not carried",
        ),
        wrong(
            "the bias of the layer itself is lost",
            "residual",
            "The residual connection carries it past the adapter.",
            bias="no residual",
        ),
        wrong(
            "the bias of the way down is lost",
            "counting",
            "It goes through the way up: up @ down_bias.",
            bias="down not carried",
        ),
        wrong(
            "the bias of the way up is lost",
            "counting",
            "It is added at the very end.",
            bias="up left out",
        ),
        wrong(
            "the product is added to the weight as in LoRA",
            "low rank",
            "LoRA stands beside the layer and reads x; this adapter stands behind it and reads "
            "y, so up @ down multiplies the weight.",
            side="beside",
        ),
        wrong(
            "the weight is transposed",
            "projection",
            "The layer is weight @ x: up @ down stands left of the weight as it is.",
            side="of the transpose",
        ),
    ],
    hints=[
        "Write the adapter's output with y replaced by weight @ x + bias, and sort by x.",
        "What stands before x is the new weight; what is left when x = 0 is the new bias.",
        "At x = 0 the layer gives its bias. What does the adapter make of that?",
    ],
    right_variants=[
        lambda W, b, D, d, U, u: (
            (torch.eye(len(U)) + U @ D) @ W, (torch.eye(len(U)) + U @ D) @ b + U @ d + u
        ),
        lambda W, b, D, d, U, u: [torch.addmm(W, U, D @ W), b + U @ (D @ b + d) + u],
        lambda W, b, D, d, U, u: (
            W + torch.einsum("or,ri,ij->oj", U, D, W),
            F.linear(F.linear(b, D, d), U, u) + b,
        ),
        lambda W, b, D, d, U, u: (
            (torch.eye(W.shape[1]) + U @ D) @ W, (torch.eye(W.shape[1]) + U @ D) @ b + U @ d + u
        ),
        _by_probing,
    ],
)  # fmt: skip
def merge_linear_adapter(weight, bias, down, down_bias, up, up_bias):
    """Weight and bias of the one layer that does the same.

    weight: (d, d), bias: (d,), down: (r, d), down_bias: (r,), up: (d, r), up_bias: (d,).
    Returns (weight, bias), of shapes (d, d) and (d,).
    """
    new_weight = weight + up @ down @ weight
    new_bias = bias + up @ (down @ bias + down_bias) + up_bias
    return new_weight, new_bias


def _prefix_attend(
    queries,
    keys,
    values,
    prefix_keys,
    prefix_values,
    real_keys,
    *,
    values_at="front",
    hidden="padding",
    used="both",
    scaled=True,
    softmax="one",
    axis=-1,
    fill=-1e9,
):
    batch, m = len(keys), len(prefix_keys)
    if hidden == "zeroed":
        keys, values = keys * real_keys[..., None], values * real_keys[..., None]
    p_k, p_v = (p.expand(batch, -1, -1) for p in (prefix_keys, prefix_values))
    if used == "keys twice":
        p_v = p_k
    if used == "swapped":
        p_k, p_v = p_v, p_k
    if used == "not":
        p_k, p_v, m = p_k[:, :0], p_v[:, :0], 0
    keys_first = values_at == "front, keys at the back"
    all_keys = torch.cat([keys, p_k] if keys_first else [p_k, keys], 1)  # (B, m + Tk, d)
    all_values = torch.cat([values, p_v] if values_at == "back" else [p_v, values], 1)
    if hidden == "front":
        all_keys, all_values = torch.cat([keys, p_k], 1), torch.cat([values, p_v], 1)
    see_prefix = torch.ones(batch, m).bool()
    front = {
        "padding": [see_prefix, real_keys],
        "prefix too": [~see_prefix, real_keys],
        "inverted": [see_prefix, ~real_keys],
        "front": [see_prefix, real_keys],
        "wrong end": [real_keys, see_prefix],
        "zeroed": [see_prefix, torch.ones_like(real_keys)],
        "first sentence": [see_prefix, real_keys[:1].expand_as(real_keys)],
        "nothing": [see_prefix, torch.ones_like(real_keys)],
        "not extended": [see_prefix, real_keys],
    }[hidden]
    mask = torch.cat(front, 1)[:, None]  # (B, 1, m + Tk)
    if hidden == "not extended":
        mask = real_keys[:, None]
    divisors = {True: queries.shape[-1] ** 0.5, False: 1, "d": queries.shape[-1]}
    scores = queries @ all_keys.mT / divisors.get(scaled, all_keys.shape[1] ** 0.5)
    if fill == "after":
        return scores.softmax(axis) * mask @ all_values
    if fill == "unshifted":
        return unshifted(scores, mask) @ all_values
    if fill in DIVIDED_AGAIN:
        weights = scores.softmax(axis) * mask
        return weights / DIVIDED_AGAIN[fill](weights, mask) @ all_values
    hides = fill in NOT_LOW
    scores = lowered(scores, ~mask, fill) if hides else scores.masked_fill(~mask, fill)
    if softmax in ("two", "two, halved"):
        parts = scores.split([m, keys.shape[1]], -1)
        both = torch.cat([part.softmax(axis) for part in parts], -1) @ all_values
        return both / 2 if softmax == "two, halved" else both
    return scores.softmax(axis) @ all_values


def _by_the_kernel(q, k, v, pk, pv, real):
    k, v = torch.cat([pk.repeat(len(k), 1, 1), k], 1), torch.cat([pv.repeat(len(v), 1, 1), v], 1)
    mask = F.pad(real, (len(pk), 0), value=True)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.unsqueeze(1))


def _prefix_last(q, k, v, pk, pv, real):
    outputs = []
    for i in range(len(q)):
        keys, values = torch.cat([k[i][real[i]], pk]), torch.cat([v[i][real[i]], pv])
        weights = (q[i] @ keys.T / q.shape[-1] ** 0.5).softmax(-1)
        outputs.append(weights @ values)
    return torch.stack(outputs)


def _by_parts(q, k, v, pk, pv, real):
    scale = q.shape[-1] ** -0.5
    on_prefix = torch.einsum("bqd,md->bqm", q, pk) * scale
    on_tokens = (torch.bmm(q, k.transpose(1, 2)) * scale).masked_fill(~real[:, None], -torch.inf)
    total = torch.logsumexp(torch.cat([on_prefix, on_tokens], -1), -1, keepdim=True)
    return (on_prefix - total).exp() @ pv + (on_tokens - total).exp() @ v


def _low_scores(seed, real_keys):
    """A probe whose scores, prefix first, are those of `probes.far_below`."""
    batch, num_keys = real_keys.shape
    queries, keys = far_apart(2, 1 + num_keys)
    values, prefix_values = draw(seed, (batch, num_keys, 4), (1, 4))
    queries, tokens = (x.expand(batch, -1, -1).clone() for x in (queries, keys[1:]))
    return queries, tokens, values, keys[:1], prefix_values, real_keys


_REAL = [torch.tensor(rows).bool() for rows in ([[1, 1, 0]], [[1, 1, 1, 0], [1, 1, 0, 0]])]


@exercise(
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="attention with trained keys and values in front",
    text="""
    Scaled dot-product attention with a prefix: every query of every sentence may look at the `m`
    trained keys as well. Padding among the tokens stays hidden, however far apart the scores lie;
    `real_keys` is True for real ones.
    """,
    reference=_prefix_attend,
    probes=[
        (*draw(1431, (1, 1, 2), (1, 3, 2), (1, 3, 2), (1, 2), (1, 2)), _REAL[0]),
        (*draw(1432, (2, 3, 5), (2, 4, 5), (2, 4, 5), (2, 5), (2, 5)), _REAL[1]),
        (*draw(1433, (2, 2, 6), (2, 4, 6), (2, 4, 6), (3, 6), (3, 6)), _REAL[1]),
        _low_scores(1434, torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1]]).bool()),
    ],
    mistakes=[
        wrong(
            "the prefix stands at one end of the keys and at the other of the values",
            "role of q, k, v",
            "Key i belongs to value i, so both prefixes go to the same end.",
            {"values_at": "front, keys at the back"},
            values_at="back",
        ),
        wrong(
            "the mask is not extended to the prefix",
            "mask missing",
            "There are m + Tk keys now, so each row of the mask needs m more entries.",
            hidden="not extended",
        ),
        wrong(
            "the mask is extended at the wrong end",
            "mask axis",
            "The entries of the prefix stand where its keys stand.",
            {"hidden": "front"},
            hidden="wrong end",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "real_keys is True where a token may be looked at.",
            hidden="inverted",
        ),
        wrong(
            "the padding is not hidden",
            "mask missing",
            "real_keys is not used: padding takes its share of the weight.",
            hidden="nothing",
        ),
        wrong(
            "padding is set to zero, not hidden",
            "mask missing",
            "A key of zeros has a score of 0, and exp(0) = 1 is a weight: hide scores with -inf.",
            hidden="zeroed",
        ),
        wrong(
            "all sentences get the mask of the first",
            "mask axis",
            "Each sentence has its own padding: the mask is (B, 1, m + Tk).",
            hidden="first sentence",
        ),
        wrong(
            "no query sees the prefix",
            "mask meaning",
            "The prefix must be among the keys, and the mask True for it in every row.",
            {"used": "both", "hidden": "prefix too"},
            used="not",
        ),
        wrong(
            "keys and values of the prefix are mixed up",
            "role of q, k, v",
            "prefix_keys are compared with the queries, prefix_values are averaged.",
            {"used": "keys twice"},
            used="swapped",
        ),
        wrong(
            "prefix and tokens have a softmax each",
            "normalisation",
            "They compete: one softmax over all m + Tk keys, so that a row sums to 1.",
            {"softmax": "two, halved"},
            softmax="two",
        ),
        wrong(
            "the scores are not scaled",
            "scale",
            "Divide by the square root of the size of a key.",
            scaled=False,
        ),
        wrong(
            "the softmax runs over the queries",
            "softmax axis",
            "Each query shares out its weight over the keys, the last axis.",
            axis=-2,
        ),
        wrong(
            "hidden scores become 0",
            "mask timing",
            "exp(0) = 1 is a weight; -inf gives none.",
            fill=0.0,
        ),
        not_low_enough("fill", "at -1", "at -100"),
        not_low_enough("fill", "by 10000", axis=-1),
        softmax_of_hidden("fill", softmax="one", axis=-1),
        not_shifted(fill="unshifted", softmax="one", axis=-1),
        wrong(
            "the mask comes after the softmax",
            "mask timing",
            "Then the visible weights no longer sum to 1: hide scores before it.",
            fill="after",
        ),
        wrong(
            "the scores are divided by d, not by its root",
            "scale",
            "The spread of a dot product is the square root of its size.",
            scaled="d",
        ),
        wrong(
            "the root of the number of keys is taken",
            "scale",
            "A dot product has d terms, however many keys there are.",
            scaled="keys",
        ),
    ],
    hints=[
        "The prefix has no batch axis: every sentence gets the same one. expand gives it B rows.",
        "Join along the axis of the positions; how many keys does each query have now?",
        "A mask for m + Tk keys: m times True, then real_keys. Where does its query axis go?",
    ],
    right_variants=[_by_the_kernel, _prefix_last, _by_parts],
)
def prefix_attend(queries, keys, values, prefix_keys, prefix_values, real_keys):
    """Attention to a prefix and to the real tokens.

    queries: (B, Tq, d), keys and values: (B, Tk, d), prefix_keys and prefix_values: (m, d),
    real_keys: (B, Tk) boolean. Returns (B, Tq, d).
    """
    batch, m = len(keys), len(prefix_keys)
    keys = torch.cat([prefix_keys.expand(batch, -1, -1), keys], dim=1)  # (B, m + Tk, d)
    values = torch.cat([prefix_values.expand(batch, -1, -1), values], dim=1)
    mask = torch.cat([torch.ones(batch, m, dtype=torch.bool), real_keys], dim=1)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])  # (B, Tq, m + Tk)
    return torch.softmax(scores.masked_fill(~mask[:, None], -math.inf), dim=-1) @ values


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="telling from a log what is wrong with a LoRA",
    text="""
    Four people put LoRA of rank 2 beside a frozen matrix `W` of 8 x 8 and make ten updates. Their
    logs:

    | log | output at the start | trained numbers | A has moved | B has moved | W has moved |
    |---|---|---|---|---|---|
    | `a` | as without LoRA | 32 | no | no | no |
    | `b` | as without LoRA | 96 | yes | yes | yes |
    | `c` | not as without LoRA | 32 | yes | yes | no |
    | `d` | as without LoRA | 32 | yes | yes | no |

    Which log belongs to whom? Answer with four letters, such as `"abcd"`, in this order: nobody's
    mistake; B drawn at random like A; A and B both zero; W not frozen.
    """,
    mistakes=[
        wrong(
            "the first two are exchanged",
            "neutral start",
            "With B at random the output differs from the start on; that is log c.",
            answer="cdab",
        ),
        wrong(
            "the logs in which the start is right are mixed up",
            "neutral start",
            "With A and B both zero neither gets a gradient, so neither moves: log a.",
            {"answer": "acdb"},
            answer="bcad",
        ),
        wrong(
            "the last two are exchanged",
            "frozen base",
            "96 = 64 + 32: there W is trained as well. With both at zero nothing moves.",
            answer="dcba",
        ),
        *mixed_up(
            "dcab",
            {
                "no mistake": "Without a mistake A and B move, W does not, and the start is right.",
                "B at random": "With B at random the output differs from the start on.",
                "both zero": "With A and B both zero neither gets a gradient, so nothing moves.",
                "W not frozen": "96 = 64 + 32: there W is trained as well.",
            },
            "neutral start",
            but=("cdab", "acdb", "bcad", "dcba"),
        ),
    ],
    hints=[
        "How many numbers have A and B together? How many with W?",
        "Each of A and B gets its gradient through the other. What if both are zero?",
        "A start that is not that of the base needs an update that is not zero.",
    ],
)
def lora_diagnosis():
    """Four letters: no mistake, B at random, A and B both zero, W not frozen"""
    return "dcab"


_FITS = {  # what is wrong where a letter is given or left out wrongly, and why
    "a": ("full training in 32 bits is taken to fit", "The weights alone take 28 GB there."),
    "b": (
        "full training in 16 bits is taken to fit",
        "Weights and gradients take 28 GB, and the two numbers that Adam keeps 56 GB.",
    ),
    "c": (
        "a base in 32 bits is taken to fit",
        "32 bits are 4 bytes: the base alone takes 28 GB.",
    ),
    "d": (
        "a base in 16 bits is taken not to fit",
        "16 bits are 2 bytes: 14 GB for the base, 0.32 GB for LoRA, and 4 GB.",
    ),
    "e": ("a base in 4 bits is taken not to fit", "4 bits are half a byte: 3.5 GB."),
}


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="which way of training fits into a given memory",
    text="""
    A model has 7 billion weights, your GPU 24 GB (1 GB = 10^9 bytes), and what the layers keep for
    the backward pass takes 4 GB. LoRA would train 20 million numbers. Which of these fit? Adam
    keeps two numbers in 32 bits for each trained number.

    `"a"`: train everything; weights and gradients in 32 bits. `"b"`: train everything; weights and
    gradients in 16 bits. `"c"`: LoRA in 32 bits on a base in 32 bits. `"d"`: LoRA in 32 bits on a
    base in 16 bits. `"e"`: LoRA in 32 bits on a base in 4 bits. Answer with the letters of all that
    fit, such as `"abc"`.
    """,
    mistakes=[
        wrong(
            ", and ".join(
                _FITS[letter][0] for letter in _FITS if (letter in some) != (letter in "de")
            ),
            "memory",
            " ".join(_FITS[letter][1] for letter in _FITS if (letter in some) != (letter in "de")),
            answer="".join(some),
        )
        for n in range(1, 6)
        for some in itertools.combinations("abcde", n)
        if some != ("d", "e")
    ],
    hints=[
        "Bytes of the base first: 7 billion times 4, 2, or one half.",
        "Each trained number needs itself, a gradient, and two numbers of Adam.",
        "20 million trained numbers in 32 bits take 20 million times 16 bytes. Add the 4 GB.",
    ],
)
def what_fits():
    """The letters of all ways that fit into 24 GB"""
    return "de"


def _falls(layer, trained, x, target):
    """Whether a step down the gradient, however short it has to be, makes the loss smaller."""

    def loss_now():
        return F.mse_loss(layer(x).double(), target.double())

    before, start = loss_now(), [p.detach().clone() for p in trained]
    if not before.requires_grad:
        return False
    gradients = torch.autograd.grad(before, trained, allow_unused=True)
    for step in (100 * 0.1**k for k in range(12)):
        for p, old, gradient in zip(trained, start, gradients):
            p.data = old - step * (0 if gradient is None else gradient)
        if loss_now() < before * (1 - 1e-7):
            return True
    return False


def play_own(answer, weight, bias, x, target):
    """Wrap a layer, look at its start, train it a little, and see whether it is still linear."""
    base = nn.Linear(weight.shape[1], weight.shape[0])
    base.weight.data.copy_(weight)
    base.bias.data.copy_(bias)
    layer = answer(base)
    trained = _trained(layer)
    outcome = {
        "starts like the base": _close(layer(x).detach(), F.linear(x, weight, bias)),
        "trains at most as many numbers as there are outputs":
            sum(p.numel() for p in trained) <= len(weight),
    }  # fmt: skip
    outcome["something is trained"] = bool(trained)
    outcome["learns"] = [_falls(layer, trained, x, target) for _ in range(5)][0]
    outcome["the pre-trained weight stays"] = torch.equal(base.weight.detach(), weight)
    outcome["the pre-trained bias stays"] = torch.equal(base.bias.detach(), bias)
    at_zero = layer(torch.zeros(1, x.shape[1])).detach()
    merged = (layer(torch.eye(x.shape[1])).detach() - at_zero).T  # (out, in)
    by_one_layer = F.linear(x, merged) + at_zero
    outcome["one plain layer could do the same"] = _close(layer(x).detach(), by_one_layer)
    return outcome


def _close(given, due):
    """Whether numbers of any size agree to four digits of the largest."""
    return bool((given - due).abs().max() <= 1e-4 * due.abs().max().clamp_min(0.1))


class _Own(nn.Module):
    """A factor for each output, in the manner of (IA)^3; each class attribute is a switch."""

    start = 1.0
    frozen = "all"
    new = "trained"
    too_many = False
    curved = False

    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(self.frozen == "none")
        base.bias.requires_grad_(self.frozen != "all")
        self.factor = nn.Parameter(torch.full((base.out_features,), self.start))
        self.factor.requires_grad_(self.new != "nothing")
        self.shift = nn.Parameter(torch.zeros(base.out_features))
        self.shift.requires_grad_(self.too_many)

    def forward(self, x):
        factor, shift = self.factor, self.shift
        if self.new == "detached":
            factor, shift = factor.detach(), shift.detach()
        out = factor * self.base(x) + shift
        return out + F.relu(out) - F.relu(self.base(x)) if self.curved else out


class _Shift(nn.Module):
    """A right variant: a vector beside the bias, as in BitFit."""

    def __init__(self, base):
        super().__init__()
        self.base, self.delta = base, nn.Parameter(torch.zeros(base.out_features))
        for p in base.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.base(x) + self.delta


class _RandomRow(nn.Module):
    """A right variant: LoRA of rank 1 whose A is drawn and never trained."""

    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.register_buffer("A", torch.randn(1, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, 1))

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T


class _OneFactor(nn.Module):
    """A right variant: a single trained number."""

    def __init__(self, base):
        super().__init__()
        self.register_buffer("weight", base.weight.detach().clone())
        self.register_buffer("bias", base.bias.detach().clone())
        self.log_factor = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return F.linear(x, self.weight * self.log_factor.exp(), self.bias)


@exercise(
    kind="class",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="inventing a way of fine-tuning of your own",
    text="""
    An open task: invent a way to adapt a linear layer that is cheaper than LoRA of rank 1. Your
    class wraps an `nn.Linear` with bias. It must start as the layer it wraps, train at most as many
    numbers as the layer has outputs, leave weight and bias of the layer as they are, be able to
    learn, and be fit for merging: whatever was learnt, one plain `nn.Linear` could do the same. Any
    design with these properties passes.
    """,
    reference=_Own,
    play=play_own,
    probes=[
        draw(1471, (4, 3), (4,), (6, 3), (6, 4)),
        draw(1472, (5, 5), (5,), (9, 5), (9, 5)),
        draw(1473, (3, 6), (3,), (8, 6), (8, 3)),
    ],
    mistakes=[
        wrong(
            "it does not start as the layer it wraps",
            "neutral start",
            "A factor starts at 1, what is added starts at 0.",
            start=0.5,
        ),
        wrong(
            "the pre-trained numbers are trained as well",
            "frozen base",
            "Freeze the layer: base.requires_grad_(False).",
            frozen="none",
        ),
        wrong(
            "the bias of the layer is trained",
            "frozen base",
            "It is a pre-trained number, too: freeze it, and add a vector of your own beside it.",
            {"new": "nothing"},
            frozen="weight",
        ),
        wrong(
            "nothing new is trained",
            "frozen base",
            "What you add must be an nn.Parameter that requires a gradient.",
            new="nothing",
        ),
        wrong(
            "what is trained does not move",
            "gradient",
            "No gradient comes to it: of two factors that both start at zero each blocks the "
            "other, and detach cuts the way.",
            new="detached",
        ),
        wrong(
            "too many numbers are trained",
            "counting",
            "At most as many as the layer has outputs: one vector, for example.",
            too_many=True,
        ),
        wrong(
            "the way cannot be merged",
            "activation",
            "What is not linear, or mixes the rows of a batch, cannot become part of a linear "
            "layer.",
            curved=True,
        ),
    ],
    hints=[
        "Which of a layer's numbers could be moved by one vector? By a factor? By a shift?",
        "A vector as long as the output can multiply it or be added to it. How does it start?",
        "It can be merged if the output is some matrix times x plus some vector. No ReLU, then.",
    ],
    right_variants=[_Shift, _RandomRow, _OneFactor],
)
class OwnTuning(nn.Module):
    """A way of your own to adapt a linear layer."""

    def __init__(self, base):
        """base: nn.Linear(in, out) with a bias."""
        super().__init__()
        self.base = base.requires_grad_(False)
        self.factor = nn.Parameter(torch.ones(base.out_features))

    def forward(self, x):
        """x: (N, in). Returns (N, out)."""
        return self.factor * self.base(x)
