"""Exercises of notebook 08: layer normalisation, feed-forward network, residuals, whole blocks."""

import functools
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.checker.common import mixed_up, worked_out
from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import as_asked, draw
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.masks import causal_mask, mask_from_valid_lens
from course_utils.models.transformer import EncoderBlock, PositionWiseFFN

NOTEBOOK = "08_transformer_blocks"


def _normalise(
    x, gamma, beta, eps, *, over=(-1,), var="biased", eps_at="inside", root="yes", affine="both",
    centre="yes",
):  # fmt: skip
    if affine == "before":
        x = gamma * x + beta
    mean = x.mean(over, keepdim=True)
    if centre == "median":
        mean = x.median(-1, keepdim=True).values
    squares = (x if var == "of x" else x - mean).square()
    count = squares.numel() // squares.mean(over).numel()
    count = {"unbiased": count - 1, "sum": 1}.get(var, count)
    variance = squares.mean() if var == "of all" else squares.sum(over, keepdim=True) / count
    if var == "absolute":
        variance = (x - mean).abs().mean(over, keepdim=True).square()
    inside = variance + {"inside": eps, "squared": eps**2}.get(eps_at, 0.0)
    spread = inside if root == "no" else inside.sqrt()
    if eps_at == "under its own root":
        spread = spread + eps**0.5
    if eps_at in ("outside", "least"):
        spread = spread + eps if eps_at == "outside" else spread.clamp(min=eps)
    normed = (x if centre == "no" else x - mean) / spread
    return {
        "both": lambda: gamma * normed + beta,
        "swapped": lambda: beta * normed + gamma,
        "no gamma": lambda: normed + beta,
        "no beta": lambda: gamma * normed,
        "none": lambda: normed,
        "before": lambda: normed,
        "one plus gamma": lambda: (1 + gamma) * normed + beta,
        "beta first": lambda: gamma * (normed + beta),
    }[affine]()


def _by_moments(x, gamma, beta, eps):
    mean, of_squares = x.double().mean(-1, True), x.double().pow(2).mean(-1, True)
    return (x - mean) * torch.rsqrt(of_squares - mean**2 + eps) * gamma + beta


def _token_by_token(x, gamma, beta, eps):
    y = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            token = x[b, t]
            spread = math.sqrt(token.var(unbiased=False).item() + eps)
            y[b, t] = gamma * (token - token.mean()) / spread + beta
    return y


@exercise(
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="layer normalisation, to the last term",
    text="""
    Layer normalisation without `nn.LayerNorm`, `F.layer_norm` and the other norms of torch: every
    token vector gets mean 0 and variance 1 (nearly, because of ε), then each feature its own scale
    γ and shift β. The check uses a large ε, so that its place shows.
    """,
    reference=_normalise,
    forbids=["layer_norm"],
    probes=[
        (*draw(81, (2, 2, 3), (3,), (3,)), 0.5),
        (*draw(82, (2, 3, 4), (4,), (4,)), 0.3),
        (*draw(83, (3, 4, 6), (6,), (6,), scale=0.6), 0.2),
        (draw(80, (2, 3, 4), scale=0.3)[0], *draw(79, (4,), (4,)), 0.7),
        (torch.ones(1, 3, 4), *draw(78, (4,), (4,)), 0.1),
    ],
    mistakes=[
        wrong(
            "the variance is unbiased",
            "norm statistics",
            "x.var() divides by d - 1 unless told otherwise; LayerNorm divides by d.",
            var="unbiased",
        ),
        wrong(
            "the variance is the mean of x²",
            "norm statistics",
            "It is the mean of the squared distances from the mean: subtract the mean first.",
            var="of x",
        ),
        wrong(
            "distances are averaged, not their squares",
            "norm statistics",
            "The variance is the mean of the squared distances from the mean; the mean distance is "
            "another measure of spread.",
            var="absolute",
        ),
        wrong(
            "the median is taken, not the mean",
            "norm statistics",
            "x.mean(-1): the median does not bring the sum of the features to 0.",
            centre="median",
            over=(-1,),
            var="biased",
        ),
        wrong(
            "eps is missing",
            "norm statistics",
            "It stands below the root with the variance, and keeps a constant token from 0 / 0.",
            eps_at="none",
        ),
        wrong(
            "eps stands outside the root",
            "norm statistics",
            "It is added to the variance, before the root is taken.",
            eps_at="outside",
        ),
        wrong(
            "eps has a root of its own",
            "norm statistics",
            "One root is taken, of the sum: sqrt(variance + eps), not sqrt(variance) + sqrt(eps).",
            eps_at="under its own root",
        ),
        wrong(
            "eps is squared",
            "norm statistics",
            "eps itself is added to the variance.",
            eps_at="squared",
        ),
        wrong(
            "eps is a lower bound, not a term",
            "norm statistics",
            "max(deviation, eps) is how F.normalize does it; here eps is added to the variance.",
            eps_at="least",
        ),
        wrong(
            "the squares are added, not averaged",
            "norm statistics",
            "That makes tokens of length 1; for variance 1 the squares are divided by d.",
            var="sum",
        ),
        wrong(
            "this is RMSNorm",
            "norm statistics",
            "It divides by the root of the mean of x² and subtracts no mean; LayerNorm does.",
            centre="no",
            var="of x",
        ),
        wrong(
            "there is one mean for the whole batch",
            "norm statistics",
            "Without an axis the statistics run over everything; each token needs its own.",
            over=(0, 1, 2),
        ),
        wrong(
            "there is one variance for the whole batch",
            "norm statistics",
            "mean() without an axis runs over everything; each token has a variance of its own.",
            var="of all",
            over=(-1,),
            centre="yes",
        ),
        wrong(
            "the root of the variance is not taken",
            "norm statistics",
            "Divide by the standard deviation, which has the unit of x.",
            root="no",
        ),
        wrong(
            "the mean is not subtracted",
            "norm statistics",
            "Each token is centred first.",
            centre="no",
        ),
        wrong(
            "the statistics run over the batch",
            "norm statistics",
            "Then a sentence depends on its neighbours; take each token by itself, axis -1.",
            over=(0,),
        ),
        wrong(
            "the statistics run over the positions",
            "norm statistics",
            "Then a token depends on the others, also on later ones; the axis is -1.",
            over=(1,),
        ),
        wrong(
            "the statistics run over positions and features",
            "norm statistics",
            "That is normalized_shape = [T, d]: one mean for a sentence; each token needs its own.",
            over=(1, 2),
        ),
        wrong(
            "the statistics are those of BatchNorm",
            "norm statistics",
            "One mean per feature, over batch and positions, is BatchNorm.",
            over=(0, 1),
        ),
        wrong(
            "gamma and beta are swapped",
            "scale and shift",
            "gamma multiplies and beta is added.",
            affine="swapped",
        ),
        wrong(
            "gamma and beta are not used",
            "scale and shift",
            "After the normalisation comes gamma * ... + beta.",
            affine="none",
        ),
        wrong("gamma is missing", "scale and shift", "gamma multiplies.", affine="no gamma"),
        wrong("beta is missing", "scale and shift", "beta is added.", affine="no beta"),
        wrong(
            "beta is scaled by gamma",
            "scale and shift",
            "Multiply by gamma first, then add beta.",
            affine="beta first",
        ),
        wrong(
            "gamma and beta come before the normalisation",
            "scale and shift",
            "Then the statistics are those of the scaled token; normalise first, then scale.",
            affine="before",
        ),
        wrong(
            "1 is added to gamma",
            "scale and shift",
            "Some models keep gamma around 0; here gamma itself multiplies.",
            affine="one plus gamma",
        ),
    ],
    hints=[
        "Over which axis do mean and variance run, and how do you keep it for the division?",
        "The variance is the mean of the squared distances from the mean.",
        "Three lines: mean, variance, and the formula of the chapter. What stands below its root?",
    ],
    right_variants=[
        lambda x, g, b, eps: (
            g * (x - x.mean(-1, True)) * (x.var(-1, False, True) + eps).rsqrt() + b
        ),
        _by_moments,
        _token_by_token,
    ],
)
def normalise_tokens(x, gamma, beta, eps):
    """Layer normalisation of every token.

    x: (B, T, d), gamma and beta: (d,), eps: a number. Returns (B, T, d).
    """
    mean = x.mean(dim=-1, keepdim=True)  # (B, T, 1)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)  # (B, T, 1)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta


_ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "leaky": F.leaky_relu,
    "leakier": lambda x: F.leaky_relu(x, 0.1),
    "elu": F.elu,
    "softplus": F.softplus,
    "softmax": lambda x: x.softmax(-1),
    "minimum": lambda x: x.clamp(max=0),
    "absolute": torch.abs,
    "up to 6": F.relu6,
    "up to 1": lambda x: x.clamp(0, 1),
}


def _feed(
    x, W_1, b_1, W_2, b_2, *, activation="relu", at="between", biases="both", weights="as given",
    residual="no",
):  # fmt: skip
    act = _ACTIVATIONS[activation]
    if weights == "transposed":
        W_1, W_2 = W_1.T, W_2.T
    elif weights == "swapped":
        W_1, W_2 = W_2, W_1
    first, second = b_1, b_2
    if biases in ("first", "second", "none"):
        first = b_1 if biases == "first" else torch.zeros_like(b_1)
        second = b_2 if biases == "second" else torch.zeros_like(b_2)
    if biases == "exchanged":
        first, second = b_2, b_1
    read = act(x) if at == "before" else x
    if biases == "before the matrix":
        hidden = (read + b_1) @ W_1
    else:
        hidden = read @ W_1 + (0 if biases == "after relu" else first)
    hidden = act(hidden) if at in ("between", "twice") else hidden
    y = (hidden + first if biases == "after relu" else hidden) @ W_2 + second
    y = act(y) if at in ("twice", "end") else y
    return x + y if residual == "yes" else y


