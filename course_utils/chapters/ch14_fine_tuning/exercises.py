"""Exercises of notebook 14: LoRA, adapters, prefixes, and learning from preferences."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import (
    NOT_LOW,
    lowered,
    not_low_enough,
    not_shifted,
    unshifted,
)
from course_utils.checker.model import exercise, wrong
from course_utils.checker.probes import draw, far_apart

NOTEBOOK = "14_fine_tuning"


def _set_known(layer, known):
    """Give the trained tensors of a layer known values, found by shape; returns those found."""
    found = []
    for p in layer.parameters():
        if not p.requires_grad:
            continue
        for value in known:
            for form in (value, value.mT if value.dim() == 2 else value):
                if p.shape == form.shape:
                    p.data.copy_(form)
                    found.append(p)
                    break
    return found


def _learns(layer, size, known):
    """Whether a first step moves any of the tensors that have the shape of a known one.

    It reads 64 vectors, so that no hidden unit is silent by bad luck.
    """
    shapes = {tuple(form.shape) for value in known for form in (value, value.mT)}
    output = layer(torch.randn(64, size))
    if not output.requires_grad:
        return False
    output.sum().backward()
    return any(
        p.grad is not None and bool(p.grad.abs().max() > 1e-6)
        for p in layer.parameters()
        if tuple(p.shape) in shapes
    )


def _input_gradient(layer, x):
    """What comes back to the input: zeros where nothing does."""
    x = x.clone().requires_grad_()
    output = layer(x)
    if not output.requires_grad:
        return torch.zeros_like(x)
    (gradient,) = torch.autograd.grad(output.sum(), x, allow_unused=True)
    return torch.zeros_like(x) if gradient is None else gradient


def play_lora(answer, weight, bias, x, A, B, alpha):
    """Wrap a layer, look at its start, then give A and B known values and run it."""
    base = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    base.weight.data.copy_(weight)
    if bias is not None:
        base.bias.data.copy_(bias)
    layer = answer(base, len(A), alpha)
    start = layer(x).detach()
    outcome = {
        "numbers that are trained": sum(p.numel() for p in layer.parameters() if p.requires_grad),
        "starts like the base": bool(torch.allclose(start, F.linear(x, weight, bias), atol=1e-5)),
        "the first step moves A or B": _learns(layer, x.shape[-1], (A, B)),
    }
    _set_known(layer, (A, B))
    for p in layer.parameters():  # biases of A and B, if there are any
        if p.requires_grad and p.dim() == 1 and p is not base.bias:
            p.data.zero_()
    return outcome | {"output": layer(x).detach(), "gradient of x": _input_gradient(layer, x)}


class _LoRA(nn.Module):
    """The switchable layer: each class attribute is a switch."""

    start = "B zero"
    scale = "alpha / r"
    frozen = "all"
    base_term = "whole"
    order = "A first"
    between = "nothing"
    registered = True
    base_call = "plain"
    reads = "x"
    biases = "none"
    learned_scale = False

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        if self.frozen == "all":
            base.requires_grad_(False)
        elif self.frozen == "weight":
            base.weight.requires_grad_(False)
        A = torch.randn(rank, base.in_features) / base.in_features**0.5
        B = torch.randn(base.out_features, rank)
        A = A * 0 if self.start == "both zero" else A
        B = B if self.start == "both random" else B * 0
        self.A, self.B = (nn.Parameter(A), nn.Parameter(B)) if self.registered else (A, B)
        scales = {"alpha / r": alpha / rank, "none": 1, "alpha": alpha, "r / alpha": rank / alpha,
                  "root": alpha / rank**0.5}  # fmt: skip
        self.factor = scales[self.scale]
        if self.learned_scale:
            self.gain = nn.Parameter(torch.tensor(float(self.factor)))
        if self.biases != "none":
            self.b = nn.Parameter(torch.zeros(rank))
            self.c = nn.Parameter(torch.full((base.out_features,), float(self.biases == "drawn")))

    def forward(self, x):
        base_gives = self.base(x)
        base_gives = base_gives.detach() if self.base_call == "no grad" else base_gives
        asked, x = x, base_gives if self.reads == "base output" else x
        if self.order == "B first":
            narrow, up = x @ self.B.T, self.A.T
        else:
            narrow, up = x @ self.A.T, self.B.T
        narrow = narrow + self.b if self.biases != "none" else narrow
        narrow = F.relu(narrow) if self.between == "relu" else narrow
        wide = narrow @ up + (self.c if self.biases != "none" else 0)
        update = (self.gain if self.learned_scale else self.factor) * wide
        if self.base_term == "none":
            return update
        return update + (asked @ self.base.weight.T if self.base_term == "no bias" else base_gives)


class _LoRAFromLinears(nn.Module):
    """A right variant: two linear layers without bias."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.pretrained = base
        for p in base.parameters():
            p.requires_grad = False
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.factor = alpha / rank

    def forward(self, x):
        return self.pretrained(x) + self.up(self.down(x)) * self.factor