@exercise(
    notebook=NOTEBOOK,
    minutes=5,
    difficulty=1,
    trains="the position-wise feed-forward network",
    text="""
    Two linear layers with a ReLU in between, for every token alike. The matrices are applied from
    the right: `x @ W_1`.
    """,
    reference=_feed,
    probes=[
        draw(84, (1, 2, 3), (3, 3), (3,), (3, 3), (3,)),
        tuple(8 * x for x in draw(87, (1, 2, 3), (3, 4), (4,), (4, 3), (3,))),
        draw(85, (2, 3, 4), (4, 6), (6,), (6, 4), (4,)),
        draw(86, (2, 5, 3), (3, 3), (3,), (3, 3), (3,)),
    ],
    mistakes=[
        wrong(
            "the activation is missing",
            "activation",
            "Two linear layers without an activation between them are one linear layer.",
            at="none",
        ),
        wrong(
            "the activation comes after the second layer",
            "activation",
            "It stands between the two; the result must be able to be negative.",
            at="end",
        ),
        wrong(
            "the activation comes twice",
            "activation",
            "Once, between the layers; the result must be able to be negative.",
            at="twice",
        ),
        wrong(
            "the activation comes before the first layer",
            "activation",
            "It bends what the first layer made, not the input.",
            at="before",
        ),
        wrong(
            "another activation is used",
            "activation",
            "The paper has ReLU, max(0, x); many later models have GELU.",
            {"activation": "tanh"},
            {"activation": "sigmoid"},
            {"activation": "silu"},
            {"activation": "leaky"},
            {"activation": "leakier"},
            {"activation": "elu"},
            {"activation": "softplus"},
            {"activation": "softmax"},
            activation="gelu",
        ),
        wrong(
            "the negative numbers are kept, not the positive ones",
            "activation",
            "ReLU is max(0, x), so clamp(min=0): negative numbers become 0.",
            {"activation": "absolute"},
            activation="minimum",
        ),
        wrong(
            "large numbers are cut off",
            "activation",
            "ReLU is max(0, x): it bends what is below 0, and has no upper bound.",
            {"activation": "up to 1"},
            activation="up to 6",
        ),
        wrong("both biases are missing", "counting", "Add b_1 and b_2.", biases="none"),
        wrong("the first bias is missing", "counting", "Add b_1 before the ReLU.", biases="second"),
        wrong("the second bias is missing", "counting", "Add b_2 at the end.", biases="first"),
        wrong(
            "the first bias is added after the ReLU",
            "activation",
            "The first layer is x @ W_1 + b_1, bias and all; the ReLU bends its result.",
            biases="after relu",
            at="between",
        ),
        wrong(
            "the first bias is added before the matrix",
            "projection",
            "A linear layer is x @ W + b: b_1 has d_ff entries, those of the result.",
            biases="before the matrix",
        ),
        wrong(
            "the two biases are exchanged",
            "projection",
            "b_1 has d_ff entries and belongs to W_1, b_2 has d and belongs to W_2.",
            biases="exchanged",
        ),
        wrong(
            "the matrices are transposed",
            "projection",
            "Here they are applied as x @ W; nn.Linear and F.linear keep the transpose of that.",
            weights="transposed",
        ),
        wrong(
            "the two layers are exchanged",
            "projection",
            "W_1 leads from d_model to d_ff and W_2 back.",
            weights="swapped",
        ),
        wrong(
            "the input is added",
            "residual",
            "The residual connection is the block's business, not that of its sub-layer.",
            residual="yes",
        ),
    ],
    hints=[
        "No loop over the tokens: @ works on the last axis and leaves the others alone.",
        "Shapes on the way: (B, T, d), (B, T, d_ff), (B, T, d).",
        "ReLU is x.clamp(min=0), F.relu(x) or torch.relu(x). Between which two steps?",
    ],
    right_variants=[
        lambda x, W_1, b_1, W_2, b_2: F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2),
        lambda x, W_1, b_1, W_2, b_2: (
            torch.einsum("btf,fd->btd", (torch.einsum("btd,df->btf", x, W_1) + b_1).clamp(0), W_2)
            + b_2
        ),
        lambda x, W_1, b_1, W_2, b_2: torch.stack(
            [torch.addmm(b_2, torch.addmm(b_1, s, W_1).relu(), W_2) for s in x]
        ),
    ],
)
def feed_forward(x, W_1, b_1, W_2, b_2):
    """The feed-forward network of a block.

    x: (B, T, d), W_1: (d, d_ff), b_1: (d_ff,), W_2: (d_ff, d), b_2: (d,). Returns (B, T, d).
    """
    hidden = torch.relu(x @ W_1 + b_1)  # (B, T, d_ff)
    return hidden @ W_2 + b_2


def _seeded(module, seed):
    """The module with weights that repeat, in evaluation mode."""
    parameters = list(module.parameters())
    values = draw(seed, *(tuple(p.shape) for p in parameters), scale=0.6)
    with torch.no_grad():
        for p, value in zip(parameters, values, strict=True):
            p.copy_(value)
    return module.eval()


@functools.cache
def _sublayer(seed, d):
    return _seeded(PositionWiseFFN(d, d + 1), seed)


@functools.cache
def _norm(seed, d, eps=1e-5):
    """A norm; with a large eps it hears how large what it reads is."""
    norm = _seeded(nn.LayerNorm(d, eps=eps), seed)
    with torch.no_grad():
        norm.weight += 1.0
    return norm


@functools.cache
def _attend(seed, d):
    return _seeded(MultiHeadAttention(d, 2), seed)


def _add_norm(
    x, sublayer, norm, norm_first, *, order="right", residual="yes", inner="no", at_end="no",
    normed="yes",
):  # fmt: skip
    place = "pre" if norm_first else "post"
    norm = norm if normed not in ("no", place) else lambda tokens: tokens
    residual = "no" if residual == place else residual
    first = {"right": norm_first, "exchanged": not norm_first, "pre": True, "post": False}[order]
    if first:
        read = norm(x)
        y = norm(sublayer(x)) if at_end == "instead" else sublayer(read)
        y = {"no": y, "normed": read + y}.get(residual, x + y)
        return norm(y) if at_end == "yes" else y
    base = norm(x) if inner in ("x", "sandwich, carried on") else x
    base = 0 * x if residual == "no" else base
    if inner == "yes":
        return base + norm(sublayer(x))
    y = sublayer(norm(x) if inner.startswith("sandwich") else x)
    return base + y if inner == "x" else norm(base + y)


def _add_norm_in_place(x, sublayer, norm, norm_first):
    y = x.clone()
    y += sublayer(norm(x) if norm_first else x)
    return y if norm_first else norm(y)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="residual connection and the two places of the norm",
    text="""
    Put a residual connection and a normalisation around one sub-layer, in both orders: post-norm
    (the paper's) and, with `norm_first`, pre-norm. No dropout.
    """,
    reference=_add_norm,
    probes=[
        (*draw(87, (1, 2, 3)), _sublayer(88, 3), _norm(89, 3), False),
        (*draw(87, (1, 2, 3)), _sublayer(88, 3), _norm(89, 3), True),
        (*draw(90, (2, 3, 4)), _sublayer(91, 4), _norm(92, 4), False),
        (*draw(90, (2, 3, 4)), _sublayer(91, 4), _norm(92, 4), True),
        (*draw(90, (2, 3, 4)), _sublayer(91, 4), _norm(92, 4, eps=0.5), False),
        (*draw(90, (2, 3, 4)), _sublayer(91, 4), _norm(92, 4, eps=0.5), True),
    ],
    mistakes=[
        wrong(
            "pre-norm and post-norm are exchanged",
            "norm place",
            "With norm_first the sub-layer reads norm(x), and the sum is left as it is.",
            order="exchanged",
        ),
        wrong(
            "norm_first is not used",
            "norm place",
            "The two orders give different results; which one is wanted stands in norm_first.",
            {"order": "pre"},
            order="post",
        ),
        wrong(
            "the residual connection is missing",
            "residual",
            "What the sub-layer gives is added to x.",
            residual="no",
        ),
        wrong(
            "the residual connection is missing in pre-norm",
            "residual",
            "Where norm_first is True, what the sub-layer gives is added to x, too.",
            residual="pre",
        ),
        wrong(
            "the residual connection is missing in post-norm",
            "residual",
            "Where norm_first is False, what the sub-layer gives is added to x before the norm.",
            residual="post",
        ),
        wrong(
            "the residual connection carries the normalised stream",
            "residual",
            "In pre-norm only the sub-layer reads norm(x); what is added to is x itself.",
            residual="normed",
        ),
        wrong(
            "post-norm normalises before it adds",
            "norm place",
            "Post-norm normalises the sum: x + ... stands inside the norm.",
            inner="yes",
        ),
        wrong(
            "pre-norm normalises the sum as well",
            "norm place",
            "In pre-norm the sum leaves the block as it is; one norm follows after the last block.",
            at_end="yes",
        ),
        wrong(
            "pre-norm normalises what the sub-layer gives, not what it reads",
            "norm place",
            "Pre-norm is x + sublayer(norm(x)): the norm stands inside the call.",
            at_end="instead",
        ),
        wrong(
            "post-norm normalises what the sub-layer reads as well",
            "norm place",
            "In post-norm the sub-layer reads x as it is; only the sum goes through the norm.",
            {"inner": "sandwich, carried on"},
            inner="sandwich",
        ),
        wrong(
            "post-norm normalises x, not the sum",
            "norm place",
            "In post-norm x is read and carried on as it is; norm stands around x + sublayer(x).",
            inner="x",
        ),
        wrong(
            "nothing is normalised",
            "norm place",
            "Both orders use norm once.",
            normed="no",
        ),
        wrong(
            "nothing is normalised in pre-norm",
            "norm place",
            "Where norm_first is True, the sub-layer reads norm(x).",
            normed="pre",
        ),
        wrong(
            "nothing is normalised in post-norm",
            "norm place",
            "Where norm_first is False, the sum goes through norm.",
            normed="post",
        ),
    ],
    hints=[
        "Two formulas, one for each value of norm_first. Write them on paper first.",
        "Post-norm: what is the last thing that happens? Pre-norm: what is the first?",
        "In pre-norm x appears twice: as itself in the sum, and normalised for the sub-layer.",
    ],
    right_variants=[
        _add_norm_in_place,
        lambda x, f, n, first: x + f(n(x)) if first else n(x + f(x)),
        lambda x, f, n, first: (lambda before, after: after(torch.add(f(before(x)), x)))(
            *((n, nn.Identity()) if first else (nn.Identity(), n))
        ),
    ],
)
def add_and_norm(x, sublayer, norm, norm_first):
    """One sub-layer with its residual connection and normalisation.

    x: (B, T, d); sublayer and norm: functions from (B, T, d) to (B, T, d); norm_first: True for
    pre-norm, False for post-norm. Returns (B, T, d).
    """
    if norm_first:
        return x + sublayer(norm(x))
    return norm(x + sublayer(x))


def _encoder(
    x, attention, ffn, norm_1, norm_2, mask, *, first="right", second="right", reads="y",
    masked="yes", order="attention", norms="own", style="post", network="yes",
):  # fmt: skip
    mask = {"yes": mask, "inverted": ~mask}.get(masked)
    n_1, n_2 = {
        "own": (norm_1, norm_2), "first twice": (norm_1, norm_1), "exchanged": (norm_2, norm_1)
    }[norms]  # fmt: skip
    layers = [lambda z: attention(z, z, z, mask), ffn]
    if order == "ffn":
        layers.reverse()
    if style == "pre":
        y = x + layers[0](n_1(x))
        return y + layers[1](n_2(y))
    if style == "norms inside":
        y = x + n_1(layers[0](x))
        return y + n_2(layers[1](y))
    made = layers[0](x)
    y = _joined(x, made, n_1, first)
    if network == "no":
        return y
    stream = {"from x": x, "from the sum": x + made, "from attention": made, "and x": x + y}
    read = {"x": x, "sum": x + made, "attention": made}.get(reads, y)
    return _joined(stream.get(second, y), layers[1](read), n_2, second)


def _joined(x, y, norm, how):
    if how == "no residual":
        return norm(y)
    if how == "norm before":
        return x + norm(y)
    return x + y if how == "no norm" else norm(x + y)


def _encoder_by_loop(x, attention, ffn, norm_1, norm_2, mask):
    for sublayer, norm in ((lambda z: attention(z, z, z, mask=mask), norm_1), (ffn, norm_2)):
        x = norm(sublayer(x) + x)
    return x


class _Assembled(nn.Module):
    """A right variant: a module that holds the pieces."""

    def __init__(self, attention, ffn, norms):
        super().__init__()
        self.attention, self.ffn, self.norms = attention, ffn, nn.ModuleList(norms)

    def forward(self, x, mask):
        x = self.norms[0](x + self.attention(x, x, x, mask))
        return self.norms[1](x + self.ffn(x))


def _pieces(seed, d):
    return _attend(seed, d), _sublayer(seed + 1, d), _norm(seed + 2, d), _norm(seed + 3, d)


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="an encoder block, from its pieces",
    text="""
    The whole encoder block of the paper (post-norm), made of pieces that are given: attention → add
    and norm → feed-forward → add and norm.
    """,
    reference=_encoder,
    probes=[
        (*draw(93, (1, 3, 4)), *_pieces(94, 4), mask_from_valid_lens(torch.tensor([2]), 3)),
        (*draw(97, (2, 3, 6)), *_pieces(98, 6), mask_from_valid_lens(torch.tensor([3, 1]), 3)),
        (*draw(101, (2, 4, 4)), *_pieces(102, 4), causal_mask(4)),
    ],
    mistakes=[
        wrong(
            "the first residual connection is missing",
            "residual",
            "norm_1 gets x plus what attention gives.",
            first="no residual",
        ),
        wrong(
            "the second residual connection is missing",
            "residual",
            "norm_2 gets the stream plus what the feed-forward network gives.",
            second="no residual",
        ),
        wrong(
            "the second residual connection starts from x",
            "residual",
            "It carries what the first half of the block made, not the block's input.",
            second="from x",
        ),
        wrong(
            "the second residual connection starts before the first norm",
            "residual",
            "It carries norm_1(x + ...), which the network also reads, not the bare sum.",
            {"second": "from attention"},
            second="from the sum",
        ),
        wrong(
            "the block's input is added a second time",
            "residual",
            "x is in the stream already; the second sum is y + ffn(y).",
            second="and x",
        ),
        wrong(
            "the first norm comes before the sum",
            "norm place",
            "Post-norm: add first, then normalise.",
            first="norm before",
        ),
        wrong(
            "the second norm comes before the sum",
            "norm place",
            "Post-norm: add first, then normalise.",
            second="norm before",
        ),
        wrong(
            "the first norm is missing",
            "norm place",
            "Each of the two sums goes through a norm.",
            first="no norm",
        ),
        wrong(
            "the second norm is missing",
            "norm place",
            "Each of the two sums goes through a norm.",
            second="no norm",
        ),
        wrong(
            "the block is written as pre-norm",
            "norm place",
            "A good block, but here the paper's order is asked for: the norm after each sum.",
            style="pre",
        ),
        wrong(
            "both norms come before the sums",
            "norm place",
            "Post-norm: add first, then normalise, in both halves.",
            style="norms inside",
            first="right",
            second="right",
            reads="y",
            network="yes",
        ),
        wrong(
            "one norm is used twice",
            "sharing",
            "Each sub-layer has a norm with weights of its own: norm_1, then norm_2.",
            norms="first twice",
        ),
        wrong(
            "the two norms are exchanged",
            "block order",
            "norm_1 belongs to attention, norm_2 to the feed-forward network.",
            norms="exchanged",
        ),
        wrong(
            "the feed-forward network reads the block's input",
            "block order",
            "It reads what the first half made; here the two stand side by side.",
            reads="x",
        ),
        wrong(
            "the feed-forward network reads what comes before the first norm",
            "block order",
            "It reads norm_1(x + ...), not the bare sum and not attention's output.",
            {"reads": "attention"},
            reads="sum",
        ),
        wrong(
            "the feed-forward network comes first",
            "block order",
            "First attention gathers from the other tokens, then the network works on each.",
            order="ffn",
        ),
        wrong(
            "the feed-forward network is left out",
            "block order",
            "After attention and its norm comes the second sub-layer.",
            network="no",
        ),
        wrong(
            "the mask is not passed on",
            "mask missing",
            "attention(queries, keys, values, mask): without it padding is looked at.",
            masked="no",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "nn.MultiheadAttention hides where its mask is True; here True = may look.",
            masked="inverted",
        ),
    ],
    hints=[
        "Two halves of one form: norm(stream + sublayer(stream)).",
        "Self-attention: queries, keys and values are the same tensor.",
        "Give the result of the first half a name. In the second half x does not appear any more.",
    ],
    right_variants=[
        _encoder_by_loop,
        lambda x, attention, ffn, norm_1, norm_2, mask: _Assembled(
            attention, ffn, [norm_1, norm_2]
        )(x, mask),
        lambda x, attention, ffn, norm_1, norm_2, mask: (lambda y: norm_2(torch.add(y, ffn(y))))(
            norm_1(attention(x, x, x, mask, return_weights=True)[0] + x)
        ),
    ],
)
def encoder_block(x, attention, ffn, norm_1, norm_2, mask):
    """A post-norm encoder block.

    x: (B, T, d); attention(queries, keys, values, mask), ffn(x), norm_1(x) and norm_2(x) each give
    (B, T, d); mask: boolean, True = may look. Returns (B, T, d).
    """
    y = norm_1(x + attention(x, x, x, mask))
    return norm_2(y + ffn(y))


class _Decoder(nn.Module):
    """The switchable block: each class attribute is a switch."""

    kept = "registered"
    first = second = third = "right"
    source = "memory"
    causal = padding = "yes"
    masks = "own"
    order = "self first"
    norms = "own"
    memory_norm = "no"
    normed = "all"
    style = "pre"
    attentions = "both"
    graph = "kept"

    def __init__(self, self_attention, cross_attention, ffn, norms):
        if self.kept != "before the module":
            super().__init__()
        pieces = [self_attention, cross_attention, ffn]
        if self.kept == "before the module":
            self.piece = pieces[0]
        self.parts = pieces if self.kept == "all hidden" else nn.ModuleList(pieces)
        norms = list(norms)
        self.three = norms if self.kept != "registered" else nn.ModuleList(norms)

    def forward(self, x, memory, target_mask, source_mask):
        target_mask, source_mask = {
            "exchanged": (source_mask, target_mask),
            "target twice": (target_mask, target_mask),
            "source twice": (source_mask, source_mask),
        }.get(self.masks, (target_mask, source_mask))
        to_itself = {"yes": target_mask, "inverted": ~target_mask}.get(self.causal)
        to_source = {"yes": source_mask, "inverted": ~source_mask}.get(self.padding)
        self_attention, cross_attention, ffn = self.parts
        if self.attentions == "the first twice":
            cross_attention = self_attention
        if self.graph == "memory cut":
            memory = memory.detach()
        n = [self.three[i] for i in _NORMS.get(self.norms, (0, 1, 2))]
        streams = [x]

        def look(z):
            if self.memory_norm != "no":
                keys, values = (
                    memory if self.memory_norm == but else n[1](memory)
                    for but in ("of values", "of keys")
                )
                return cross_attention(z, keys, values, to_source)
            q, k, v = {
                "memory": (z, memory, memory),
                "swapped": (memory, z, z),
                "itself": (z, z, z),
                "values from x": (z, memory, z),
                "keys from x": (z, z, memory),
            }[self.source]
            return cross_attention(q, k, v, to_source)

        def look_around(z):
            keys = z if self.normed in ("all", "queries and keys") else x  # x is the stream now
            values = z if self.normed in ("all", "queries and values") else x
            return self_attention(z, keys, values, to_itself)

        layers = [look_around, look, ffn]
        if self.order == "cross first":
            layers[0], layers[1] = layers[1], layers[0]
        elif self.order == "no cross":
            layers = [layers[0], None, layers[2]]
        for layer, norm, how in zip(layers, n, (self.first, self.second, self.third), strict=True):
            if layer is None:
                continue
            if self.style == "post":
                x = norm(x + layer(x))
                continue
            if self.style == "norm behind":
                x = x + norm(layer(x))
                continue
            read = {"no norm": x, "reads the input": norm(streams[0])}.get(how, norm(x))
            y = layer(read)
            base = {"from the input": streams[0], "one too early": streams[-2:][0]}.get(how, x)
            streams.append({"no residual": y, "normed": read + y}.get(how, base + y))
            x = streams[-1]
        return x