class _LoRAOfColumns(nn.Module):
    """A right variant: matrices stored the other way round, base weights as buffers, A at zero."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.register_buffer("weight", base.weight.detach().clone())
        self.register_buffer("bias", None if base.bias is None else base.bias.detach().clone())
        self.down = nn.Parameter(torch.zeros(base.in_features, rank))
        self.up = nn.Parameter(torch.randn(rank, base.out_features))
        self.rank, self.alpha = rank, alpha

    def forward(self, x):
        base = x @ self.weight.T + (0 if self.bias is None else self.bias)
        return base + x @ self.down @ self.up * (self.alpha / self.rank)


class _LoRAByMerging(nn.Module):
    """A right variant: the sum of the matrices is made first."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.eval()
        for parameter in self.base.parameters():
            parameter.requires_grad = False
        self.scaling = alpha / rank
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features).uniform_(-1, 1))
        self.lora_B = nn.Parameter(base.weight.new_zeros(base.out_features, rank))

    def forward(self, x):
        update = torch.einsum("or,ri->oi", self.lora_B, self.lora_A)
        return F.linear(x, self.base.weight + self.scaling * update, self.base.bias)


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
]


@exercise(
    kind="class",
    notebook=NOTEBOOK,
    minutes=15,
    difficulty=2,
    trains="LoRA: a frozen matrix and a trained one of low rank",
    text="""
    Put a trained update of low rank beside a pre-trained `nn.Linear`:
    `base(x) + alpha / rank * B A x`. Freeze the base; at first, the layer must give what its base
    gives, and still be able to learn.
    """,
    reference=_LoRA,
    play=play_lora,
    probes=[
        (*draw(1401, (2, 3), (2,), (1, 3), (1, 3), (2, 1)), 4.0),
        (*draw(1402, (7, 5), (7,), (4, 5), (2, 5), (7, 2)), 6.0),
        (*draw(1403, (4, 6), (4,), (2, 6), (3, 6), (4, 3)), 1.5),
        (*draw(1404, (3, 3), (3,), (2, 3), (2, 3), (3, 2)), 3.0),
        (draw(1405, (4, 5))[0], None, *draw(1406, (3, 5), (2, 5), (4, 2)), 3.0),  # without a bias
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
            "The update is added to what the pre-trained layer gives.",
            base_term="none",
        ),
        wrong(
            "the bias of the base is lost",
            "residual",
            "x @ weight.T is only a part of base(x).",
            base_term="no bias",
        ),
        wrong(
            "A and B are applied in the wrong order",
            "low rank",
            "A brings x down to r numbers first; then B brings these up.",
            order="B first",
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
            "Both must be an nn.Parameter, and freezing is for the base alone.",
            registered=False,
        ),
        wrong(
            "the base is called without a gradient instead of being frozen",
            "frozen base",
            "no_grad or detach in forward cuts off what is trained before this layer, and the "
            "base still counts as trained: base.requires_grad_(False).",
            frozen="none",
            base_call="no grad",
        ),
        wrong(
            "no gradient comes back through the base",
            "gradient",
            "A frozen base is still on the way back to x: leave out no_grad and detach in forward.",
            base_call="no grad",
        ),
        wrong(
            "the update reads what the base gives",
            "residual",
            "A x and base(x) stand beside each other; both read x.",
            reads="base output",
            order="A first",
        ),
        wrong(
            "A and B have biases",
            "low rank",
            "The update is B A x alone; an nn.Linear for A or B needs bias=False.",
            {"biases": "zero"},
            biases="drawn",
        ),
        wrong(
            "the scale is trained, too",
            "counting",
            "alpha / r is a fixed number; only A and B are trained.",
            learned_scale=True,
        ),
    ],
    hints=[
        "Which of the layer's tensors may require a gradient? Count them for the smallest example.",
        "The update is 0 at first if one of A and B is; it can grow only if the other is not.",
        "x has its features last, so A x is written x @ A.T, and has rank numbers.",
    ],
    right_variants=[_LoRAFromLinears, _LoRAOfColumns, _LoRAByMerging],
)
class TinyLoRA(nn.Module):
    """A linear layer with an update of low rank."""

    def __init__(self, base, rank, alpha):
        """base: nn.Linear(in, out), with a bias or without. A is (rank, in), B is (out, rank)."""
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        """x: (N, in). Returns (N, out)."""
        return self.base(x) + self.scale * (x @ self.A.T @ self.B.T)