_NORMS = {  # which norm serves which sub-layer
    "one": (0, 0, 0),
    "first twice": (0, 0, 1),
    "second twice": (0, 1, 1),
    "last two exchanged": (0, 2, 1),
    "first two exchanged": (1, 0, 2),
    "backwards": (2, 1, 0),
}


def play_decoder(answer, d_model, x, memory, target_mask, source_mask):
    """Build the learner's block from known pieces, count what it registers, and run it."""
    pieces = [_attend(105, d_model), _attend(106, d_model), _sublayer(107, d_model)]
    norms = [_norm(seed, d_model) for seed in (108, 109, 110)]
    block = answer(*pieces, norms)
    found = set(block.parameters())
    outcome = {
        "norms registered": all(p in found for norm in norms for p in norm.parameters()),
        "layers registered": all(p in found for piece in pieces for p in piece.parameters()),
    }
    output = block.eval()(x, memory.requires_grad_(), target_mask, source_mask)
    outcome["trains"] = bool(getattr(output, "requires_grad", False))
    outcome["memory gets a gradient"] = outcome["trains"] and (
        torch.autograd.grad(output.sum(), memory, allow_unused=True, retain_graph=True)[0]
        is not None
    )
    outcome["output"] = output
    return outcome


class _Named(nn.Module):
    """A right variant: every piece under a name of its own, called by keyword."""

    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.sa, self.ca, self.ff = self_attention, cross_attention, ffn
        self.n1, self.n2, self.n3 = norms

    def forward(self, x, memory, target_mask, source_mask):
        n = self.n1(x)
        x = self.sa(n, n, n, mask=target_mask) + x
        x = self.ca(self.n2(x), memory, memory, mask=source_mask) + x
        return self.ff(self.n3(x)) + x


class _Looped(nn.Module):
    """A right variant: a loop over sub-layers."""

    def __init__(self, *pieces):
        super().__init__()
        *layers, norms = pieces
        self.layers, self.norms = nn.ModuleList(layers), nn.Sequential(*norms)

    def forward(self, x, memory, *masks):
        stream = x
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            z = norm(stream)
            inputs = ((z, z, z), (z, memory, memory), (z,))[i]
            stream = torch.add(stream, layer(*inputs, *masks[i : i + 1]))
        return stream


class _AsDict(nn.Module):
    """A right variant: modules in a ModuleDict, the sums written out at the end."""

    def __init__(self, self_attention, cross_attention, ffn, norms):
        super().__init__()
        self.m = nn.ModuleDict({"self": self_attention, "cross": cross_attention, "ffn": ffn})
        self.m.update({f"norm{i}": norm for i, norm in enumerate(norms)})

    def forward(self, x, memory, target_mask, source_mask):
        a = self.m["self"](*[self.m["norm0"](x)] * 3, target_mask)
        b = self.m["cross"](self.m["norm1"](x + a), memory, memory, source_mask)
        return x + a + b + self.m["ffn"](self.m["norm2"](x + a + b))


def _decoder_probe(seed, d, steps, lens, source):
    x, memory = draw(seed, (len(lens), steps, d), (len(lens), source, d))
    lens = torch.tensor(lens)
    return d, x, memory, causal_mask(steps), mask_from_valid_lens(lens, source)


def _wrong_residual(place, switch):
    return [
        *wrong(
            f"the {place} residual connection is missing",
            "residual",
            f"The {place} sub-layer's output is added to the stream.",
            **{switch: "no residual"},
        ),
        *wrong(
            f"the {place} residual connection carries the normalised stream",
            "residual",
            "Only the sub-layer reads norm(x); what is added to is x itself.",
            **{switch: "normed"},
        ),
        *wrong(
            f"the {place} sub-layer reads the stream without its norm",
            "norm place",
            "Pre-norm: each sub-layer reads its own norm of the stream.",
            **{switch: "no norm"},
        ),
        *_wrong_stream(place, switch),
    ]


def _wrong_everywhere():
    every = ("first", "second", "third")
    return [
        *wrong(
            "every residual connection carries the normalised stream",
            "residual",
            "Only the sub-layer reads norm(x); what is added to is x itself: call the norm of it "
            "something else.",
            **dict.fromkeys(every, "normed"),
        ),
        *wrong(
            "all the residual connections are missing",
            "residual",
            "Each sub-layer's output is added to the stream.",
            **dict.fromkeys(every, "no residual"),
        ),
        *wrong(
            "no sub-layer reads a norm",
            "norm place",
            "Pre-norm: each sub-layer reads its own norm of the stream.",
            **dict.fromkeys(every, "no norm"),
        ),
    ]


def _wrong_stream(place, switch):
    if place == "first":
        return []
    return [
        *wrong(
            f"the {place} residual connection starts from an earlier stream",
            "residual",
            "What is added to is what the sub-layer before has left, not the block's input: give "
            "every sum a name, or call it x again.",
            *([{switch: "one too early"}] if place == "third" else []),
            **{switch: "from the input"},
        ),
        *wrong(
            f"the {place} sub-layer reads the block's input",
            "block order",
            "Each sub-layer reads the norm of what the one before it has left.",
            **{switch: "reads the input"},
        ),
    ]


@exercise(
    kind="class",
    notebook=NOTEBOOK,
    minutes=20,
    difficulty=3,
    trains="a decoder block, and where memory and masks go",
    text="""
    A pre-norm decoder block from given pieces: masked self-attention, cross-attention to the
    encoder's output (`memory`), feed-forward network. The pieces are modules; store them so that
    the block finds their parameters. `memory` has been normalised at the end of the encoder.
    """,
    reference=_Decoder,
    play=play_decoder,
    probes=[
        _decoder_probe(111, 4, 3, [2], 3),
        _decoder_probe(112, 4, 3, [4, 2], 5),
        _decoder_probe(113, 6, 4, [1, 4], 4),
    ],
    mistakes=[
        wrong(
            "the norms are hidden in a plain list",
            "sharing",
            "A plain list registers nothing, so they would not be trained: use nn.ModuleList.",
            kept="norms hidden",
        ),
        wrong(
            "all pieces are hidden in a plain list",
            "sharing",
            "A plain list registers nothing, so nothing would be trained: use attributes.",
            kept="all hidden",
        ),
        wrong(
            "super().__init__() is not called first",
            "sharing",
            "It makes the place where modules are registered: call it before storing any.",
            kept="before the module",
        ),
        wrong(
            "the memory is cut from the graph",
            "gradient",
            "With detach no gradient reaches the encoder, and it would never learn.",
            graph="memory cut",
        ),
        wrong(
            "both attentions are the same module",
            "sharing",
            "self_attention looks at the target, cross_attention at the memory, each with "
            "weights of its own.",
            attentions="the first twice",
        ),
        _wrong_residual("first", "first"),
        _wrong_residual("second", "second"),
        _wrong_residual("third", "third"),
        _wrong_everywhere(),
        wrong(
            "the memory asks the decoder",
            "role of q, k, v",
            "Queries come from the decoder; keys and values are the memory.",
            source="swapped",
        ),
        wrong(
            "cross-attention does not look at the memory",
            "role of q, k, v",
            "Its keys and values are the encoder's output.",
            source="itself",
        ),
        wrong(
            "keys and values of cross-attention come from two places",
            "role of q, k, v",
            "Keys and values are both the memory.",
            {"source": "keys from x"},
            source="values from x",
        ),
        wrong(
            "the memory is normalised again",
            "norm place",
            "The encoder has done it; here only the stream goes through the norm.",
            {"memory_norm": "of keys"},
            {"memory_norm": "of values"},
            memory_norm="yes",
        ),
        wrong(
            "not all that self-attention reads is normalised",
            "norm place",
            "Queries, keys and values of self-attention are all the normed stream.",
            {"normed": "queries and keys"},
            {"normed": "queries and values"},
            normed="queries",
        ),
        wrong(
            "the causal mask is not passed on",
            "mask missing",
            "Without target_mask, self-attention looks at the future.",
            causal="no",
        ),
        wrong(
            "the mask of the source is not passed on",
            "mask missing",
            "Without source_mask, cross-attention looks at padding.",
            padding="no",
        ),
        wrong(
            "the two masks are exchanged",
            "mask axis",
            "target_mask belongs to self-attention, source_mask to cross-attention.",
            masks="exchanged",
        ),
        wrong(
            "one mask serves both attentions",
            "mask axis",
            "target_mask belongs to self-attention, source_mask to cross-attention.",
            {"masks": "source twice"},
            masks="target twice",
        ),
        wrong(
            "the causal mask is inverted",
            "mask meaning",
            "nn.MultiheadAttention hides where its mask is True; here True = may look.",
            causal="inverted",
        ),
        wrong(
            "the mask of the source is inverted",
            "mask meaning",
            "nn.MultiheadAttention hides where its mask is True; here True = may look.",
            padding="inverted",
        ),
        wrong(
            "cross-attention comes first",
            "block order",
            "Self-attention, then cross-attention, then the feed-forward network.",
            order="cross first",
        ),
        wrong(
            "cross-attention is left out",
            "block order",
            "Without it the decoder never sees the source.",
            order="no cross",
        ),
        wrong(
            "one norm serves all sub-layers",
            "sharing",
            "Each sub-layer has a norm of its own.",
            norms="one",
        ),
        wrong(
            "one norm serves two sub-layers",
            "sharing",
            "There are three norms, norms[0] to norms[2], one for each sub-layer.",
            {"norms": "second twice"},
            norms="first twice",
        ),
        wrong(
            "the norms are exchanged",
            "block order",
            "norms[0] belongs to self-attention, norms[1] to cross-attention, norms[2] to the "
            "network.",
            {"norms": "first two exchanged"},
            {"norms": "backwards"},
            norms="last two exchanged",
        ),
        wrong(
            "the norm comes behind the sub-layer, inside the sum",
            "norm place",
            "Pre-norm is x + sublayer(norm(x)): the norm stands inside the call.",
            style="norm behind",
        ),
        wrong(
            "the block is written as post-norm",
            "norm place",
            "That is the paper's order; here each sub-layer reads the norm and the sum stays.",
            style="post",
        ),
    ],
    hints=[
        "In __init__: super().__init__(), then attributes; a list of modules becomes a ModuleList.",
        "Three times the same form: stream + sublayer(norm(stream)).",
        "In the second, only the query comes from the stream.",
        "The three masks are: target_mask, source_mask and none.",
    ],
    right_variants=[_Named, _Looped, _AsDict],
)
class TinyDecoderBlock(nn.Module):
    """A pre-norm decoder block made of given modules."""

    def __init__(self, self_attention, cross_attention, ffn, norms):
        """Attention modules (queries, keys, values, mask), a network, and a list of three norms."""
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.ffn = ffn
        self.norms = nn.ModuleList(norms)

    def forward(self, x, memory, target_mask, source_mask):
        """x: (B, T, d), memory: (B, S, d), target_mask: (1, 1, T, T), source_mask: (B, 1, 1, S).

        The masks are boolean, True = may look. Returns (B, T, d).
        """
        read = self.norms[0](x)
        x = x + self.self_attention(read, read, read, target_mask)
        x = x + self.cross_attention(self.norms[1](x), memory, memory, source_mask)
        return x + self.ffn(self.norms[2](x))