def _merge_update(weight, A, B, alpha, *, scale="alpha / r", keep=True, sign=1):
    rank = len(A)
    if scale in ("AB", "transposed"):
        return weight + alpha / rank * (A @ B if scale == "AB" else A.T @ B.T)
    factor = {
        "alpha / r": alpha / rank,
        "none": 1,
        "alpha": alpha,
        "r / alpha": rank / alpha,
        "in": alpha / A.shape[1],
        "out": alpha / B.shape[0],
        "root": alpha / math.sqrt(rank),
        "twice": (alpha / rank) ** 2,
    }[scale]
    if keep == "scaled, too":
        return factor * (weight + sign * (B @ A))
    return (weight if keep else 0) + sign * factor * (B @ A)


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="merging: why LoRA costs nothing when it is used",
    text="Make one weight of a pre-trained one and its trained LoRA update.",
    reference=_merge_update,
    probes=[
        (*draw(1411, (2, 3), (1, 3), (2, 1)), 4.0),
        (*draw(1412, (7, 5), (2, 5), (7, 2)), 6.0),
        (*draw(1413, (4, 6), (3, 6), (4, 3)), 1.5),
    ],
    mistakes=[
        *_LORA_SCALE,
        wrong(
            "the scale is divided by another size than the rank",
            "low rank",
            "The rank is the size that A and B share: the rows of A, the columns of B.",
            {"scale": "out"},
            scale="in",
        ),
        wrong(
            "the pre-trained weight is lost",
            "frozen base",
            "The update is added to the weight.",
            keep=False,
        ),
        wrong(
            "the update is subtracted",
            "low rank",
            "The layer adds the update, so the merged weight does, too.",
            sign=-1,
        ),
        wrong(
            "A and B are multiplied in the wrong order",
            "low rank",
            "The product must be (out, in) like the weight: B is (out, r) and A is (r, in).",
            {"scale": "transposed"},
            scale="AB",
        ),
        wrong(
            "the pre-trained weight is scaled, too",
            "frozen base",
            "alpha / r belongs to the update alone.",
            keep="scaled, too",
        ),
        wrong(
            "the scale is used twice",
            "low rank",
            "The product B A is multiplied by alpha / r once.",
            scale="twice",
        ),
    ],
    hints=[
        "The layer computes W x + s B A x. What stands before x when you factor it out?",
        "Which product of A and B has the shape of the weight?",
        "s is alpha divided by the rank; the rank is a size of A.",
    ],
    right_variants=[
        lambda W, A, B, alpha: torch.addmm(W, B, A, alpha=alpha / B.shape[1]),
        lambda W, A, B, alpha: W + torch.einsum("or,ri->oi", B, A) * (alpha / A.size(0)),
        lambda W, A, B, alpha: (
            W + sum(torch.outer(B[:, k], A[k]) for k in range(len(A))) * alpha / len(A)
        ),
    ],
)
def merge_low_rank(weight, A, B, alpha):
    """The weight of one plain layer that does the same.

    weight: (out, in), A: (r, in), B: (out, r). Returns (out, in).
    """
    return weight + alpha / A.shape[0] * (B @ A)


def play_adapter(answer, x, known):
    """Look at the start of an adapter, then give it known weights and run it."""
    layer = answer(x.shape[-1], len(known[0]))
    outcome = {
        "numbers": sum(p.numel() for p in layer.parameters() if p.requires_grad),
        "starts by giving what it reads": bool(torch.allclose(layer(x).detach(), x, atol=1e-6)),
        "the first step moves a matrix": _learns(layer, x.shape[-1], known[::2]),
    }
    _set_known(layer, known)
    return outcome | {"output": layer(x).detach(), "gradient of x": _input_gradient(layer, x)}