def _block_size(*, attention=4 * 64 * 64, ffn=2 * 64 * 256 + 256 + 64, norms=4 * 64):
    return attention + ffn + norms


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="counting the parameters of a block",
    text="""
    How many parameters does an encoder block have with `d_model=64`, 4 heads and `d_ff=256`? The
    four maps of its attention have no biases; all else has what it usually has.
    """,
    mistakes=[
        *worked_out(
            _block_size,
            wrong(
                "the norms are forgotten",
                "counting",
                "Each of the two norms has a scale and a shift for each feature.",
                norms=0,
            ),
            wrong(
                "half of the norms' parameters is missing",
                "counting",
                "There are two norms, and each has both a scale and a shift, 64 + 64 numbers.",
                norms=2 * 64,
            ),
            wrong(
                "scale and shift of a norm are counted as one number each",
                "counting",
                "Both are vectors: 64 numbers of scale and 64 of shift, one for each feature.",
                {"norms": 2},
                norms=4,
            ),
            wrong(
                "the biases of the feed-forward network are forgotten",
                "counting",
                "Its two layers have 256 and 64 biases.",
                ffn=2 * 64 * 256,
            ),
            wrong(
                "one bias of the feed-forward network is forgotten",
                "counting",
                "Its two layers have 256 and 64 biases.",
                {"ffn": 2 * 64 * 256 + 64},
                ffn=2 * 64 * 256 + 256,
            ),
            wrong(
                "each bias of the feed-forward network is counted as one number",
                "counting",
                "A bias is a vector, with one number for each output: 256 and 64.",
                ffn=2 * 64 * 256 + 2,
            ),
            wrong(
                "one layer of the feed-forward network is forgotten",
                "counting",
                "It leads from 64 to 256 features and back.",
                ffn=64 * 256 + 256,
            ),
            wrong(
                "W_o is forgotten",
                "counting",
                "Queries, keys, values and output: four matrices of 64 x 64.",
                attention=3 * 64 * 64,
            ),
            wrong(
                "one head is counted",
                "counting",
                "64 x 16 is the share of one head; there are 4.",
                attention=4 * 64 * 16,
            ),
            wrong(
                "biases of attention are counted",
                "counting",
                "Here its four maps have none.",
                attention=4 * 64 * 64 + 4 * 64,
            ),
            wrong(
                "the heads multiply the count",
                "counting",
                "The heads share the 64 features: 4 heads cost what 1 costs.",
                attention=4 * 4 * 64 * 64,
            ),
        ),
    ],
    hints=[
        "Three kinds of parts: attention, a feed-forward network, and how many norms?",
        "Attention: four square matrices. The network: two matrices and two biases.",
        "A norm multiplies every feature by one number and adds another.",
    ],
)
def encoder_block_parameters():
    """Parameters of an encoder block, d_model = 64, 4 heads, d_ff = 256, attention without bias:"""
    return 4 * 64 * 64 + (64 * 256 + 256) + (256 * 64 + 64) + 2 * (64 + 64)


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="what LayerNorm takes its mean over",
    text="""
    A batch has shape (2, 100, 24): sentences, positions, features. How many means does
    `nn.LayerNorm(24)` take?
    """,
    mistakes=[
        *worked_out(
            lambda *, count=2 * 100, each=1: count * each,
            wrong(
                "one mean per sentence and feature is counted",
                "norm statistics",
                "The mean runs over the features and not the positions.",
                count=2 * 24,
            ),
            wrong(
                "one mean per position and feature is counted",
                "norm statistics",
                "The mean runs over the features and not the sentences.",
                count=100 * 24,
            ),
            wrong(
                "one mean per sentence is counted",
                "norm statistics",
                "That would be nn.LayerNorm([100, 24]).",
                count=2,
            ),
            wrong(
                "one mean per feature is counted",
                "norm statistics",
                "That is BatchNorm.",
                count=24,
            ),
            wrong(
                "the sentences are left out",
                "norm statistics",
                "Both sentences have 100 tokens.",
                count=100,
            ),
            wrong(
                "every number is counted",
                "norm statistics",
                "A mean is taken over 24 numbers, so there are fewer means than numbers.",
                count=2 * 100 * 24,
            ),
            wrong(
                "a single mean is counted",
                "norm statistics",
                "Each token has a mean of its own.",
                count=1,
            ),
            wrong(
                "the variances are counted, too",
                "norm statistics",
                "Asked are the means alone.",
                each=2,
            ),
        ),
    ],
    hints=[
        "The argument 24 says over which axes it normalises: the last one, of size 24.",
        "Which axes are left?",
        "One mean for every token of every sentence.",
    ],
)
def layer_norm_means():
    """Means that nn.LayerNorm(24) takes of a batch (2, 100, 24):"""
    return 2 * 100


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=2,
    difficulty=1,
    trains="what BatchNorm takes its mean over",
    text="""
    A batch has shape (2, 100, 24): sentences, positions, features. It goes through
    `nn.BatchNorm1d(24)`, as (2, 24, 100), which is the order it wants. How many means does that
    take?
    """,
    mistakes=[
        *worked_out(
            lambda *, count=24, each=1: count * each,
            wrong(
                "one mean per position and feature is counted",
                "norm statistics",
                "The mean runs over the sentences and the positions.",
                count=100 * 24,
            ),
            wrong(
                "one mean per token is counted",
                "norm statistics",
                "That is LayerNorm.",
                count=2 * 100,
            ),
            wrong(
                "one mean per sentence and feature is counted",
                "norm statistics",
                "The mean runs over the sentences, too: that is why it needs a batch.",
                count=2 * 24,
            ),
            wrong(
                "one mean per position is counted",
                "norm statistics",
                "Features are kept apart, positions are not.",
                count=100,
            ),
            wrong(
                "one mean per sentence is counted",
                "norm statistics",
                "Features are kept apart, sentences are not.",
                count=2,
            ),
            wrong(
                "every number is counted",
                "norm statistics",
                "A mean is taken over all sentences and positions of a feature.",
                count=2 * 100 * 24,
            ),
            wrong(
                "a single mean is counted",
                "norm statistics",
                "Features are kept apart.",
                count=1,
            ),
            wrong(
                "the variances are counted, too",
                "norm statistics",
                "Asked are the means alone.",
                each=2,
            ),
        ),
    ],
    hints=[
        "How many features must you tell it when you make it?",
        "It knows neither the size of the batch nor the length of the sentences beforehand.",
        "Look at the shape of nn.BatchNorm1d(24).running_mean.",
    ],
)
def batch_norm_means():
    """Means that nn.BatchNorm1d(24) takes of a batch (2, 100, 24):"""
    return 24


@exercise(
    kind="value",
    notebook=NOTEBOOK,
    minutes=3,
    difficulty=2,
    trains="what a residual connection does to a gradient",
    text="""
    Ten layers y = x + F(x), one after the other, each with F(x) = 0.1 · x and x a single number. By
    what factor is the gradient multiplied on its way from the last output to the first input?
    """,
    mistakes=[
        *worked_out(
            lambda *, factor=1.1, layers=10: factor**layers,
            wrong(
                "the residual connections are forgotten",
                "residual",
                "0.1 for each layer is what remains without them.",
                factor=0.1,
            ),
            wrong(
                "only the direct path is counted",
                "residual",
                "The derivative of x + F(x) is 1 + F'(x): the sub-layers have a share in it.",
                factor=1,
            ),
            wrong(
                "the share of the sub-layer is subtracted",
                "residual",
                "The derivative of x + F(x) is 1 + F'(x).",
                factor=0.9,
            ),
            wrong(
                "one layer is counted",
                "residual",
                "Each of the ten layers multiplies the gradient.",
                layers=1,
            ),
            wrong(
                "a layer is miscounted",
                "off by one",
                "Ten layers, ten factors.",
                {"layers": 11},
                layers=9,
            ),
        ),
        wrong(
            "the layers are added",
            "residual",
            "The factors of layers that follow each other multiply.",
            {"answer": 10 * 1.1},
            answer=1 + 10 * 0.1,
        ),
    ],
    hints=[
        "What is the derivative of y = x + 0.1 x?",
        "By the chain rule the factors of the layers multiply.",
        "One factor, ten times. Without the 1 of the residual it would be a tiny number.",
    ],
)
def residual_gradient():
    """The factor of the gradient through ten layers y = x + 0.1 x (three digits are enough):"""
    return 1.1**10