class _Adapter(nn.Module):
    """The switchable adapter."""

    start = "up zero"
    residual = "around"
    activation = "between"
    biases = True
    width = "bottleneck"
    norm = False
    cut = "nothing"

    def __init__(self, d_model, bottleneck):
        super().__init__()
        bottleneck = d_model if self.width == "d_model" else bottleneck
        self.down = nn.Linear(d_model, bottleneck, bias=self.biases)
        self.up = nn.Linear(bottleneck, d_model, bias=self.biases)
        if self.norm:
            self.first = nn.LayerNorm(d_model)
        zeroed = {
            "up zero": [self.up],
            "random": [],
            "both zero": [self.up, self.down],
            "down zero": [self.down],
        }
        for layer in zeroed.get(self.start, [self.up]):
            for name, p in layer.named_parameters():
                if not (self.start == "up bias left" and name == "bias"):
                    nn.init.zeros_(p)
        if self.start == "up bias left" and self.biases:
            nn.init.ones_(self.up.bias)

    def forward(self, x):
        seen = x.detach() if self.cut == "inside" else x
        seen = self.first(seen) if self.norm else seen
        narrow = self.down(F.relu(seen) if self.activation == "before" else seen)
        between = {"between": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "silu": F.silu}
        narrow = between.get(self.activation, nn.Identity())(narrow)
        wide = self.up(narrow)
        wide = F.relu(wide) if self.activation == "after" else wide
        if self.residual == "none":
            return wide
        if self.residual == "halved":
            return (x + wide) / 2
        x = x.detach() if self.cut == "around" else x
        return F.relu(x + wide) if self.residual == "inside" else x + wide


class _AdapterInSequence(nn.Module):
    """A right variant: nn.Sequential."""

    def __init__(self, d_model, bottleneck):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_model, bottleneck), nn.ReLU(), nn.Linear(bottleneck, d_model)
        )
        with torch.no_grad():
            for p in self.layers[2].parameters():
                p.zero_()

    def forward(self, x):
        return self.layers(x) + x