def _absolute(d, *, first="both signs", second="sum", b_1=0.0, b_2=0.0):
    eye, zero = torch.eye(d), torch.zeros(d, d)
    W_1 = {
        "no sign": lambda: torch.cat([eye, eye], 1),
        "other axis": lambda: torch.cat([eye, -eye]),
        "in turn": lambda: torch.stack([eye, -eye], 2).flatten(1),
    }.get(first, lambda: torch.cat([eye, -eye], 1))()
    W_2 = {
        "positive half": lambda: torch.cat([eye, zero]),
        "negative half": lambda: torch.cat([zero, eye]),
        "subtracted": lambda: torch.cat([eye, -eye]),
        "averaged": lambda: torch.cat([eye, eye]) / 2,
        "other axis": lambda: torch.cat([eye, eye], 1),
        "features mixed": lambda: torch.ones(2 * d, d),
    }.get(second, lambda: torch.cat([eye, eye]))()
    return W_1, torch.full((2 * d,), b_1), W_2, torch.full((d,), b_2)


def play_absolute(answer, d, x):
    """The learner's numbers, in the network of the chapter."""
    W_1, b_1, W_2, b_2 = (torch.as_tensor(part, dtype=torch.float32) for part in answer(d))
    return torch.relu(x @ W_1 + b_1) @ W_2 + b_2


def _absolute_interleaved(d):
    W_1 = torch.zeros(d, 2 * d)
    for i in range(d):
        W_1[i, 2 * i], W_1[i, 2 * i + 1] = 1.0, -1.0
    return W_1, torch.zeros(2 * d), W_1.T.abs(), torch.zeros(d)


def _absolute_by_correction(d):
    """|x| = 2 relu(x) - x, and x = relu(x) - relu(-x)."""
    eye = torch.eye(d)
    W_2 = torch.cat([2 * eye, -eye, eye])
    return torch.cat([eye, eye, -eye], 1), torch.zeros(3 * d), W_2, torch.zeros(d)


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="setting the numbers of a network by hand",
    text="""
    No training: choose `W_1`, `b_1`, `W_2` and `b_2` so that the network
    `relu(x @ W_1 + b_1) @ W_2 + b_2` turns every feature, however large, into its absolute value:
    (2, -3) into (2, 3). You choose how wide it is; the check tries several `d`.
    """,
    reference=_absolute,
    play=play_absolute,
    probes=[(2, *draw(121, (1, 1, 2))), (3, *draw(122, (1, 3, 3))), (5, *draw(123, (2, 2, 5)))],
    edges=[
        (
            "where `x` holds -1000 and 1000: no bias is large enough for every `x`",
            (2, torch.tensor([[[-1000.0, 1000.0], [1000.0, -1000.0]]])),
        ),
        (
            "where `x` holds -1000000 and 1000000: no bias is large enough for every `x`",
            (2, torch.tensor([[[-1e6, 1e6], [1e6, -1e6]]])),
        ),
    ],
    mistakes=[
        wrong(
            "only the positive numbers come through",
            "activation",
            "One ReLU keeps what is above 0; a second hidden unit has to catch what is below.",
            second="positive half",
        ),
        wrong(
            "only the negative numbers come through",
            "activation",
            "relu(-x) is |x| for negative x and 0 for the others: those need a unit, too.",
            second="negative half",
        ),
        wrong(
            "the two halves are subtracted",
            "activation",
            "relu(x) - relu(-x) is x again; |x| is their sum.",
            second="subtracted",
        ),
        wrong(
            "both hidden units of a feature see the same sign",
            "activation",
            "Then both are off for negative x: one has to see x, the other -x.",
            first="no sign",
        ),
        wrong(
            "the two halves are averaged",
            "averaging",
            "Only one of the two is on at a time, so that their sum is |x| already.",
            second="averaged",
        ),
        wrong(
            "the features are mixed",
            "projection",
            "Each feature of the result belongs to one feature of the input.",
            second="features mixed",
        ),
        wrong(
            "the identities are joined along the other axis",
            "projection",
            "x @ W_1: W_1 has a row for each feature and a column for each hidden unit, W_2 "
            "the other way round.",
            {"second": "sum"},
            {"first": "both signs"},
            first="other axis",
            second="other axis",
        ),
        wrong(
            "W_1 and W_2 number the hidden units in different orders",
            "projection",
            "Where the two units of a feature stand in W_1, as columns, there its two rows of W_2 "
            "have to stand.",
            first="in turn",
        ),
        wrong(
            "the hidden units have a bias",
            "activation",
            "Then the bends are no longer at x = 0, where |x| has its own: b_1 is zero.",
            b_1=1.0,
        ),
        wrong(
            "the result has a bias",
            "activation",
            "Both units of x = 0 are 0, and |0| is 0: b_2 is zero.",
            b_2=1.0,
        ),
    ],
    hints=[
        "One feature first, d = 1. What does relu(x) give for 2 and for -3, and what relu(-x)?",
        "Two hidden units a feature: one sees x, one sees -x.",
        "torch.cat of two identity matrices, one with a sign; along which axis for W_1, for W_2?",
    ],
    right_variants=[
        _absolute_interleaved,
        _absolute_by_correction,
        lambda d: (
            torch.eye(d).repeat(1, 2) * torch.tensor([2.0, -2.0]).repeat_interleave(d),
            torch.zeros(2 * d),
            torch.eye(d).repeat(2, 1) / 2,
            torch.zeros(d),
        ),
    ],
)
def absolute_network(d):
    """The numbers of a network that computes |x| in every one of d features.

    Returns W_1 (d, d_ff), b_1 (d_ff,), W_2 (d_ff, d), b_2 (d,), with a d_ff of your choice.
    """
    eye = torch.eye(d)
    return torch.cat([eye, -eye], 1), torch.zeros(2 * d), torch.cat([eye, eye]), torch.zeros(d)


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="reading off a stream how a stack is built",
    text="""
    Four untrained stacks of 48 sub-layers; each row is the spread (standard deviation) of the
    stream on its way up:

    | | at the bottom | after 16 | after 32 | after 48 |
    |---|---|---|---|---|
    | **A** | 1.0 | 2.9 | 3.5 | 4.2 |
    | **B** | 1.0 | 1.0 | 1.0 | 1.0 |
    | **C** | 1.0 | 6e-5 | 8e-9 | 8e-13 |
    | **D** | 1.0 | 16 | 84 | 570 |

    Which is which? Write the four letters in this order: plain, residual only, post-norm, pre-norm.
    """,
    mistakes=[
        wrong(
            "pre-norm and residual only are exchanged",
            "norm place",
            "In pre-norm every sub-layer reads numbers of the same size and adds about the same; "
            "without a norm it adds in proportion to what it reads, and that multiplies.",
            answer="CABD",
        ),
        wrong(
            "pre-norm and post-norm are exchanged",
            "norm place",
            "Post-norm normalises the stream itself, after every sum.",
            answer="CDAB",
        ),
        wrong(
            "plain layers and post-norm are exchanged",
            "residual",
            "A norm brings the spread back to 1; nothing does that in plain layers.",
            answer="BDCA",
        ),
        wrong(
            "the two stacks without a norm are exchanged",
            "residual",
            "Adding keeps what was there: a stack that loses its input has no residual connection.",
            answer="DCBA",
        ),
        *mixed_up(
            "CDBA",
            {
                "plain": "Plain layers lose what they read: nothing brings the spread back.",
                "residual only": "Without a norm each layer adds in proportion to what it reads, "
                "and that multiplies.",
                "post-norm": "Post-norm normalises the stream itself, after every sum.",
                "pre-norm": "In pre-norm every sub-layer adds about the same: slow growth.",
            },
            "norm place",
            but=("CABD", "CDAB", "BDCA", "DCBA"),
        ),
    ],
    hints=[
        "One row does not move at all. Which stack normalises the stream itself?",
        "Two rows grow: one by about the same factor each time, one more and more slowly.",
        "If every sub-layer adds something of the same size, the variance grows in a line.",
    ],
)
def stream_of_stack():
    """Four letters, in the order plain, residual only, post-norm, pre-norm"""
    return "CDBA"


@exercise(
    kind="value",
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=4,
    difficulty=2,
    trains="finding a leak that no mask closes",
    text="""
    How strongly does output t (row) of a decoder block depend on its input s (column)? A colleague
    measured:

    | | 0 | 1 | 2 | 3 |
    |---|---|---|---|---|
    | **0** | 1.00 | 0.08 | 0.08 | 0.09 |
    | **1** | 0.50 | 0.90 | 0.07 | 0.08 |
    | **2** | 0.48 | 0.28 | 0.72 | 0.08 |
    | **3** | 0.13 | 0.20 | 0.25 | 0.80 |

    What is wrong? `"a"`: nothing, so small numbers come from rounding. `"b"`: the causal mask is
    missing. `"c"`: the norms take one mean over all positions. `"d"`: the residual connection is
    missing. `"e"`: the causal mask is transposed.
    """,
    mistakes=[
        wrong(
            "the small numbers are taken for rounding",
            "mask direction",
            "Rounding in float32 is about 0.0000001; what a mask hides is exactly 0.",
            answer="a",
        ),
        wrong(
            "the mask is taken to be missing",
            "mask missing",
            "Then the numbers above the diagonal would be as large as those below it.",
            answer="b",
        ),
        wrong(
            "the residual connection is taken to be missing",
            "residual",
            "The large diagonal is the residual connection: each output depends most on its own "
            "input.",
            answer="d",
        ),
        wrong(
            "the mask is taken to be transposed",
            "mask direction",
            "Then the larger numbers would stand above the diagonal.",
            answer="e",
        ),
    ],
    hints=[
        "Below the diagonal the numbers are larger than above it. What does that say of the mask?",
        "What stands above the diagonal is small, about the same everywhere, and not 0.",
        "Something joins all positions a little and does not ask any mask.",
    ],
)
def leak_past_the_mask():
    """The letter of what is wrong"""
    return "c"


def _parallel(
    x, attention, ffn, norm, mask, *,
    form="right", masked="yes", attention_reads="norm", network_reads="norm", stream="x",
):  # fmt: skip
    mask = {"yes": mask, "inverted": ~mask}.get(masked)
    read = norm(x)

    def attend(z):
        return attention(z, z, z, mask)

    if form == "one after the other":
        x = x + attend(x if attention_reads == "x" else read)
        return x + ffn(x if network_reads == "x" else norm(x))
    if form == "network reads attention":
        return x + ffn(attend(read))
    if form == "post-norm":
        return norm(x + attend(x) + ffn(x))
    if form == "nobody reads the norm":
        return x + attend(x) + ffn(x)
    a = attend(x if attention_reads == "x" else read)
    if attention_reads in ("queries alone", "all but values"):
        a = attention(read, x if attention_reads == "queries alone" else read, x, mask)
    f = ffn(x if network_reads == "x" else read)
    return {"none": 0 * x, "twice": 2 * x, "normed": read}.get(stream, x) + a + f


def _parallel_in_place(x, attention, ffn, norm, mask):
    n = norm(x)
    y = x.clone()
    y += attention(n, n, n, mask, return_weights=True)[0]
    y += ffn(n)
    return y


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="a block of another shape",
    text="""
    Some large models (GPT-J, PaLM) let attention and network work *side by side*: both read the
    same norm of the stream, and what both give is added to the stream at once. Build this parallel
    block.
    """,
    reference=_parallel,
    probes=[
        (
            *draw(124, (1, 3, 4)),
            _attend(125, 4),
            _sublayer(126, 4),
            _norm(127, 4),
            causal_mask(3),
        ),
        (
            *draw(128, (2, 3, 6)),
            _attend(129, 6),
            _sublayer(130, 6),
            _norm(131, 6),
            mask_from_valid_lens(torch.tensor([3, 1]), 3),
        ),
    ],
    mistakes=[
        wrong(
            "the network comes after attention",
            "block order",
            "Here both read the same norm of x; the block of the chapter goes on from the sum.",
            form="one after the other",
            stream="x",
        ),
        wrong(
            "the network reads what attention gives",
            "block order",
            "Neither waits for the other: both read norm(x).",
            form="network reads attention",
            attention_reads="norm",
            network_reads="norm",
            stream="x",
        ),
        wrong(
            "the sum is normalised, not what the two read",
            "norm place",
            "It is a pre-norm block: norm(x) is read, and the sum stays as it is.",
            form="post-norm",
            attention_reads="norm",
            network_reads="norm",
            stream="x",
        ),
        wrong(
            "nothing is normalised",
            "norm place",
            "Both read norm(x).",
            form="nobody reads the norm",
            attention_reads="norm",
            network_reads="norm",
            stream="x",
        ),
        wrong(
            "attention reads the stream without its norm",
            "norm place",
            "Both read norm(x).",
            attention_reads="x",
        ),
        wrong(
            "only the queries of attention are normalised",
            "norm place",
            "Queries, keys and values are all norm(x).",
            attention_reads="queries alone",
        ),
        wrong(
            "the values of attention are not normalised",
            "norm place",
            "Queries, keys and values are all norm(x).",
            attention_reads="all but values",
        ),
        wrong(
            "the network reads the stream without its norm",
            "norm place",
            "Both read norm(x).",
            network_reads="x",
        ),
        wrong(
            "the residual connection is missing",
            "residual",
            "What both give is added to x.",
            stream="none",
        ),
        wrong(
            "the stream is added twice",
            "residual",
            "One sum of three: x, what attention gives, what the network gives.",
            stream="twice",
        ),
        wrong(
            "the residual connection carries the normalised stream",
            "residual",
            "Only the two parts read norm(x); what is added to is x itself.",
            stream="normed",
        ),
        wrong(
            "the mask is not passed on",
            "mask missing",
            "attention(queries, keys, values, mask): without it, it looks everywhere.",
            masked="no",
        ),
        wrong(
            "the mask is inverted",
            "mask meaning",
            "Here True = may look; hand the mask on as it is.",
            masked="inverted",
        ),
    ],
    hints=[
        "How many norms are given, and how many tensors are there to be read?",
        "Give norm(x) a name: it is used by attention three times and by the network once.",
        "The result is a sum of three, and x itself is one of them.",
    ],
    right_variants=[
        lambda x, attention, ffn, norm, mask: torch.stack(
            [x, attention(*[norm(x)] * 3, mask), ffn(norm(x))]
        ).sum(0),
        lambda x, attention, ffn, norm, mask: (
            x + ffn(norm(x)) + attention(norm(x), norm(x), norm(x), mask=mask)
        ),
        _parallel_in_place,
    ],
)
def parallel_block(x, attention, ffn, norm, mask):
    """A block whose two parts work side by side, in pre-norm.

    x: (B, T, d); attention(queries, keys, values, mask), ffn(x) and norm(x) each give (B, T, d);
    mask: boolean, True = may look. Returns (B, T, d).
    """
    read = norm(x)
    return x + attention(read, read, read, mask) + ffn(read)


def _identity(block, *, attention="last", network="last", norms="kept", then="trained", how="zero"):
    W_v, W_o = block.attention.W_v.weight, block.attention.W_o.weight
    hidden, output = block.ffn.hidden, block.ffn.output
    chosen = [
        *{
            "last": [W_o],
            "values": [W_v],
            "values too": [W_v, W_o],
            "all": block.attention.parameters(),
        }.get(attention, []),
        *{
            "last": [output.weight, output.bias],
            "no bias": [output.weight],
            "first layer": [hidden.weight, hidden.bias],
            "hidden too": block.ffn.parameters(),
        }.get(network, []),
    ]
    gammas = [block.addnorm1.norm.weight, block.addnorm2.norm.weight]
    if norms == "zero":
        chosen += [*gammas, block.addnorm1.norm.bias, block.addnorm2.norm.bias]
    with torch.no_grad():
        for p in chosen:
            p *= 0.0 if how == "zero" else 1e-10
        for p in gammas if norms == "reset" else []:
            p.fill_(1.0)
    for p in (W_o, output.weight, output.bias) if then == "frozen" else ():
        p.requires_grad_(False)
    if then == "bypassed":
        block.forward = lambda x, *_: x
    return block


def play_identity(answer, d, x):
    """What the changed block does to x, and whether its two parts can still learn."""
    torch.manual_seed(d)
    block = _seeded(EncoderBlock(d, 2, d + 1, norm_first=True), 132)
    with torch.no_grad():
        for add_norm in (block.addnorm1, block.addnorm2):
            add_norm.norm.weight += 1.0
    before = {name: p.detach().clone() for name, p in block.named_parameters()}
    made = answer(block)
    block = block if made is None else made
    y, of_zeros = block(x), torch.zeros_like(x)
    exact = torch.equal(y, x) and torch.equal(block(of_zeros), of_zeros)
    adds = (y - x).detach()
    outcome = {
        "what the block adds, if it is much": adds * bool(adds.abs().max() > 0.05),
        "passes any input on, to the last digit": exact,
    }
    ends = {"attention": block.attention.W_o.weight, "network": block.ffn.output.weight}
    target = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
    if y.requires_grad:
        (y * target).sum().backward()
    for part, weight in ends.items():
        outcome[f"{part} can learn"] = weight.grad is not None and bool((weight.grad != 0).any())
    after = dict(block.named_parameters())
    outcome["nothing is frozen"] = all(p.requires_grad for p in after.values())
    outcome["all parameters are there"] = [*map(torch.numel, before.values())] == [
        *map(torch.numel, after.values())
    ]
    outcome["all else is as it was"] = all(
        torch.equal(old, after.get(name, old))
        for name, old in before.items()
        if not name.startswith(("attention.W_o", "ffn.output"))
    )
    return outcome