class _AdapterOfParameters(nn.Module):
    """A right variant: matrices and biases made by hand, with the shapes of nn.Linear."""

    def __init__(self, d, r):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(r, d)), nn.Parameter(torch.zeros(r))
        self.c, self.e = nn.Parameter(torch.zeros(d, r)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return x + (x @ self.a.T + self.b).clamp(min=0) @ self.c.T + self.e


class _AdapterFunctional(nn.Module):
    """A right variant: the way down drawn by hand, F.linear."""

    def __init__(self, d_model, bottleneck):
        super().__init__()
        self.read, self.write = nn.Linear(d_model, bottleneck), nn.Linear(bottleneck, d_model)
        nn.init.normal_(self.read.weight, std=0.1)
        self.write.weight.data.fill_(0.0)
        self.write.bias.data.fill_(0.0)

    def forward(self, x):
        h = torch.where((z := self.read(x)) > 0, z, torch.zeros(()))
        return torch.add(F.linear(h, self.write.weight, self.write.bias), x)


@exercise(
    kind="class",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="adapters: a bottleneck that starts as nothing",
    text="""
    An adapter: down to `bottleneck` features, ReLU, up again, and a residual connection. Both maps
    are `nn.Linear` with bias. At first it must give what it reads, and still be able to learn.
    """,
    reference=_Adapter,
    play=play_adapter,
    probes=[
        (*draw(1421, (1, 3)), draw(1422, (2, 3), (2,), (3, 2), (3,))),
        (*draw(1423, (4, 6)), draw(1424, (4, 6), (4,), (6, 4), (6,))),
        (*draw(1425, (3, 5)), draw(1426, (1, 5), (1,), (5, 1), (5,))),
    ],
    mistakes=[
        wrong(
            "the way up does not start at zero",
            "neutral start",
            "Weight and bias of the second map are set to 0, so that at first nothing changes.",
            {"start": "up bias left"},
            start="random",
        ),
        wrong(
            "the way down starts at zero",
            "neutral start",
            "Then no gradient reaches either matrix; only the way up starts at zero.",
            {"start": "down zero"},
            start="both zero",
        ),
        wrong(
            "the residual connection is missing",
            "residual",
            "What the adapter reads is added to what it makes of it.",
            residual="none",
        ),
        wrong(
            "the activation is applied to the sum",
            "residual",
            "The input passes unchanged; the ReLU stands in the bottleneck.",
            residual="inside",
        ),
        wrong(
            "there is no activation",
            "activation",
            "Without the ReLU the two maps are one linear map.",
            activation="none",
        ),
        wrong(
            "the activation stands behind the way up",
            "activation",
            "It belongs between the two maps; behind them nothing negative could be added.",
            activation="after",
        ),
        wrong(
            "the maps have no bias",
            "counting",
            "Here both maps are nn.Linear with bias.",
            biases=False,
        ),
        wrong(
            "there is no bottleneck",
            "counting",
            "The space between is bottleneck wide, not d_model.",
            width="d_model",
        ),
        wrong(
            "the activation is no ReLU",
            "activation",
            "Other functions do as well, but here a ReLU is asked for.",
            {"activation": "tanh"},
            {"activation": "silu"},
            activation="gelu",
        ),
        wrong(
            "the activation stands before the way down",
            "activation",
            "It belongs between the two maps; else they are one linear map.",
            activation="before",
        ),
        wrong(
            "the input is normalised first",
            "norm place",
            "This adapter has two linear maps and a ReLU; there is no LayerNorm in it.",
            norm=True,
        ),
        wrong(
            "the sum is halved",
            "residual",
            "At first the adapter must give what it reads, not half of it.",
            residual="halved",
        ),
        wrong(
            "no gradient comes back through one of the two ways",
            "gradient",
            "What is trained before the adapter needs both: leave out detach and no_grad.",
            {"cut": "around"},
            cut="inside",
        ),
    ],
    hints=[
        "Three lines in __init__ make the two maps and set something to zero. What, and why?",
        "nn.init.zeros_ sets a tensor to zero; a linear layer has a weight and a bias.",
        "forward: down, activation, up, and then add what came in.",
    ],
    right_variants=[_AdapterInSequence, _AdapterOfParameters, _AdapterFunctional],
)
class TinyAdapter(nn.Module):
    """x + up(relu(down(x)))."""

    def __init__(self, d_model, bottleneck):
        """Two nn.Linear: d_model -> bottleneck -> d_model."""
        super().__init__()
        self.down = nn.Linear(d_model, bottleneck)
        self.up = nn.Linear(bottleneck, d_model)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        """x: (N, d_model). Returns (N, d_model)."""
        return x + self.up(F.relu(self.down(x)))


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
    p_k, p_v = (p.expand(batch, -1, -1) for p in (prefix_keys, prefix_values))
    if used == "keys twice":
        p_v = p_k
    if used == "swapped":
        p_k, p_v = p_v, p_k
    if used == "not":
        p_k, p_v, m = p_k[:, :0], p_v[:, :0], 0
    all_keys = torch.cat([p_k, keys], 1)  # (B, m + Tk, d)
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
        "nothing": [see_prefix, torch.ones_like(real_keys)],
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
    trained keys as well. Padding among the tokens stays hidden; `real_keys` is True for real ones.
    """,
    reference=_prefix_attend,
    probes=[
        (*draw(1431, (1, 1, 2), (1, 3, 2), (1, 3, 2), (1, 2), (1, 2)), _REAL[0]),
        (*draw(1432, (2, 3, 5), (2, 4, 5), (2, 4, 5), (2, 5), (2, 5)), _REAL[1]),
        (*draw(1433, (2, 2, 6), (2, 4, 6), (2, 4, 6), (3, 6), (3, 6)), _REAL[1]),
        _low_scores(1434, torch.tensor([[1, 0, 0, 0], [1, 1, 1, 0]]).bool()),
    ],
    mistakes=[
        wrong(
            "the prefix stands before the keys and behind the values",
            "role of q, k, v",
            "Key i belongs to value i, so both prefixes go to the same end.",
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
        not_low_enough("fill"),
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


def _preference(better, worse, *, sign=1, form="log sigmoid", over="mean", minus=True,
                pairs="own"):  # fmt: skip
    if pairs == "all":
        better, worse = better[:, None], worse[None]
    if pairs == "means":
        better, worse = better.mean(), worse.mean()
    d = sign * (better - worse)
    losses = {
        "log sigmoid": lambda: F.logsigmoid(d),
        "overflows": lambda: torch.log(torch.exp(better) / (torch.exp(better) + torch.exp(worse))),
        "overflows late": lambda: torch.log(torch.sigmoid(d)),
        "log last": lambda: torch.sigmoid(d).mean().log(),
        "counted": lambda: (d > 0).float(),
        "errors": lambda: -(d <= 0).float(),
        "two": lambda: F.logsigmoid(d) / math.log(2),
        "no log": lambda: torch.sigmoid(d),
        "no sigmoid": lambda: d,
        "apart": lambda: F.logsigmoid(better) + F.logsigmoid(-worse),
        "hinge": lambda: -F.relu(1 - d),
        "square": lambda: -((1 - torch.sigmoid(d)) ** 2),
    }[form]()
    total = losses.mean() if over == "mean" else losses.sum()
    return -total if minus else total


@exercise(
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=1,
    trains="the loss of a reward model",
    text="""
    The Bradley-Terry loss: the mean, over all pairs, of minus the log of the probability that the
    preferred answer wins. That probability is the sigmoid of the difference of the two rewards.
    Rewards may be far apart.
    """,
    reference=_preference,
    probes=[
        (torch.tensor([2.0, 0.5]), torch.tensor([1.0, 1.5])),
        draw(1441, (5,), (5,), scale=2.0),
        (torch.tensor([200.0, -3.0, 1.0]), torch.tensor([-100.0, 120.0, 0.2])),
    ],
    mistakes=[
        wrong(
            "the difference is taken the wrong way round",
            "preference",
            "The preferred answer wins with sigmoid(better - worse).",
            sign=-1,
        ),
        wrong(
            "the minus sign is missing",
            "preference",
            "A loss falls when the preferred answer gets likelier, so it is minus the log.",
            minus=False,
        ),
        wrong(
            "the logarithm is missing",
            "log probabilities",
            "Chances of independent pairs multiply, so their logarithms are added.",
            form="no log",
        ),
        wrong(
            "the sigmoid is missing",
            "preference",
            "A difference of rewards is no probability; without the sigmoid it grows for ever.",
            form="no sigmoid",
        ),
        wrong(
            "each reward is judged alone",
            "preference",
            "Only differences count: adding 5 to both rewards must not change the loss.",
            form="apart",
        ),
        wrong(
            "exp overflows",
            "overflow",
            "In float32 exp(200) is infinite and sigmoid(-123) is 0, whose log is infinite, too: "
            "take the difference, and one function for the log of the sigmoid.",
            {"form": "overflows late"},
            form="overflows",
        ),
        wrong(
            "a hinge is used",
            "preference",
            "max(0, 1 - difference) is another loss; this one is minus a log-likelihood.",
            form="hinge",
        ),
        wrong(
            "the error is squared",
            "preference",
            "This is the squared error of the probability, not minus its logarithm.",
            form="square",
        ),
        wrong(
            "the pairs are added up",
            "averaging",
            "Take the mean over the pairs, so that their number does not matter.",
            over="sum",
        ),
        wrong(
            "every answer is compared with every other",
            "averaging",
            "Pair i is better[i] against worse[i]; a (N, 1) minus a (N,) makes N × N differences.",
            pairs="all",
        ),
        wrong(
            "the rewards are averaged first",
            "averaging",
            "Each pair has its own difference and its own loss; the mean is taken last.",
            pairs="means",
        ),
        wrong(
            "the mean is taken before the logarithm",
            "averaging",
            "The losses are averaged, minus the log for each pair, not the probabilities.",
            form="log last",
        ),
        wrong(
            "pairs in the right order are counted",
            "preference",
            "A count has no gradient; the loss also says by how much an answer wins.",
            {"form": "errors"},
            form="counted",
        ),
        wrong(
            "the logarithm has base 2",
            "log probabilities",
            "It is the natural logarithm: a pair of equal rewards costs 0.693.",
            form="two",
        ),
    ],
    hints=[
        "First the difference, one number per pair. Which reward must be the larger one?",
        "For a pair with equal rewards the loss is log 2, about 0.693.",
        "torch has one function for the log of a sigmoid that is safe for any number.",
    ],
    right_variants=[
        lambda b, w: F.softplus(w - b).mean(),
        lambda b, w: F.binary_cross_entropy_with_logits(b - w, torch.ones_like(b)),
        lambda b, w: F.cross_entropy(torch.stack([w, b], 1), torch.ones(len(b), dtype=torch.long)),
    ],
)
def preference_loss(better, worse):
    """The Bradley-Terry loss.

    better, worse: (N,) rewards of the preferred and of the other answer. Returns a number.
    """
    return -F.logsigmoid(better - worse).mean()


def _objective(
    logits,
    reference_logits,
    rewards,
    beta,
    *,
    kl="policy",
    sign=-1,
    weigh="kl",
    average="policy",
    normalised=True,
    turned=False,
):
    log_p, log_r = logits, reference_logits
    if normalised:
        log_p, log_r = log_p.log_softmax(-1), log_r.log_softmax(-1)
    p, r = log_p.exp(), log_r.exp()
    mean = {"policy": p @ rewards, "reference": r @ rewards, "plain": rewards.mean()}
    mean["best"], mean["log"] = rewards[logits.argmax()], log_p @ rewards
    mean = mean[average]
    divergence = {
        "policy": (p * (log_p - log_r)).sum(),
        "reversed": (r * (log_r - log_p)).sum(),
        "weighed by the reference": (r * (log_p - log_r)).sum(),
        "no reference": (p * log_p).sum(),
        "not weighed": (log_p - log_r).sum(),
        "averaged": (p * (log_p - log_r)).mean(),
        "no logs": (p * (p - r)).sum(),
        "quotient of logs": (p * (log_p / log_r)).sum(),
        "entropy of the reference": -(p * log_r).sum(),
        "squared": (p * (log_p - log_r).square()).sum(),
        "none": 0.0 * log_p.sum(),
    }[kl]
    if turned:
        mean, divergence = -mean, -divergence
    if weigh == "reward":
        return beta * mean + sign * divergence
    return mean + sign * (beta if weigh == "kl" else 1) * divergence


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="what RLHF maximises",
    text="""
    What RLHF maximises, for one question with K answers: the mean reward under the policy, minus
    `beta` times KL(policy || reference). Both distributions are given by logits.
    """,
    reference=_objective,
    probes=[
        (*draw(1451, (2,), (2,), (2,)), 0.5),
        (*draw(1452, (4,), (4,), (4,)), 2.0),
        (*draw(1453, (5,), (5,), (5,), scale=2.0), 0.3),
    ],
    mistakes=[
        wrong(
            "the KL divergence is taken the other way",
            "reference policy",
            "KL(policy || reference) weighs log policy - log reference by the policy.",
            kl="reversed",
        ),
        wrong(
            "the KL divergence is weighed by the reference",
            "reference policy",
            "The mean of log policy - log reference is taken over answers of the policy.",
            kl="weighed by the reference",
        ),
        wrong(
            "the KL divergence is not weighed",
            "reference policy",
            "Each answer counts as often as the policy gives it.",
            kl="not weighed",
        ),
        wrong(
            "the reference is left out",
            "reference policy",
            "The mean of log policy alone is minus the entropy; it knows nothing of the reference.",
            kl="no reference",
        ),
        wrong(
            "the KL term is left out",
            "reference policy",
            "Without it the policy moves to the answer of the largest reward, however odd.",
            kl="none",
        ),
        wrong(
            "the KL term is added",
            "reference policy",
            "Distance from the reference is a cost, so it is subtracted.",
            sign=1,
        ),
        wrong(
            "beta weighs the reward",
            "reference policy",
            "The KL term is multiplied by beta.",
            weigh="reward",
        ),
        wrong(
            "beta is not used",
            "reference policy",
            "The KL term is multiplied by beta.",
            weigh="nothing",
        ),
        wrong(
            "the reward is averaged over the wrong answers",
            "averaging",
            "Each reward counts as often as the policy gives that answer.",
            {"average": "plain"},
            average="reference",
        ),
        wrong(
            "the logits are taken for log-probabilities",
            "normalisation",
            "exp(logits) does not sum to 1: log_softmax first.",
            normalised=False,
        ),
        wrong(
            "the KL divergence is averaged over the answers",
            "averaging",
            "The policy's probabilities are the weights already: sum, and do not divide by K.",
            kl="averaged",
        ),
        wrong(
            "probabilities are compared, not their logarithms",
            "log probabilities",
            "KL is the policy's mean of log policy - log reference.",
            kl="no logs",
        ),
        wrong(
            "the logarithms are divided",
            "log probabilities",
            "log(p / r) is log p - log r, not log p / log r.",
            kl="quotient of logs",
        ),
        wrong(
            "the policy's own entropy is left out",
            "reference policy",
            "KL is the cross-entropy with the reference minus the entropy of the policy.",
            kl="entropy of the reference",
        ),
        wrong(
            "the difference of the logarithms is squared",
            "reference policy",
            "KL takes the difference itself; the sum is never negative all the same.",
            kl="squared",
        ),
        wrong(
            "only the most probable answer is rewarded",
            "averaging",
            "The mean is taken over all answers, each as often as the policy gives it.",
            average="best",
        ),
        wrong(
            "rewards are weighed by log-probabilities",
            "log probabilities",
            "A mean weighs by probabilities: exp of the log-probabilities.",
            average="log",
        ),
        wrong(
            "a loss is given",
            "preference",
            "The objective is maximised; a loss would be minus it.",
            turned=True,
        ),
    ],
    hints=[
        "Make probabilities of both logits first, and keep their logarithms as well.",
        "The mean reward is one dot product.",
        "KL(p || r) is the sum of p times the difference of the logarithms; it is never negative.",
    ],
    right_variants=[
        lambda x, y, r, b: (
            (p := x.softmax(0)) @ (r - b * (x.log_softmax(0) - y.log_softmax(0))) * p.sum()
        ),
        lambda x, y, r, b: (
            x.softmax(0).dot(r)
            - b * F.kl_div(y.log_softmax(0), x.log_softmax(0), reduction="sum", log_target=True)
        ),
        lambda x, y, r, b: (
            (torch.distributions.Categorical(logits=x).probs * r).sum()
            - b
            * torch.distributions.kl_divergence(
                torch.distributions.Categorical(logits=x),
                torch.distributions.Categorical(logits=y),
            )
        ),
    ],
)
def rlhf_objective(logits, reference_logits, rewards, beta):
    """E[reward] - beta * KL(policy || reference).

    logits, reference_logits, rewards: (K,). Returns a number.
    """
    log_policy = logits.log_softmax(-1)
    log_reference = reference_logits.log_softmax(-1)
    policy = log_policy.exp()
    return policy @ rewards - beta * (policy * (log_policy - log_reference)).sum()


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="counting what LoRA trains",
    text="""
    A model has 6 blocks with `d_model=256`. LoRA with rank 4 goes onto all four projections of
    each attention ($W_q, W_k, W_v, W_o$). How many numbers are trained?
    """,
    mistakes=[
        wrong(
            "only one of A and B is counted",
            "counting",
            "Each projection gets A, 4 x 256, and B, 256 x 4.",
            answer=6 * 4 * 4 * 256,
        ),
        wrong(
            "only one projection is counted",
            "counting",
            "There are four projections in each block.",
            answer=6 * 4 * (256 + 256),
        ),
        wrong(
            "only one block is counted",
            "counting",
            "There are 6 blocks.",
            answer=4 * 4 * (256 + 256),
        ),
        wrong(
            "the frozen matrices are counted",
            "frozen base",
            "The projections themselves, 256 x 256 each, are not trained.",
            {"answer": 6 * 4 * (256 * 256 + 4 * (256 + 256))},
            answer=6 * 4 * 256 * 256,
        ),
        wrong(
            "the two sizes are multiplied",
            "low rank",
            "A has r rows and B has r columns, so r (in + out), not r · in · out.",
            answer=6 * 4 * 4 * 256 * 256,
        ),
    ],
    hints=[
        "What are the shapes of A and B for one projection of 256 x 256?",
        "For r = 8 and 512 x 512 it was 8 · (512 + 512) = 8,192.",
        "How many projections are there in all?",
    ],
)
def lora_count():
    """Trained numbers: LoRA of rank 4 on four projections of 6 blocks, d_model = 256:"""
    return 6 * 4 * 4 * (256 + 256)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=1,
    trains="counting what a prefix trains",
    text="""
    The same model, 6 blocks with `d_model=256` and 8 heads. Prefix-tuning with a prefix of length
    10 in every block. How many numbers are trained?
    """,
    mistakes=[
        wrong(
            "only keys or only values are counted",
            "counting",
            "The prefix has a key and a value for each of its 10 positions.",
            answer=6 * 10 * 256,
        ),
        wrong(
            "every head is given full-size keys",
            "head layout",
            "A head has keys of size 256 / 8 = 32; all heads together have 256 numbers a position.",
            {"answer": 6 * 8 * 10 * 256},
            answer=6 * 8 * 2 * 10 * 256,
        ),
        wrong(
            "only one head is counted",
            "head layout",
            "Each of the 8 heads has a prefix of its own, of size 32.",
            answer=6 * 2 * 10 * 32,
        ),
        wrong(
            "only one block is counted",
            "counting",
            "Each block has its own prefix; vectors at the input only are prompt-tuning.",
            {"answer": 10 * 256},
            answer=2 * 10 * 256,
        ),
    ],
    hints=[
        "What stands in front of the keys of one block, all heads together?",
        "Ten vectors of 256 numbers, as keys. And the values?",
        "Does the number of heads matter at all? How many blocks are there?",
    ],
)
def prefix_count():
    """Trained numbers: a prefix of length 10 in each of 6 blocks, d_model = 256, 8 heads:"""
    return 6 * 2 * 10 * 256