def _identity_by_hand(block):
    block.attention.W_o.weight = nn.Parameter(torch.zeros_like(block.attention.W_o.weight))
    for p in block.ffn.output.parameters():
        p.data *= 0
    return block


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=3,
    trains="a deep stack that starts as if it were shallow",
    text="""
    Very deep stacks are easier to start when at first each block passes any input on unchanged, to
    the last digit. Change the weights of a given pre-norm `EncoderBlock` so that it does, and so
    that both its parts can still learn: after one backward pass neither `attention.W_o.weight` nor
    `ffn.output.weight` may have a gradient of zeros only. Change nothing that need not be changed.
    """,
    reference=_identity,
    play=play_identity,
    probes=[(4, *draw(133, (1, 3, 4))), (6, *draw(134, (2, 2, 6)))],
    mistakes=[
        wrong(
            "attention still adds something",
            "neutral start",
            "Both sub-layers add to the stream; look at the last matrix of attention, too.",
            attention="as it was",
        ),
        wrong(
            "the network still adds something",
            "neutral start",
            "Both sub-layers add to the stream; look at the last layer of the network, too.",
            network="as it was",
        ),
        wrong(
            "the last bias of the network is left",
            "neutral start",
            "A layer with a weight of zeros still adds its bias.",
            network="no bias",
        ),
        wrong(
            "what reaches the last matrices of both parts is zero",
            "neutral start",
            "With zeros in every layer, or in those before the last, the gradient of the last "
            "matrices is zero: the block can never learn.",
            {"norms": "zero"},
            attention="all",
            network="hidden too",
        ),
        wrong(
            "the values of attention are zero",
            "neutral start",
            "W_o learns from the values that reach it; if they are zero, so is its gradient. W_v "
            "stays as it is, and W_o is the matrix to change.",
            {"attention": "values"},
            attention="values too",
        ),
        wrong(
            "the first layer of the network is set to zero, not the last",
            "neutral start",
            "Then the last layer still adds its bias, and its weight gets no gradient.",
            network="first layer",
        ),
        wrong(
            "the hidden units of the network are zero",
            "neutral start",
            "The last layer learns from the hidden units; if they are zero, so is its gradient. "
            "The first layer stays as it is, and the last is the one to change.",
            network="hidden too",
        ),
        wrong(
            "the norms are set to zero",
            "neutral start",
            "The network then reads zeros, and still adds what its biases make of them.",
            norms="zero",
            attention="as it was",
            network="as it was",
        ),
        wrong(
            "the last weights are frozen",
            "gradient",
            "With requires_grad False they stay zero for ever.",
            then="frozen",
        ),
        wrong(
            "the last weights are tiny, not zero",
            "neutral start",
            "A tiny weight still adds a little, and to an input of zeros even that shows: the last "
            "matrices can be exactly zero, for what they learn from is not.",
            how="tiny",
            attention="last",
            network="last",
        ),
        wrong(
            "more is changed than need be",
            "neutral start",
            "The last matrix of attention and the last layer of the network are enough: all other "
            "numbers, of norms and of earlier layers, stay as they were.",
            norms="reset",
            then="trained",
            how="zero",
        ),
        wrong(
            "the block is bypassed",
            "gradient",
            "A forward that hands x back uses no weight, so nothing gets a gradient: change the "
            "numbers, not the method.",
            then="bypassed",
            attention="last",
            network="last",
            norms="kept",
            how="zero",
        ),
        wrong(
            "nothing has been changed",
            "neutral start",
            "The block still adds what its two sub-layers compute.",
            attention="as it was",
            network="as it was",
        ),
    ],
    hints=[
        "In pre-norm the block is x plus two sums. What must each sub-layer give at first?",
        "A sub-layer gives zeros if its last layer does. Which parameters has that layer?",
        "Change numbers in place, under torch.no_grad(); nn.Linear has a weight and maybe a bias.",
    ],
    right_variants=[
        _identity_by_hand,
        lambda block: [
            nn.init.zeros_(p)
            for p in (block.attention.W_o.weight, *block.ffn.output.parameters())
        ] and block,
        lambda block: block.load_state_dict(
            {
                name: torch.zeros_like(p)
                if name.startswith(("attention.W_o", "ffn.output"))
                else p
                for name, p in block.state_dict().items()
            }
        ) and block,
    ],
)  # fmt: skip
def start_as_identity(block):
    """The block, so changed that it gives back its input and can still learn.

    block: an `EncoderBlock` with norm_first=True; its parts are attention (W_q, W_k, W_v, W_o,
    without bias), ffn (hidden, output), addnorm1 and addnorm2. Returns the block.
    """
    with torch.no_grad():
        block.attention.W_o.weight.zero_()
        block.ffn.output.weight.zero_()
        block.ffn.output.bias.zero_()
    return block


def _what_holds(answer, x):
    """What is asked of a norm, whatever its design: each property, and whether it has it."""
    y = as_asked(answer(x), "a tensor (B, T, d)", (*x.shape,), nan_is_measured=True)
    same = functools.partial(torch.allclose, rtol=1e-2, atol=1e-2, equal_nan=True)
    silent = (x == 0).all(-1)  # (B, T): tokens of zeros
    heard = y[~silent]  # (n, d)
    wide = [_some_tokens(d, 2, 3, d) for d in (16, 32)]  # sizes are asked of these
    sizes = [
        answer(factor * z)[(z != 0).any(-1)].square().mean(-1).sqrt()
        for z in wide
        for factor in (1, 100)
    ]
    zeros = [
        answer(z) for z in (torch.zeros_like(x), x * (torch.arange(len(x)) > 0)[:, None, None])
    ]
    layer_norm = F.layer_norm(x, x.shape[-1:])[~silent]
    faint = x * torch.cat([torch.tensor([1e-4]), torch.ones(x.shape[-1] - 1)])  # in feature 0
    return {
        "gives a token the same, whatever else its sentence holds": all(
            same(answer(x[:, t : t + 1]), y[:, t : t + 1]) for t in range(x.shape[1])
        ),
        "gives a sentence the same, whatever else the batch holds": all(
            same(answer(x[b : b + 1]), y[b : b + 1]) for b in range(x.shape[0])
        ),
        "does not hear how loud a token is": same(answer(100 * x)[~silent], heard)
        and same(answer(100 * faint)[~silent], answer(faint)[~silent])
        and all(same(answer(_louder(x, at))[at], y[at]) for at in map(tuple, (~silent).nonzero())),
        "gives numbers of size 0.3 at least": all(bool((size > 0.3).all()) for size in sizes),
        "gives numbers of size 3 at most": all(bool((size < 3).all()) for size in sizes),
        "gives finite numbers for a token of zeros": y[silent].isfinite().all().item()
        and all(z.isfinite().all().item() for z in zeros),
        "tells a token from its opposite": not same(answer(-x)[~silent], heard),
        "is not the LayerNorm of this chapter": not same(heard, layer_norm),
    }


def _louder(x, at):
    """The same tokens, one of them, at (sentence, position), 100 times as large."""
    changed = x.clone()
    changed[at] *= 100
    return changed


def _own_norm(x, *, form="root mean square", over=-1, eps=1e-8, length="root d", signs="kept"):
    if form != "root mean square":
        return {
            "none": lambda: x,
            "layer norm": lambda: F.layer_norm(x, x.shape[-1:]),
            "tanh": x.tanh,
            "softmax": lambda: x.softmax(-1) * x.shape[-1],
            "large eps": lambda: x / (x.square().mean(-1, keepdim=True).sqrt() + 0.1),
        }[form]()
    y = x / (x.square().mean(over, keepdim=True) + eps).sqrt()
    if length == "1":
        y = y / x.shape[-1] ** 0.5
    return y.abs() if signs == "lost" else y


def _some_tokens(seed, *shape):
    """Random tokens, of which one is loud and one is all zeros."""
    (x,) = draw(seed, shape)
    x[0, 0] *= 50
    x[1, 1] = 0
    return x


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=12,
    difficulty=2,
    trains="designing a norm to order",
    text="""
    **An open task**: many norms are right, and only what is asked here is checked. Write a norm of
    your own, without γ and β: (1) what it makes of a token depends on no other token of the
    sentence and (2) on no other sentence of the batch; (3) a token that is 100 times as large comes
    out the same; (4) the root mean square of what comes out lies between 0.3 and 3, for random
    tokens of d = 16 and 32; (5) a token of zeros gives finite numbers; (6) x and -x come out
    different; (7) it is not the LayerNorm of this chapter.
    """,
    reference=_own_norm,
    play=_what_holds,
    probes=[(_some_tokens(140, 2, 3, 16),), (_some_tokens(141, 3, 4, 32),)],
    mistakes=[
        wrong(
            "it is the LayerNorm of this chapter",
            "norm statistics",
            "Property 7: what else could one divide by, and does the mean have to go?",
            form="layer norm",
            over=-1,
            eps=1e-8,
            length="root d",
            signs="kept",
        ),
        wrong(
            "tokens of a sentence share one number",
            "norm statistics",
            "Property 1: divide each token by a number of its own, (B, T, 1).",
            over=(-2, -1),
        ),
        wrong(
            "sentences of a batch share numbers",
            "norm statistics",
            "Properties 1 and 2: only the last axis may be averaged over.",
            {"over": (0, 1, 2), "eps": 1e-8, "length": "root d"},
            over=(0, 1),
        ),
        wrong(
            "the loudness of a token is still heard",
            "norm place",
            "Property 3: a token that is 100 times as large has to come out the same: divide it by "
            "a measure of its own size, and let what is added to that be tiny.",
            {"form": "tanh"},
            {"form": "softmax"},
            {"form": "large eps"},
            form="none",
            over=-1,
            eps=1e-8,
            length="root d",
            signs="kept",
        ),
        wrong(
            "a token of zeros does not come out finite",
            "variance",
            "Property 5: where zeros are divided by zero, a small number below the root, or a "
            "least divisor, keeps them finite.",
            eps=0.0,
        ),
        wrong(
            "the numbers are too small",
            "variance",
            "Property 4: aim at a root mean square of 1. In a vector of length 1 it is 1/√d, the "
            "smaller the more features there are.",
            length="1",
        ),
        wrong(
            "signs are lost",
            "activation",
            "Property 6: x and -x must not come out the same. An absolute value or a square loses "
            "the sign, and divided by its sum a token does, too.",
            signs="lost",
        ),
    ],
    hints=[
        "Dividing a token by any measure of its own size makes it deaf to loudness. Which measures "
        "of size do you know?",
        "The root mean square, the mean of the absolute values, the largest of them: take one, "
        "over the last axis, with keepdim=True.",
        "What does your norm do to a token of zeros? A tiny number added to the divisor helps.",
    ],
    right_variants=[
        lambda x: x / (x.abs().mean(-1, keepdim=True) + 1e-9),
        lambda x: x / x.abs().amax(-1, keepdim=True).clamp(min=1e-9) * 1.5,
        lambda x: F.normalize(x, dim=-1) * x.shape[-1] ** 0.5,
        lambda x: x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt(),
    ],
)
def own_norm(x):
    """A norm that meets all seven properties.

    x: (B, T, d). Returns (B, T, d).
    """
    size = x.square().mean(-1, keepdim=True)  # (B, T, 1)
    return x / torch.sqrt(size + 1e-8)
